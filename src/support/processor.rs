//! Which processor a thread runs on.

/// Returns a number for the processor that the calling thread runs on at present; 0 if it is not
/// known.
pub(crate) fn current() -> u64 {
    // Elsewhere it takes a system call, which is more than the answer is worth.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return rustix::thread::sched_getcpu() as u64 + 1;
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return 0;
}
