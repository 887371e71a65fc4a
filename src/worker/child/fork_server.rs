//! The template's loop: makes workers by forking and reports their ends. Contains all unsafe code
//! for that.

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

/// How long the other threads must have been idle before the first fork.
const QUIET: Duration = Duration::from_millis(20);

/// How many such periods are waited for.
const MOST_WAITS: u32 = 250;

/// Less processor time than any task takes, and more than reading two clocks takes.
const NOTHING: Duration = Duration::from_micros(50);

/// The size of the address space that a process can use, in bytes.
const ADDRESSES: usize = 1 << 47;

/// What a new worker starts with.
pub(super) struct Born {
    pub(super) socket: UnixStream,
    pub(super) interrupts: UnixStream,
    /// The memory for output.
    pub(super) output: OwnedFd,
    /// The template's process number.
    pub(super) parent: u32,
}

/// A worker, in the template's records.
struct Child {
    number: u64,
    pid: Pid,
    fd: OwnedFd,
}

/// Makes workers until the parent is gone, which is an error. Returns in each worker.
///
/// Only the calling thread exists in a worker. The template's other threads wait for work that
/// never arrives there, because V8 has no tasks for them.
pub(super) fn serve(control: &UnixStream) -> io::Result<Born> {
    // Each worker takes a descriptor, so the limit is raised to its maximum.
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
        let Ok([socket, interrupts, output]) = <[OwnedFd; 3]>::try_from(fds) else {
            // The descriptors were sent, but this process had no room for them.
            Record::Failed(number, Errno::MFILE.raw_os_error()).send(control, &[])?;
            continue;
        };
        if others_time()?.saturating_sub(used) >= NOTHING {
            used = wait_until_quiet()?;
        }
        let parent = std::process::id();
        let made = match fork() {
            Ok(None) => {
                leave_behind([&socket, &interrupts, &output])?;
                // Their descriptors are closed, and other files will soon reuse the numbers.
                forget(children);
                let (socket, interrupts) = (socket.into(), interrupts.into());
                return Ok(Born { socket, interrupts, output, parent });
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

/// Waits for an event and reports the workers that have ended. Returns `true` if the parent has
/// sent a record.
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

/// Records a new worker, with a descriptor that reports its end. If there is no such descriptor,
/// the worker is killed.
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

/// Returns the processor time that the other threads have used so far, accurate to a few
/// microseconds.
fn others_time() -> io::Result<Duration> {
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::try_from(time).map_err(|_| io::Error::other("a clock is before its start"))
    };
    let own = read(ClockId::ThreadCPUTime)?;
    Ok(read(ClockId::ProcessCPUTime)?.saturating_sub(own))
}

/// Waits until all other threads are idle: a lock held by one would stay locked forever in the
/// worker. Returns the processor time that they have used by then.
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

/// Includes all memory in copies of this process. V8 excludes its own, for programs that start
/// other programs.
fn include_all_memory() {
    #[expect(unsafe_code, reason = "advice about memory is unsafe as a whole")]
    // SAFETY: this advice changes nothing in this process: all mappings stay as they are. The range
    // is the whole address space. The holes in it cause an error, but only after the advice was
    // applied to the rest.
    let _ = unsafe {
        rustix::mm::madvise(std::ptr::null_mut(), ADDRESSES, rustix::mm::Advice::LinuxDoFork)
    };
}

/// Makes a copy of this process with only this thread. Returns `None` in the copy.
fn fork() -> io::Result<Option<Pid>> {
    #[expect(unsafe_code, reason = "the copy has the memory of all threads, but only one of them")]
    // SAFETY: none of the threads that are missing in the copy holds a lock, because the caller has
    // waited until they were idle. The allocator handles its own locks in the C library's `fork`.
    // Nothing in the copy waits for a missing thread: V8 runs without threads
    // (`isolate/platform.rs`), and the queues of our own threads are not used any more.
    let result = unsafe { libc::fork() };
    match result {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Closes every descriptor in a worker except 1, 2 and these. Descriptor 0 was the template's own
/// socket.
fn leave_behind(kept: [&OwnedFd; 3]) -> io::Result<()> {
    rustix::stdio::dup2_stdin(std::io::stdout())?;
    let mut kept = kept.map(|fd| i32::cast_unsigned(fd.as_raw_fd()));
    kept.sort_unstable();
    let [low, middle, high] = kept;
    let gaps = [(3, low - 1), (low + 1, middle - 1), (middle + 1, high - 1), (high + 1, u32::MAX)];
    for (first, last) in gaps {
        if first > last {
            continue;
        }
        #[expect(
            unsafe_code,
            reason = "that nobody owns a descriptor is not known to the compiler"
        )]
        // SAFETY: the call takes three numbers and touches no memory. The owners of the descriptors
        // that it closes are never used or dropped in a worker. The caller's `children` are
        // forgotten, and its `control` is borrowed from a frame that ends with the process. The
        // rest belong to other threads, which do not exist here.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
