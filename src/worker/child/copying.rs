//! Makes copies of this process, and prepares its memory for that. Contains the unsafe code for
//! both.

use std::io;

use rustix::process::Pid;

use crate::support::free_memory;

/// The size of the address space that a process can use, in bytes: as much as the kernel gives by
/// itself. With larger addresses a program has to ask for each.
const ADDRESSES: usize = if cfg!(target_arch = "x86_64") { 1 << 47 } else { 1 << 48 };

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

/// Has all threads of this process allocate from the same heap. Called while there is one thread.
///
/// A copy has memory of its own for each page that it writes to, and each further heap has its own
/// lists that are spread over its pages.
pub(super) fn use_one_heap() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the call sets a number that the allocator reads when a thread needs a heap. No other
    // thread allocates meanwhile. If it fails, threads get heaps of their own.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Merges what was freed on the heap and takes it, for good. What a copy allocates then lies side
/// by side at the heap's end. Otherwise it would be spread over holes in many pages, all of which
/// the copy would have to copy.
pub(super) fn fill_heap() {
    /// The sizes that are handed out differ by so much, and the smallest is as large.
    const GRAIN: usize = 16;
    /// Larger holes are few.
    const LARGEST: usize = 1024;
    /// What the allocator puts before each piece.
    const HEADER: usize = size_of::<usize>();
    /// So many pieces side by side come from the heap's end, or from a hole that holds many.
    const ROW: usize = 4;
    /// More holes of a size than there are, in case that another allocator leaves gaps.
    const MOST: usize = 10_000;

    free_memory::give_back();
    for size in (1..=LARGEST / GRAIN).rev().map(|grains| grains * GRAIN) {
        let (mut row, mut last) = (0, 0);
        for _ in 0..MOST {
            let piece = Vec::<u8>::with_capacity(size - HEADER);
            let at = piece.as_ptr().addr();
            std::mem::forget(std::hint::black_box(piece));
            row = if at == last + size { row + 1 } else { 0 };
            last = at;
            if row == ROW {
                break;
            }
        }
    }
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
