//! The system calls of a forkable worker that wait in the kernel for a decision
//! (`seccomp_unotify`). Contains the unsafe code for that.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Receives the calls.
pub(crate) struct Listener(OwnedFd);

/// A system call that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    id: u64,
    /// The thread that makes the call, as this process numbers it.
    pub(crate) thread: i32,
    /// The first argument.
    pub(crate) argument: u64,
}

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Waits for a call, for at most this long.
    pub(crate) fn next(&self, limit: Duration) -> io::Result<Option<Notification>> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut fds, Some(&limit)) {
            Ok(1..) if fds[0].revents().contains(PollFlags::IN) => {}
            Ok(1..) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // The kernel requires a notification of zeros.
        let mut received = MaybeUninit::<libc::seccomp_notif>::zeroed();
        #[expect(unsafe_code, reason = "there is no safe binding")]
        // SAFETY: the request writes one notification, for which there is room. All bytes of it are
        // initialised, and any are valid.
        let received = unsafe {
            let at = received.as_mut_ptr();
            if libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, at) < 0 {
                let error = io::Error::last_os_error();
                // The thread was killed meanwhile.
                let is_gone = error.raw_os_error() == Some(libc::ENOENT);
                return if is_gone { Ok(None) } else { Err(error) };
            }
            received.assume_init()
        };
        let thread = i32::try_from(received.pid).map_err(io::Error::other)?;
        let [argument, ..] = received.data.args;
        Ok(Some(Notification { id: received.id, thread, argument }))
    }

    /// Returns `true` if the call still waits. While it does, the number of its thread belongs to
    /// nobody else.
    pub(crate) fn is_waiting(&self, call: &Notification) -> bool {
        #[expect(unsafe_code, reason = "there is no safe binding")]
        // SAFETY: the request reads one number, which lives until it returns.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id)
        };
        result == 0
    }

    /// Makes this file the descriptor `number` of the process that makes the call.
    pub(crate) fn give(
        &self,
        call: &Notification,
        fd: BorrowedFd<'_>,
        number: RawFd,
    ) -> io::Result<()> {
        let addfd = libc::seccomp_notif_addfd {
            id: call.id,
            flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SETFD).map_err(io::Error::other)?,
            srcfd: fd.as_fd().as_raw_fd().unsigned_abs(),
            newfd: number.unsigned_abs(),
            newfd_flags: libc::O_CLOEXEC.unsigned_abs(),
        };
        #[expect(unsafe_code, reason = "there is no safe binding")]
        // SAFETY: the request reads one structure, which lives until it returns.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const addfd)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Lets the call run.
    pub(crate) fn permit(&self, call: &Notification) -> io::Result<()> {
        self.answer(call, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE)
    }

    /// Makes the call fail with this error.
    pub(crate) fn refuse(&self, call: &Notification, error: i32) -> io::Result<()> {
        self.answer(call, -error, 0)
    }

    fn answer(&self, call: &Notification, error: i32, flags: libc::c_ulong) -> io::Result<()> {
        let flags = u32::try_from(flags).map_err(io::Error::other)?;
        let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        #[expect(unsafe_code, reason = "there is no safe binding")]
        // SAFETY: the request reads one structure, which lives until it returns.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
        };
        match result {
            0.. => Ok(()),
            _ => match io::Error::last_os_error() {
                // The thread was killed meanwhile.
                error if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
                error => Err(error),
            },
        }
    }
}
