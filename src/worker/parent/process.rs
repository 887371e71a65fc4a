//! The process of a worker: a child of this one, of a template, or of another worker. Contains the
//! unsafe code to learn how one has ended that is nobody's child here.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::strays::CopiedProcess;
use super::template::{Forked, Template};

pub(crate) enum Process {
    Child(Child),
    Forked(Forked),
    Copied(Copied),
}

/// A copy that a worker has made of itself.
pub(crate) struct Copied {
    process: CopiedProcess,
    /// Kept, because the copy ends with it.
    _template: Arc<Template>,
}

impl Process {
    /// Kills the process. Fails only if it has already ended.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        match self {
            Self::Child(child) => child.kill(),
            Self::Forked(forked) => forked.kill(),
            Self::Copied(copied) => copied.process.kill(),
        }
    }

    /// Returns `true` if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            Self::Child(child) => !matches!(child.try_wait(), Ok(None)),
            Self::Forked(forked) => forked.has_ended(),
            Self::Copied(copied) => has_ended(copied.process.descriptor()),
        }
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Child(child) => child.wait(),
            Self::Forked(forked) => forked.wait().map(ExitStatus::from_raw),
            Self::Copied(copied) => copied.wait().map(ExitStatus::from_raw),
        }
    }
}

impl Process {
    /// Returns the number of the process.
    pub(super) fn number(&self) -> io::Result<u32> {
        match self {
            Self::Child(child) => Ok(child.id()),
            Self::Forked(forked) => number(forked.descriptor()),
            Self::Copied(copied) => number(copied.process.descriptor()),
        }
    }
}

impl Copied {
    pub(super) fn new(process: CopiedProcess, template: Arc<Template>) -> Self {
        Self { process, _template: template }
    }

    fn wait(&self) -> io::Result<i32> {
        let fd = self.process.descriptor();
        while !matches!(poll(&mut [PollFd::new(fd, PollFlags::IN)], None), Ok(1..)) {}
        exit_status(fd)
    }
}

/// Returns `true` if a process has ended, which makes its descriptor readable.
pub(crate) fn has_ended(fd: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// Returns the number of the process that a descriptor refers to.
pub(super) fn number(descriptor: &OwnedFd) -> io::Result<u32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd()))?;
    let line = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| io::Error::other("the kernel does not say which process a worker is"))
}

/// Returns how a process has ended, as the kernel reports it; an error if the kernel is too old to
/// know. `fd` is the process's descriptor.
fn exit_status(fd: &OwnedFd) -> io::Result<i32> {
    let mut info = MaybeUninit::<libc::pidfd_info>::zeroed();
    let mask = libc::__u64::from(libc::PIDFD_INFO_EXIT);
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: all bytes of the structure are initialised, and any are valid. The request reads and
    // writes one structure of this size.
    let info = unsafe {
        (*info.as_mut_ptr()).mask = mask;
        if libc::ioctl(fd.as_raw_fd(), libc::PIDFD_GET_INFO, info.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        info.assume_init()
    };
    if info.mask & mask == 0 {
        return Err(io::Error::other("the kernel does not say"));
    }
    Ok(info.exit_code)
}
