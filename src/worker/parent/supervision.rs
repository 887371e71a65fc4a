//! Answers the calls of a family that wait in the kernel, while processes of it are being copied:
//! permits each copy that was asked for, and its threads, and refuses everything else.
//!
//! Forks of different workers go on side by side, so that one that does not go on holds up no
//! other.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};
use tokio::sync::oneshot;

use super::launch::START_TIME;
use super::link::thread;
use super::process::has_ended;
use super::strays::{CopiedProcess, Processes, children, parent, process_of};
use crate::support::lock::lock;
use crate::worker::wire::notifications::{Listener, Notification};
use crate::worker::wire::{COPY_THREADS, FORK, INTERRUPTS, RING, SOCKET, THREAD};

/// How often it is checked whether a worker still can be copied.
const TICK: Duration = Duration::from_millis(20);

/// One permission makes one child.
const MOST_BORN: usize = 2;

/// Answers the calls of one family.
pub(crate) struct Supervisor {
    listener: Listener,
    processes: Arc<Processes>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The forks that the thread has not taken up yet.
    asked: Vec<Fork>,
    /// Set while there is a thread.
    is_running: bool,
}

/// The descriptors of a new copy.
pub(crate) struct Ends {
    pub(crate) socket: UnixStream,
    pub(crate) interrupts: UnixStream,
    pub(crate) output: OwnedFd,
}

/// A worker that is to be copied.
pub(crate) trait Original: Send + Sync {
    /// Returns why it cannot be copied, if it has said so.
    fn not_forked(&self) -> Option<io::Error>;
    /// Returns `false` if it has ended.
    fn is_alive(&self) -> bool;
}

/// Runs when a fork has failed, before that is told: makes sure that nothing is left of it. Gets
/// whether the worker was permitted to copy itself.
pub(crate) type AfterFailure = Box<dyn FnOnce(bool) + Send>;

/// A fork that was asked for.
struct Fork {
    worker: u32,
    original: Arc<dyn Original>,
    ends: Ends,
    started: Instant,
    stage: Stage,
    /// The children that the worker has had since its permission, in case that it fails.
    born: Vec<(u32, OwnedFd)>,
    answer: oneshot::Sender<io::Result<CopiedProcess>>,
    after_failure: AfterFailure,
}

enum Stage {
    /// The worker is to copy itself.
    Asked,
    /// It may, and its copy is to start its first thread.
    Permitted,
    /// There is a copy. It may start so many more threads.
    Copying { copy: CopiedProcess, thread: i32, threads: u32 },
}

impl Supervisor {
    pub(crate) fn new(listener: OwnedFd, processes: Arc<Processes>) -> Arc<Self> {
        let listener = Listener::new(listener);
        Arc::new(Self { listener, processes, state: Mutex::default() })
    }

    /// Permits the worker of this number one copy, and gives it these descriptors. Has to be called
    /// before the worker learns that it is to copy itself, and once at a time for each worker.
    pub(crate) fn permit_copy(
        self: &Arc<Self>,
        worker: u32,
        original: Arc<dyn Original>,
        ends: Ends,
        after_failure: AfterFailure,
    ) -> io::Result<oneshot::Receiver<io::Result<CopiedProcess>>> {
        let (answer, copy) = oneshot::channel();
        let (stage, born, started) = (Stage::Asked, Vec::new(), Instant::now());
        let fork = Fork { worker, original, ends, started, stage, born, answer, after_failure };
        let mut forks = lock(&self.state);
        if !forks.is_running {
            let own = Arc::clone(self);
            thread("isolet-fork", move || own.serve())?;
            forks.is_running = true;
        }
        forks.asked.push(fork);
        Ok(copy)
    }

    /// Answers calls until no fork is under way any more.
    fn serve(&self) {
        let (mut forks, mut looked) = (Vec::new(), Instant::now());
        loop {
            {
                let mut state = lock(&self.state);
                forks.append(&mut state.asked);
                if forks.is_empty() {
                    state.is_running = false;
                    return;
                }
            }
            match self.listener.next(TICK) {
                Ok(Some(call)) => {
                    // Its fork may have been asked for a moment ago.
                    forks.append(&mut lock(&self.state).asked);
                    self.decide(&call, &mut forks);
                }
                Ok(None) => {}
                Err(error) => {
                    let (kind, reason) = (error.kind(), error.to_string());
                    let all = forks.drain(..);
                    all.for_each(|one| self.fail(one, io::Error::new(kind, reason.clone())));
                }
            }
            // Also if there is one call after another.
            if looked.elapsed() >= TICK {
                looked = Instant::now();
                self.look(&mut forks);
            }
        }
    }

    /// Answers a call, and ends the fork that it completes.
    fn decide(&self, call: &Notification, forks: &mut Vec<Fork>) {
        let Some(at) = forks.iter().position(|fork| self.is_expected(call, fork)) else {
            // If this fails, the call is gone.
            let _ = self.listener.refuse(call, libc::EPERM);
            return;
        };
        let mut fork = forks.swap_remove(at);
        match self.advance(call, &mut fork) {
            Ok(false) => forks.push(fork),
            Ok(true) => {
                self.processes.end_fork(fork.worker);
                if let Stage::Copying { copy, .. } = fork.stage {
                    // If nobody waits any more, the copy is killed.
                    let _ = fork.answer.send(Ok(copy));
                }
            }
            Err(error) => self.fail(fork, error),
        }
    }

