//! What native code in a worker does to the system: calls with pointers, and reads of any address.
//! Contains the unsafe code for both.

use std::ffi::{CStr, c_long};
use std::io;

/// The size of a page, in bytes.
pub(super) const PAGE: usize = 4096;

/// An argument of a system call.
#[derive(Debug)]
pub(super) enum Arg<'a> {
    Number(c_long),
    Text(&'a CStr),
    Bytes(&'a [u8]),
    /// A buffer that the kernel may fill. The next argument, or one that the call has instead, is
    /// its length.
    Into(&'a mut [u8]),
}

/// Makes a system call by its number.
pub(super) fn call<const N: usize>(number: c_long, arguments: [Arg<'_>; N]) -> io::Result<c_long> {
    let mut words: [c_long; 6] = [0; 6];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = match argument {
            Arg::Number(number) => number,
            Arg::Text(text) => text.as_ptr() as c_long,
            Arg::Bytes(bytes) => bytes.as_ptr() as c_long,
            Arg::Into(buffer) => buffer.as_mut_ptr() as c_long,
        };
    }
    let [first, second, third, fourth, fifth, sixth] = words;
    #[expect(unsafe_code, reason = "what is attempted is the system call itself")]
    // SAFETY: the kernel writes to a buffer of `Arg::Into` only, whose length the attempts pass
    // along, and which lives until the call returns. Calls that would take away memory or threads
    // of this process are not among the attempts.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes a call by the numbers of another architecture's kernel interface.
#[cfg(target_arch = "x86_64")]
pub(super) fn call_of_i386(number: i32, first: i32, second: i32) -> i32 {
    let result: i32;
    #[expect(unsafe_code, reason = "another architecture's call is an instruction")]
    // SAFETY: the kernel gets numbers, of which none is an address of this process.
    unsafe {
        core::arch::asm!(
            "push rbx",
            "mov ebx, {first:e}",
            "int 0x80",
            "pop rbx",
            first = in(reg) first,
            inlateout("eax") number => result,
            in("ecx") second,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}

/// Copies a page of this process, if it is mapped and can be read.
pub(super) fn page_at(address: usize) -> Option<[u8; PAGE]> {
    // The call reads the mask before it looks at its first argument, which is invalid.
    const NO_SUCH_CHANGE: c_long = 99;
    let mask = c_long::try_from(address).ok()?;
    let arguments = [NO_SUCH_CHANGE, mask, 0, 8].map(Arg::Number);
    let refused = call(libc::SYS_rt_sigprocmask, arguments).err()?;
    if refused.raw_os_error() != Some(libc::EINVAL) {
        return None;
    }
    let mut page = [0; PAGE];
    #[expect(unsafe_code, reason = "what is attempted is to read what is not ours")]
    // SAFETY: the kernel has just read the beginning of the page. No thread of this process unmaps
    // memory while it is taken over.
    unsafe {
        std::ptr::copy_nonoverlapping(
            std::ptr::with_exposed_provenance::<u8>(address),
            page.as_mut_ptr(),
            PAGE,
        );
    }
    Some(page)
}

/// Reads memory of another process into the buffer. Returns how much was read.
pub(super) fn memory_of(process: c_long, address: usize, into: &mut [u8]) -> io::Result<usize> {
    let vector = |base: usize, length: usize| {
        let [base, length] = [base, length].map(usize::to_ne_bytes);
        [base, length].concat()
    };
    let ours = vector(into.as_mut_ptr().expose_provenance(), into.len());
    let theirs = vector(address, into.len());
    let arguments = [
        Arg::Number(process),
        Arg::Bytes(&ours),
        Arg::Number(1),
        Arg::Bytes(&theirs),
        Arg::Number(1),
        Arg::Number(0),
    ];
    let read = call(libc::SYS_process_vm_readv, arguments)?;
    Ok(usize::try_from(read).unwrap_or_default())
}
