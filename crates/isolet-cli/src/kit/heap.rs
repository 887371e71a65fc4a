//! Tunes how a server's allocator treats large blocks. Unsafe, because it calls `mallopt`.

/// The size from which a block gets pages for itself, in bytes.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Has large blocks go back to the system at once when they are freed: bodies, values, answers.
///
/// Otherwise glibc keeps those of each thread, and more of them the larger the largest was, so that
/// a server that was busy once keeps several times the memory that it needs. A server on standard
/// input and output has one client, and is quicker with the kept memory. Called while there is one
/// thread.
pub(crate) fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the call sets a number that the allocator reads when it allocates. No other thread
    // exists that could allocate during the call. If it fails, large blocks are kept.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}
