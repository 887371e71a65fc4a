//! The end of the process, which is that of all sessions.

/// The exit status after an error.
pub(crate) const FAILED: u8 = 2;

/// Exits the process, and with it all workers. Used when the client is gone: every thread may be
/// busy with a guest, so none could shut down in order.
#[expect(clippy::exit, reason = "the workers notice it, and nothing else has to be put in order")]
pub(crate) fn end(status: u8) -> ! {
    std::process::exit(status.into())
}
