//! The template's loop: makes workers by forking and reports their ends. Contains all unsafe code
//! for that.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::mem::{MaybeUninit, forget};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper,
    waitpid,
};
use rustix::time::{ClockId, clock_gettime};

use super::copying::{fill_heap, fork, include_all_memory};
use super::lockdown::close_from;
use super::template_memory::TemplateMemory;
use crate::worker::wire::template_record::Record;
use crate::worker::wire::{INTERRUPTS, RING, SOCKET};

/// How long the other threads must have been idle before the first fork.
const QUIET: Duration = Duration::from_millis(20);

/// How many such periods are waited for.
const MOST_WAITS: u32 = 250;

/// Less processor time than any task takes, and more than reading two clocks takes.
const NOTHING: Duration = Duration::from_micros(50);

/// What a new worker starts with.
pub(super) struct Born {
    pub(super) socket: UnixStream,
    pub(super) interrupts: UnixStream,
    /// The memory for output.
    pub(super) output: OwnedFd,
    /// The template's process number.
    pub(super) parent: u32,
}

/// The numbers of the workers that have not ended, by process. Processes that are not listed are
/// copies that workers have made of themselves and left to this process.
type Children = HashMap<Pid, u64>;

/// Blocks the signal of a child's end, so that [`serve`] can wait for it. Called while there is one
/// thread, whose mask the others inherit.
pub(super) fn block_child_signal() -> io::Result<()> {
    change_child_signal(libc::SIG_BLOCK)
}

/// Makes workers until the parent is gone, which is an error. Returns in each worker.
///
/// Only the calling thread exists in a worker. The template's other threads wait for work that
/// never arrives there, because V8 has no tasks for them. `image` is the number of the file that is
/// mapped into CPython's memory.
pub(super) fn serve(control: &UnixStream, memory: TemplateMemory, image: u64) -> io::Result<Born> {
    // Copies of workers whose worker has ended become children of this process.
    set_child_subreaper(Some(getpid()))?;
    let ended = child_signals()?;
    let mut used = wait_until_quiet()?;
    include_all_memory();
    fill_heap();
    #[expect(unsafe_code, reason = "what another thread writes meanwhile would be lost")]
    // SAFETY: the image's file is mapped into CPython's memory, to which only this thread writes.
    unsafe {
        memory.arrange(image);
    }
    Record::Ready.send(control, &[])?;
    let mut children = Children::new();
    loop {
        if !is_asked(control, &ended, &mut children)? {
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
        #[expect(unsafe_code, reason = "the process has other threads")]
        // SAFETY: the other threads were idle when `wait_until_quiet` looked, and have used no
        // processor time since, so they hold no lock. V8 runs without threads
        // (`isolate/platform.rs`), and the queues of our own are not used any more in the copy.
        let forked = unsafe { fork() };
        let made = match forked {
            Ok(None) => {
                change_child_signal(libc::SIG_UNBLOCK)?;
                return Born::take([socket, interrupts, output], parent);
            }
            Ok(Some(pid)) => described(pid).map(|fd| (pid, fd)),
            Err(error) => Err(error),
        };
        match made {
            Ok((pid, fd)) => {
                Record::Forked(number).send(control, &[fd.as_fd()])?;
                children.insert(pid, number);
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
fn is_asked(control: &UnixStream, ended: &File, children: &mut Children) -> io::Result<bool> {
    let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    match poll(&mut fds, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let [asked, signals] = fds.map(|fd| !fd.revents().is_empty());
    if signals {
        // One signal may stand for several ends.
        let mut signal = [0; size_of::<libc::signalfd_siginfo>()];
        let mut ended = ended;
        ended.read_exact(&mut signal)?;
        loop {
            match waitpid(None, WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(number) = children.remove(&pid) {
                        Record::Ended(number, status.as_raw()).send(control, &[])?;
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
    Ok(asked)
}

/// Returns a descriptor of a new worker. If there is none, the worker is killed.
fn described(pid: Pid) -> io::Result<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
        // It becomes an unlisted child that has ended.
        let _ = kill_process(pid, Signal::KILL);
        error.into()
    })
}

/// Returns a descriptor from which the signals of children that have ended can be read.
fn child_signals() -> io::Result<File> {
    let set = child_signal()?;
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the call reads a set of signals that lives until it returns, and opens a descriptor,
    // which nothing else owns.
    let file = unsafe {
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(fd)
    };
    Ok(file)
}

fn change_child_signal(how: libc::c_int) -> io::Result<()> {
    let set = child_signal()?;
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the call reads a set of signals that lives until it returns, and is to write nowhere.
    let result = unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Returns the set of the one signal that says that a child has ended.
fn child_signal() -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the first call makes an empty set, to which the second one adds a valid signal.
    unsafe {
        if libc::sigemptyset(set.as_mut_ptr()) != 0
            || libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) != 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok(set.assume_init())
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

impl Born {
    /// Moves the descriptors of a worker to the numbers that they have in every worker, and closes
    /// all others, except 1 and 2. Descriptor 0 was the template's own socket.
    fn take(fds: [OwnedFd; 3], parent: u32) -> io::Result<Self> {
        const LAST: i32 = RING;
        rustix::stdio::dup2_stdin(std::io::stdout())?;
        // First to numbers above all of those.
        let [socket, interrupts, output] = fds;
        let move_up = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, LAST + 1);
        let (socket, interrupts, output) =
            (move_up(socket)?, move_up(interrupts)?, move_up(output)?);
        let places = [(&socket, SOCKET), (&interrupts, INTERRUPTS), (&output, RING)];
        #[expect(
            unsafe_code,
            reason = "that nobody owns a descriptor is not known to the compiler"
        )]
        // SAFETY: the calls take numbers and touch no memory. The owners of the descriptors that
        // they replace and close are never used or dropped in a worker: they belong to the caller's
        // frames, which forget them or end with the process, or to other threads, which do not
        // exist here. The three that are left have one owner each, which is made here.
        unsafe {
            for (fd, place) in places {
                if libc::dup2(fd.as_raw_fd(), place) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            for fd in [socket, interrupts, output] {
                forget(fd);
            }
            close_from(LAST + 1)?;
            Ok(Self {
                socket: UnixStream::from_raw_fd(SOCKET),
                interrupts: UnixStream::from_raw_fd(INTERRUPTS),
                output: OwnedFd::from_raw_fd(RING),
                parent,
            })
        }
    }
}
