//! In the template: makes workers by forking, and says how they end. The one file with unsafe code
//! for it.

use std::io;
use std::mem::forget;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, pidfd_open,
    setrlimit, waitpid,
};
use rustix::time::{ClockId, clock_gettime};

use crate::worker::wire::template_record::Record;

/// How long the other threads have to have done nothing before the first fork.
const QUIET: Duration = Duration::from_millis(20);

/// How often that is waited for.
const MOST_WAITS: u32 = 250;

/// Less than any task takes them, and more than it takes to read two clocks.
const NOTHING: Duration = Duration::from_micros(50);

/// The addresses that a process's memory can have.
const ADDRESSES: usize = 1 << 47;

/// What a worker that was just made has.
pub(super) struct Born {
    pub(super) socket: UnixStream,
    pub(super) interrupts: UnixStream,
    /// The template's process.
    pub(super) parent: u32,
}

/// A worker, as the template has it.
struct Child {
    number: u64,
    pid: Pid,
    fd: OwnedFd,
}

/// Makes workers until the parent is gone; that is an error. It returns in the workers.
///
/// Only the calling thread goes on in a worker. The others wait for work that never comes there: V8
/// has none of its own.
pub(super) fn serve(control: &UnixStream) -> io::Result<Born> {
    // One for each copy: as many as there may be.
    let descriptors = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: descriptors, maximum: descriptors })?;
    let mut used = wait_until_quiet()?;
    include_all_memory();
    Record::Ready.send(control, &[])?;
    let mut children: Vec<Child> = Vec::new();
    loop {
        if !is_asked(control, &mut children)? {
            continue;
        }
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (record, fds) = Record::receive(control)?.ok_or_else(gone)?;
        let Record::Fork(number) = record else { return Err(io::ErrorKind::InvalidData.into()) };
        let Ok([socket, interrupts]) = <[OwnedFd; 2]>::try_from(fds) else {
            // They were sent, and there was no room for them.
            Record::Failed(number, Errno::MFILE.raw_os_error()).send(control, &[])?;
            continue;
        };
        if others_time()?.saturating_sub(used) >= NOTHING {
            used = wait_until_quiet()?;
        }
        let parent = std::process::id();
        let made = match fork() {
            Ok(None) => {
                leave_behind(&socket, &interrupts)?;
                // Their descriptors are closed, and the numbers are others' soon.
                forget(children);
                return Ok(Born { socket: socket.into(), interrupts: interrupts.into(), parent });
            }
            Ok(Some(pid)) => watched(number, pid),
            Err(error) => Err(error),
        };
        match made {
            Ok(child) => {
                Record::Forked(number).send(control, &[child.fd.as_fd()])?;
                children.push(child);
            }
            Err(error) => {
                let error = error.raw_os_error().unwrap_or_default();
                Record::Failed(number, error).send(control, &[])?;
            }
        }
    }
}

/// Waits for something to happen, and says which workers have ended. Returns whether the parent
/// wants something.
fn is_asked(control: &UnixStream, children: &mut Vec<Child>) -> io::Result<bool> {
    let watched = children.iter().map(|child| PollFd::new(&child.fd, PollFlags::IN));
    let mut fds: Vec<_> =
        std::iter::once(PollFd::new(control, PollFlags::IN)).chain(watched).collect();
    match poll(&mut fds, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    let mut happened = happened.into_iter();
    let is_asked = happened.next().unwrap_or_default();
    let ended: Vec<Child> =
        children.extract_if(.., |_| happened.next().unwrap_or_default()).collect();
    for Child { number, pid, .. } in ended {
        if let Some((_, status)) = waitpid(Some(pid), WaitOptions::empty())? {
            Record::Ended(number, status.as_raw()).send(control, &[])?;
        }
    }
    Ok(is_asked)
}

/// A worker that was made, with what tells of its end. Without that there is none.
fn watched(number: u64, pid: Pid) -> io::Result<Child> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Child { number, pid, fd }),
        Err(error) => {
            kill_process(pid, Signal::KILL)?;
            waitpid(Some(pid), WaitOptions::empty())?;
            Err(error.into())
        }
    }
}

/// The processor time that the other threads have used so far, to some microseconds.
fn others_time() -> io::Result<Duration> {
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::try_from(time).map_err(|_| io::Error::other("a clock is before its start"))
    };
    let own = read(ClockId::ThreadCPUTime)?;
    Ok(read(ClockId::ProcessCPUTime)?.saturating_sub(own))
}

/// Waits until no other thread does anything: one that held a lock would hold it for ever in the
/// worker. Returns the time that they have used then.
fn wait_until_quiet() -> io::Result<Duration> {
    for _ in 0..MOST_WAITS {
        let before = others_time()?;
        std::thread::sleep(QUIET);
        let after = others_time()?;
        if after.saturating_sub(before) < NOTHING {
            return Ok(after);
        }
    }
    Err(io::Error::other("the threads of V8 do not come to rest"))
}

/// Has copies of this process get all of its memory: V8 leaves its own out, for programs that start
/// others.
fn include_all_memory() {
    #[expect(unsafe_code, reason = "advice about memory is unsafe as a whole")]
    // SAFETY: this advice changes nothing in this process: what is mapped stays as it is. The range
    // is all that a process can have; that there are holes in it is an error that comes after the
    // advice was taken for the rest.
    let _ = unsafe {
        rustix::mm::madvise(std::ptr::null_mut(), ADDRESSES, rustix::mm::Advice::LinuxDoFork)
    };
}

/// Makes a copy of this process with only this thread. `None` in the copy.
fn fork() -> io::Result<Option<Pid>> {
    #[expect(unsafe_code, reason = "the copy has the memory of all threads, but only one of them")]
    // SAFETY: of the threads that are missing in the copy none holds a lock: the caller has waited
    // until they did nothing. The allocator sees to its own locks (`fork` of the C library does).
    // Nothing is waited for in the copy that a missing thread would do: V8 runs without threads of
    // its own (`engine/platform.rs`), and the queues of the others, ours, are not used any more.
    let result = unsafe { libc::fork() };
    match result {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Closes, in a worker, every descriptor but 1, 2 and these. What was 0 is the template's own
/// socket.
fn leave_behind(socket: &OwnedFd, interrupts: &OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(std::io::stdout())?;
    let mut kept = [socket.as_raw_fd(), interrupts.as_raw_fd()].map(i32::cast_unsigned);
    kept.sort_unstable();
    let [low, high] = kept;
    for (first, last) in [(3, low - 1), (low + 1, high - 1), (high + 1, u32::MAX)] {
        if first > last {
            continue;
        }
        #[expect(
            unsafe_code,
            reason = "that nobody owns a descriptor is not known to the compiler"
        )]
        // SAFETY: the call takes three numbers and touches no memory. What owns the descriptors
        // that it closes is never used or dropped in a worker: the caller's `children` are
        // forgotten, its `control` is borrowed from a frame that ends with the process, and other
        // threads, which are not there, own the rest.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
