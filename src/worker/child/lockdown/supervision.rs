//! Has the parent decide about each new process and thread of a forkable worker. Contains the
//! unsafe code for that.
//!
//! The filter stops a `clone` in the kernel and notifies whoever has the listener, which only the
//! parent has. It sees the flags, which are in a register, so that nothing can change them after
//! the check. Copies inherit the filter.

use std::ffi::{c_long, c_ulong};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Installs the filter in every thread of the process. Returns the listener.
pub(super) fn begin() -> io::Result<OwnedFd> {
    let clone = u32::try_from(libc::SYS_clone).map_err(io::Error::other)?;
    let statement = |code: u32, jump: (u8, u8), k| {
        let code = u16::try_from(code).unwrap_or_default();
        libc::sock_filter { code, jt: jump.0, jf: jump.1, k }
    };
    // The number of the call is the first word of what a filter sees. Calls of other architectures
    // have other numbers; the filter that kills comes after this one and kills those.
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, (0, 1), clone),
        statement(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_USER_NOTIF),
        statement(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_ALLOW),
    ];
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    let flags: c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
        | libc::SECCOMP_FILTER_FLAG_TSYNC
        | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    #[expect(unsafe_code, reason = "there is no safe binding of a filter with a listener")]
    // SAFETY: the call reads `program` and, through its pointer, `len` statements of `filter`. Both
    // live until it returns. A filter touches no memory of the process.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    owned(result)
}

/// Takes the descriptor that a system call has returned.
fn owned(result: c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(result) {
        Ok(fd) if fd >= 0 => {
            #[expect(unsafe_code, reason = "a number becomes a descriptor")]
            // SAFETY: the kernel has just opened it for this call, so nothing else owns it.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            Ok(fd)
        }
        _ => Err(io::Error::last_os_error()),
    }
}
