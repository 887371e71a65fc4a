//! Tests of a family with workers that were taken over: real processes under the filter, and the
//! host's supervision of them.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::oneshot;

use super::HANG;
use crate::worker::child::lockdown::tests::forkable::{COPY, IDLE, LEAVE_A_STRAY, family, receive};
use crate::worker::parent::process::has_ended;
use crate::worker::parent::strays::{CopiedProcess, Processes, children, parent, process_of};
use crate::worker::parent::supervision::{Ends, Original, Supervisor};
use crate::worker::wire::output_ring;

/// A template and its first worker, as the host has them.
struct Family {
    starter: Child,
    root: u32,
    template: u32,
    processes: Arc<Processes>,
    supervisor: Arc<Supervisor>,
    first: Worker,
}

/// A worker, and the socket over which it gets its orders.
struct Worker {
    number: u32,
    socket: UnixStream,
    /// `None` of the first one.
    copy: Option<CopiedProcess>,
}

/// A fork that was asked for.
struct Fork {
    socket: UnixStream,
    copy: oneshot::Receiver<std::io::Result<CopiedProcess>>,
}

struct Process(OwnedFd);

impl Original for Process {
    fn not_forked(&self) -> Option<std::io::Error> {
        None
    }

    fn is_alive(&self) -> bool {
        !has_ended(&self.0)
    }
}

impl Family {
    fn start() -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let starter = family(theirs);
        socket.set_read_timeout(Some(HANG)).unwrap();
        let listener = receive(&socket).unwrap();
        let only = |process| match children(process)[..] {
            [child] => child,
            ref others => panic!("{others:?}"),
        };
        let root = only(starter.id());
        let template = only(root);
        let number = only(template);
        let processes = Arc::new(Processes::new(root));
        processes.add(number);
        let supervisor = Supervisor::new(listener, Arc::clone(&processes));
        let first = Worker { number, socket, copy: None };
        Self { starter, root, template, processes, supervisor, first }
    }

    /// Asks for a copy of a worker, which gets this order. `after` runs if the fork fails.
    fn ask(&self, worker: &Worker, order: u8, after: impl FnOnce() + Send + 'static) -> Fork {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let (_, interrupts) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(HANG)).unwrap();
        let ends = Ends { socket: theirs, interrupts, output: output_ring::file().unwrap() };
        let original = Arc::new(Process(process_of(worker.number).unwrap()));
        let after = Box::new(|_| after());
        let copy = self.supervisor.permit_copy(worker.number, original, ends, after).unwrap();
        (&worker.socket).write_all(&[order]).unwrap();
        Fork { socket, copy }
    }

    fn copy(&self, worker: &Worker) -> Worker {
        self.ask(worker, COPY, || ()).end().unwrap()
    }

    /// Returns the processes of the family.
    fn all(&self) -> Vec<u32> {
        let first = children(self.template);
        let second = first.iter().flat_map(|one| children(*one));
        first.iter().copied().chain(second).collect()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_raw(self.root.cast_signed()).unwrap(), Signal::KILL);
        let _ = self.starter.wait();
    }
}

impl Fork {
    /// Waits for the copy. It has said that it is one, over the socket that it was given.
    fn end(self) -> std::io::Result<Worker> {
        let copy = self.copy.blocking_recv().unwrap()?;
        let mut said = [0; 5];
        let mut socket = self.socket;
        let count = socket.read(&mut said).unwrap();
        assert_eq!(&said[..count], b"copy");
        let number = copy.number();
        Ok(Worker { number, socket, copy: Some(copy) })
    }
}

#[test]
fn a_copy_whose_worker_has_ended_takes_the_place_of_no_other_and_is_killed() {
    let family = Family::start();
    let hostile = family.copy(&family.first);
    // What it leaves behind asks for threads for as long as it lives.
    let failed = family.ask(&hostile, LEAVE_A_STRAY, || ()).end();
    let error = failed.err().expect("its copy was taken for one");
    assert_eq!(error.to_string(), "the worker has ended");
    let is_stray = |one: &u32| *one != family.first.number && *one != hostile.number;
    let strays: Vec<_> = family.all().into_iter().filter(is_stray).collect();
    let [stray] = strays[..] else { panic!("{strays:?}") };
    assert_eq!(parent(stray), Some(family.template), "it is an orphan");
    (&hostile.socket).write_all(&[LEAVE_A_STRAY]).unwrap();
    // Another session is forked. Its copy says who it is over the socket that the host gave it.
    let copy = family.copy(&family.first);
    assert_ne!(copy.number, stray);
    assert!(family.processes.end_strays());
    assert_eq!(parent(stray), None);
    assert_eq!(parent(copy.number), Some(family.first.number), "the session's copy lives");
    // The same with what the host does at once.
    let hostile = family.copy(&copy);
    let processes = Arc::clone(&family.processes);
    let after = move || assert!(processes.end_strays());
    assert!(family.ask(&hostile, LEAVE_A_STRAY, after).end().is_err());
    let mut left = family.all();
    left.retain(|one| *one != hostile.number);
    left.sort_unstable();
    let mut expected = [family.first.number, copy.number];
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn a_worker_that_does_not_copy_itself_holds_up_no_other_fork() {
    let family = Family::start();
    let hostile = family.copy(&family.first);
    let stuck = family.ask(&hostile, IDLE, || ());
    let copy = family.copy(&family.first);
    assert!(family.copy(&copy).copy.is_some());
    // Its fork ends with it.
    drop(hostile.copy);
    let error = stuck.end().err().unwrap();
    assert_eq!(error.to_string(), "the worker has ended");
}
