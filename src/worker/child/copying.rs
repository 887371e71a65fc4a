//! Makes copies of this process. Contains the unsafe code for that.

use std::io;

use rustix::process::Pid;

/// The size of the address space that a process can use, in bytes.
const ADDRESSES: usize = 1 << 47;

/// Includes all memory in copies of this process. V8 excludes its own, for programs that start
/// other programs.
pub(super) fn include_all_memory() {
    #[expect(unsafe_code, reason = "advice about memory is unsafe as a whole")]
    // SAFETY: this advice changes nothing in this process: all mappings stay as they are. The range
    // is the whole address space. The holes in it cause an error, but only after the advice was
    // applied to the rest.
    let _ = unsafe {
        rustix::mm::madvise(std::ptr::null_mut(), ADDRESSES, rustix::mm::Advice::LinuxDoFork)
    };
}

/// Makes a copy of this process with only this thread. Returns `None` in the copy.
///
/// # Safety
///
/// None of the threads that are missing in the copy may hold a lock that the copy takes, and
/// nothing in the copy may wait for one of them. The C library's `fork` handles the locks of the
/// allocator.
#[expect(unsafe_code, reason = "the copy has the memory of all threads, but only one of them")]
pub(super) unsafe fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: as above.
    let result = unsafe { libc::fork() };
    match result {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
