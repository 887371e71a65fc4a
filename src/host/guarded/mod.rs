//! A host whose panics end one request, not the process.
//!
//! Ops are called by V8, through which no panic can unwind, and the thread that serves a worker has
//! to outlive a request. The host's code includes callers' own, such as the sink of the audit log.

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::fs::FileError;
use crate::protocol::{Host, HostReply, HostRequest};

/// Passes requests on to a host and catches its panics.
pub(crate) struct Guarded(pub(crate) Arc<dyn Host>);

impl Host for Guarded {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        caught(|| self.0.call(request)).unwrap_or_else(HostReply::Failed)
    }

    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        self.0.may_wait(request)
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        caught(|| self.0.read_file(file, offset, into)).unwrap_or(Err(FileError::Io))
    }

    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        caught(|| self.0.fill_entropy(into)).flatten()
    }
}

/// Makes an error of a panic. The host's locks survive one in whoever holds them.
fn caught<T>(ask: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| "the host failed at this request".to_owned())
}
