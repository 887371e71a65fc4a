//! What the allocator of a server does with large blocks. Unsafe, to tell it.

/// From how many bytes on a block gets pages of its own.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Has large blocks go back to the system at once when they are freed: bodies, values, answers.
///
/// Otherwise glibc keeps those of each thread, and more of them the larger the largest was, so that
/// a server that was busy once holds several times what it needs, for good. A server on standard
/// input and output has one client, and is quicker with what it keeps. Called while there is one
/// thread.
pub(crate) fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the call sets a number that the allocator reads when it allocates. No other thread
    // allocates meanwhile. If it fails, large blocks are kept.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}