    fn is_expected(&self, call: &Notification, fork: &Fork) -> bool {
        match fork.stage {
            Stage::Asked => call.argument == FORK && is_of(fork.worker, call),
            Stage::Permitted => call.argument == THREAD && self.is_child(call, fork.worker),
            Stage::Copying { thread, .. } => call.argument == THREAD && call.thread == thread,
        }
    }

    /// Permits a call that is expected. Returns `true` if it was the last one of its fork.
    fn advance(&self, call: &Notification, fork: &mut Fork) -> io::Result<bool> {
        match &mut fork.stage {
            Stage::Asked => {
                self.processes.begin_fork(fork.worker);
                fork.stage = Stage::Permitted;
                self.listener.permit(call)?;
                Ok(false)
            }
            Stage::Permitted => {
                let copy = self.new_copy(call)?;
                let Ends { socket, interrupts, output } = &fork.ends;
                self.listener.give(call, socket.as_fd(), SOCKET)?;
                self.listener.give(call, interrupts.as_fd(), INTERRUPTS)?;
                self.listener.give(call, output.as_fd(), RING)?;
                let threads = COPY_THREADS - 1;
                fork.stage = Stage::Copying { copy, thread: call.thread, threads };
                self.listener.permit(call)?;
                Ok(threads == 0)
            }
            Stage::Copying { threads, .. } => {
                *threads = threads.saturating_sub(1);
                let is_done = *threads == 0;
                self.listener.permit(call)?;
                Ok(is_done)
            }
        }
    }

    /// Makes the process known that makes the call.
    fn new_copy(&self, call: &Notification) -> io::Result<CopiedProcess> {
        let number = u32::try_from(call.thread).map_err(io::Error::other)?;
        let fd = process_of(number)?;
        // While it waits, its number belongs to nobody else.
        if !self.listener.is_waiting(call) {
            return Err(io::Error::other("the copy has ended"));
        }
        let copy = self.processes.admit(number, fd);
        copy.ok_or_else(|| io::Error::other("the copy was there before"))
    }

    /// Returns `true` if the only thread of a process that nobody knows makes the call, and the
    /// worker is its parent. A process whose parent has ended is a child of the template, and so is
    /// nobody's copy.
    fn is_child(&self, call: &Notification, worker: u32) -> bool {
        u32::try_from(call.thread).is_ok_and(|number| {
            parent(number) == Some(worker)
                && !self.processes.knows(number)
                && process_of(number).is_ok()
                && self.listener.is_waiting(call)
        })
    }

    /// Ends the forks that do not go on.
    fn look(&self, forks: &mut Vec<Fork>) {
        let mut at = 0;
        while let Some(fork) = forks.get_mut(at) {
            if matches!(fork.stage, Stage::Permitted) {
                fork.record_children(&self.processes);
            }
            match fork.failure() {
                Some(error) => self.fail(forks.swap_remove(at), error),
                None => at += 1,
            }
        }
    }

    /// Ends a fork, and what it has led to.
    fn fail(&self, fork: Fork, error: io::Error) {
        let Fork { worker, stage, born, answer, after_failure, .. } = fork;
        let is_permitted = !matches!(stage, Stage::Asked);
        for (_, child) in born {
            let _ = pidfd_send_signal(&child, Signal::KILL);
        }
        // Kills the copy, if there is one.
        drop(stage);
        self.processes.end_fork(worker);
        let parts = Arc::new(Mutex::new(Some((answer, error, after_failure))));
        let own = Arc::clone(&parts);
        let end = move || {
            let Some((answer, error, after_failure)) = lock(&own).take() else { return };
            after_failure(is_permitted);
            let _ = answer.send(Err(error));
        };
        // Other forks go on meanwhile.
        if thread("isolet-strays", end.clone()).is_err() {
            end();
        }
    }
}

impl Fork {
    /// Returns why the fork does not go on, if so.
    fn failure(&self) -> Option<io::Error> {
        if let Stage::Copying { copy, .. } = &self.stage {
            if has_ended(copy.descriptor()) {
                return Some(io::Error::other("the copy has ended"));
            }
        } else if let Some(error) = self.original.not_forked() {
            return Some(error);
        } else if !self.original.is_alive() {
            return Some(io::Error::other("the worker has ended"));
        }
        (self.started.elapsed() > START_TIME).then(|| io::ErrorKind::TimedOut.into())
    }

    /// Keeps hold of the worker's children that nobody knows.
    fn record_children(&mut self, processes: &Processes) {
        for child in children(self.worker) {
            let is_held = self.born.iter().any(|(number, _)| *number == child);
            if is_held || self.born.len() == MOST_BORN || processes.knows(child) {
                continue;
            }
            if let Ok(fd) = process_of(child)
                && parent(child) == Some(self.worker)
            {
                self.born.push((child, fd));
            }
        }
    }
}

/// Returns `true` if a process makes the call.
fn is_of(process: u32, call: &Notification) -> bool {
    fs::exists(format!("/proc/{process}/task/{}", call.thread)).is_ok_and(|exists| exists)
}
