//! The signals that are blocked when the command starts. Unsafe, to unblock them.

/// Unblocks all signals. The parent process may have left some blocked, as programs do that wait
/// for them with `sigwait`, and then only SIGKILL would end the command.
pub(crate) fn unblock_all() {
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the set is plain data, of which all zero is a value, and is made before it is read.
    // Only this thread is concerned, and those that it starts.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        // Without it, the command is as it was started.
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
