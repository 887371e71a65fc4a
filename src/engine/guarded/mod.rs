//! A host whose panics end one request, not the process.
//!
//! Ops are called by V8, through which no panic can unwind. The host's code includes callers' own, such as
//! the sink of the audit log.

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::waist::{Host, HostReply, HostRequest};

/// Passes requests on to a host and catches its panics.
pub(crate) struct Guarded(pub(crate) Arc<dyn Host>);

impl Host for Guarded {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        // The host's locks survive a panic in whoever holds them.
        let answer = catch_unwind(AssertUnwindSafe(|| self.0.call(request)));
        answer.unwrap_or_else(|_| HostReply::Failed("the host failed at this request".to_owned()))
    }
}
