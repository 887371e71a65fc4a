//! What this process does about a signal that guests can cause. Unsafe, to set it.

/// Keeps SIGXFSZ from ending this process. The kernel sends it when a write exceeds the limit of
/// the size of files (`ulimit -f`), and a guest can write to a mount. The write fails with EFBIG
/// then, as in CPython, which ignores the signal.
///
/// Changes nothing if the program has set something else. Programs that this one starts are not
/// concerned: a function, unlike what is ignored, is not passed on to them.
pub(crate) fn outlive_file_size_limit() {
    #[cfg(unix)]
    {
        extern "C" fn nothing(_signal: libc::c_int) {}

        #[expect(unsafe_code, reason = "there is no safe binding")]
        // SAFETY: both structures are plain data, of which all zero is a value: no function, no
        // flag, no signal blocked. The first call reads no memory and writes one structure; the
        // second reads one. `nothing` touches nothing, so it may interrupt any code.
        unsafe {
            let mut found: libc::sigaction = std::mem::zeroed();
            let is_known = libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut found) == 0;
            if is_known && found.sa_sigaction == libc::SIG_DFL {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
                libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
            }
        }
    }
}
