//! A host wrapper that turns a panic into one failed request.
//!
//! V8 calls the ops, and a panic cannot unwind through V8. The thread that serves a worker must
//! also survive a failed request. The host's code includes code of the library's user, such as the
//! sink of the audit log.

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::fs::FileError;
use crate::protocol::{Host, HostReply, HostRequest};

/// Forwards requests to a host and catches its panics.
pub(crate) struct CatchPanic(pub(crate) Arc<dyn Host>);

impl Host for CatchPanic {
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

/// Turns a panic into an error. The host's locks stay usable if their holder panics.
fn caught<T>(ask: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| "the host failed at this request".to_owned())
}
