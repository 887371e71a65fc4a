//! Tests of workers that can be copied: of what their parent decides, and what they cannot do.

use std::ffi::c_long;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{WaitOptions, getpid, set_child_subreaper, waitpid};

use super::super::{Settings, after_fork, after_load, before_threads};
use super::probes::{copys_socket, fork, raw};
use super::{attempt, say, settings, tell, worker};
use crate::worker::child::guardian;
use crate::worker::child::session_fork::forget_ended_copies;
use crate::worker::wire::notifications::Listener;
use crate::worker::wire::{COPY_THREADS, FORK, THREAD};

/// How many processes and threads a worker attempts to make.
const ATTEMPTS: usize = 50;

/// How many processes its parent permits.
const PERMITTED: usize = 3;

#[test]
fn without_its_parents_permission_a_forkable_worker_makes_no_process_and_no_thread() {
    let (said, ended) = attempt("forkable:alone");
    assert_eq!(said.unwrap(), "0 processes, a thread: false, clone3: 38");
    assert_eq!(ended, "code 0");
}

#[test]
fn a_forkable_worker_makes_as_many_processes_as_its_parent_permits() {
    let (said, ended) = attempt("forkable:permitted");
    assert_eq!(said.unwrap(), format!("{PERMITTED} processes, a thread: false, clone3: 38"));
    assert_eq!(ended, "code 0");
}

#[test]
fn a_forkable_worker_cannot_signal_anybody() {
    let (said, ended) = attempt("forkable:signal");
    assert_eq!(said.unwrap(), "-1 1");
    assert_eq!(ended, "code 0");
}

/// Tells a worker of a family, or a copy, to copy itself as it should.
pub(crate) const COPY: u8 = b'c';

/// Tells it to copy itself and end. Its copy then asks for threads until it gets one, from the next
/// order on.
pub(crate) const LEAVE_A_STRAY: u8 = b's';

/// Tells it to do something else than to copy itself.
pub(crate) const IDLE: u8 = b'i';

/// Starts a family: a template and a worker, which sends the listener over this socket and then
/// does what comes over it. Returns the process that has started them.
pub(crate) fn family(socket: UnixStream) -> Child {
    super::spawn("forkable:family", OwnedFd::from(socket).into())
}

/// Runs a probe, in the process that starts the worker and acts as its parent.
pub(super) fn run(name: &str) {
    if name == "family" {
        return tell(worker(template));
    }
    let (ours, theirs) = UnixStream::pair().unwrap();
    let permitted = match name {
        "permitted" => Some(PERMITTED),
        _ => None,
    };
    // Ends with this process.
    std::thread::spawn(move || decide(&ours, permitted));
    let job = match name {
        "signal" => signal,
        _ => multiply,
    };
    tell(worker(move || {
        // The only descriptor that the lockdown leaves.
        rustix::stdio::dup2_stdin(&theirs).unwrap();
        lock();
        job();
    }));
}

/// Locks a worker down that its parent may copy.
fn lock() {
    let settings = Settings { forkable: true, ..settings() };
    let early = guardian::enter(before_threads(&settings).unwrap()).unwrap();
    after_load(early, &settings, |listener| send(&listener)).unwrap();
}

/// Makes a worker, as a template does, and waits.
fn template() {
    let settings = Settings { forkable: true, ..settings() };
    let early = guardian::enter(before_threads(&settings).unwrap()).unwrap();
    set_child_subreaper(Some(getpid())).unwrap();
    let own = std::process::id();
    if fork() {
        let early = after_fork(early, own).unwrap();
        forget_ended_copies().unwrap();
        after_load(early, &settings, |listener| send(&listener)).unwrap();
        obey(&io::stdin());
    }
    while waitpid(None, WaitOptions::empty()).is_ok() {}
}

/// Does what comes over a socket, until it is closed.
fn obey(socket: &impl AsFd) {
    let mut byte = [0];
    while rustix::io::read(socket, &mut byte).unwrap() > 0 {
        match byte[0] {
            COPY if fork() => {
                for _ in 0..COPY_THREADS {
                    std::thread::spawn(std::thread::park);
                }
                answer(b"copy");
                return obey(&copys_socket());
            }
            LEAVE_A_STRAY if fork() => {
                // It has the worker's socket.
                rustix::io::read(socket, &mut byte).unwrap();
                while std::thread::Builder::new().spawn(std::thread::park).is_err() {}
                answer(b"stray");
                std::thread::park();
            }
            LEAVE_A_STRAY => break,
            _ => {}
        }
    }
    raw(libc::SYS_exit_group, [0; 6]);
}

/// Says who this is, over the socket that a copy was given.
fn answer(who: &[u8]) {
    rustix::io::write(copys_socket(), who).unwrap();
}

/// Acts as the parent: permits this many copies, and refuses everything else. Without a number, it
/// has ended.
fn decide(socket: &UnixStream, permitted: Option<usize>) {
    let Some(mut permitted) = permitted else { return drop(receive(socket)) };
    let listener = Listener::new(receive(socket).unwrap());
    while let Ok(call) = listener.next(Duration::from_mins(1)) {
        let Some(call) = call else { continue };
        assert!(matches!(call.argument, FORK | THREAD), "{call:?}");
        if call.argument == FORK && permitted > 0 {
            permitted -= 1;
            listener.permit(&call).unwrap();
        } else {
            listener.refuse(&call, libc::EPERM).unwrap();
        }
    }
}

/// Makes as many processes and threads as it can, as a worker that was taken over.
fn multiply() {
    let flags = c_long::try_from(FORK).unwrap();
    let mut made = 0;
    for _ in 0..ATTEMPTS {
        match raw(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]) {
            0 => {
                raw(libc::SYS_exit_group, [0; 6]);
            }
            1.. => made += 1,
            _ => {}
        }
    }
    let thread = std::thread::Builder::new().spawn(|| ()).is_ok();
    raw(libc::SYS_clone3, [0; 6]);
    let error = io::Error::last_os_error().raw_os_error().unwrap();
    say(format!("{made} processes, a thread: {thread}, clone3: {error}"));
}

fn signal() {
    let done = raw(libc::SYS_tgkill, [1, 1, c_long::from(libc::SIGKILL), 0, 0, 0]);
    say(format!("{done} {}", io::Error::last_os_error().raw_os_error().unwrap()));
}

fn send(listener: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [listener.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    let bytes = [IoSlice::new(&[0])];
    sendmsg(io::stdin(), &bytes, &mut ancillary, SendFlags::empty())?;
    Ok(())
}

pub(crate) fn receive(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::empty())?;
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    fds.flatten().next().ok_or_else(|| io::ErrorKind::InvalidData.into())
}
