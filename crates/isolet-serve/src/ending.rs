//! The end of the process, which is that of all sessions.

/// The exit status after an error.
pub(crate) const FAILED: u8 = 2;

/// Ends the process, and with it all workers. No thread that could do so in a milder way is left
/// when the client has gone: any of them may be busy with a guest.
#[expect(clippy::exit, reason = "the workers notice it, and nothing else has to be put in order")]
pub(crate) fn end(status: u8) -> ! {
    std::process::exit(status.into())
}
