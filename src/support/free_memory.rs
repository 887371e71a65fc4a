//! Gives freed memory back to the system. Contains the unsafe code for that.

/// Merges what was freed on this process's heap, and gives whole pages of it back.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the call takes the allocator's own locks and moves nothing that is allocated.
    unsafe {
        libc::malloc_trim(0);
    }
}
