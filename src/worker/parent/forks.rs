//! Copies a worker that has a session. The kernel asks this side before it makes a process or a
//! thread for the worker, and this side permits what belongs to a fork that its owner has asked
//! for.
//!
//! A worker, its copies and theirs are a family: they have one filter, and one listener for it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::launch::{START_TIME, in_time};
use super::link::{self, Bounds, Started, WorkerControl, thread};
use super::process::{Copied, Process};
use super::template::Template;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::IsolationReport;
use crate::protocol::{Control, Forker, Host, Link, Message, Outbox};
use crate::support::lock::lock;
use crate::worker::wire::notifications::{Listener, Notification};
use crate::worker::wire::output_ring::{self, Consumer};
use crate::worker::wire::{COPY_THREADS, FORK, INTERRUPTS, RING, SOCKET, THREAD};

/// How often it is checked whether the worker still can be copied.
const TICK: Duration = Duration::from_millis(20);

/// A worker that was made to be copied, its copies, and theirs.
pub(super) struct Family {
    /// Locked during a fork, so that a new process is the copy that was asked for.
    listener: Mutex<Listener>,
    /// The numbers of the processes.
    members: Mutex<HashSet<u32>>,
    max_copies: usize,
    bounds: Bounds,
    /// Reads what the workers send, as far as it can. Otherwise threads do.
    event_loop: Option<Handle>,
    /// It reaps the processes, and ends them all when it ends.
    template: Arc<Template>,
}

/// A process of a family. It ends when this is dropped, and counts until then.
pub(super) struct Member {
    family: Arc<Family>,
    process: u32,
    control: Arc<WorkerControl>,
    messages: Outbox,
    report: IsolationReport,
}

/// The descriptors of a new copy.
struct Ends {
    socket: UnixStream,
    interrupts: UnixStream,
    output: OwnedFd,
}

impl Family {
    /// Makes the family of a worker, of which there are no copies yet.
    pub(super) fn new(
        listener: OwnedFd,
        max_copies: usize,
        bounds: Bounds,
        event_loop: Option<Handle>,
        template: Arc<Template>,
    ) -> Arc<Self> {
        let listener = Mutex::new(Listener::new(listener));
        let members = Mutex::default();
        Arc::new(Self { listener, members, max_copies, bounds, event_loop, template })
    }

    /// Gives a link the ability to copy its worker, which is in this family.
    pub(super) fn join(
        self: Arc<Self>,
        link: &mut Link,
        control: Arc<WorkerControl>,
        report: &IsolationReport,
    ) -> io::Result<()> {
        let process = control.process_number()?;
        lock(&self.members).insert(process);
        let (messages, report) = (Arc::clone(&link.messages), report.clone());
        link.forker = Some(Arc::new(Member { family: self, process, control, messages, report }));
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.control.terminate();
        lock(&self.family.members).remove(&self.process);
    }
}

impl Forker for Member {
    fn fork(&self, host: Arc<dyn Host>) -> BoxFuture<'_, Result<(Link, IsolationReport), Error>> {
        Box::pin(self.copy(host))
    }
}

impl Member {
    async fn copy(&self, host: Arc<dyn Host>) -> Result<(Link, IsolationReport), Error> {
        let failed = |error: io::Error| {
            let message = format!("the session cannot be forked: {error}");
            Error::new(ErrorKind::Start, message).with_source(error).with_session_alive()
        };
        let (limit, needed) = (self.family.max_copies, lock(&self.family.members).len());
        if needed > limit {
            let message =
                format!("too many copies of a session at once: limit {limit}, needed {needed}");
            let hint = "drop some, or raise the number with `SandboxBuilder::forkable`";
            return Err(Error::new(ErrorKind::Limit, message).with_hint(hint).with_session_alive());
        }
        let (socket, their_socket) = UnixStream::pair().map_err(failed)?;
        let (interrupts, their_interrupts) = UnixStream::pair().map_err(failed)?;
        interrupts.set_nonblocking(true).map_err(failed)?;
        // The copy cannot change how its descriptors are used.
        their_socket.set_nonblocking(true).map_err(failed)?;
        let output = output_ring::file().map_err(failed)?;
        let ring = Consumer::map(output.as_fd()).map_err(failed)?;
        let ends = Ends { socket: their_socket, interrupts: their_interrupts, output };
        let process = self.supervised(ends).await.map_err(failed)?;
        let process = Process::Copied(Copied::new(process, Arc::clone(&self.family.template)));
        let Family { bounds, event_loop, .. } = &*self.family;
        let ends = link::Ends { socket, interrupts, ring };
        let event_loop = event_loop.as_ref();
        let started = link::start(ends, process, host, *bounds, event_loop, |_| Ok(()));
        let Started { mut link, control, ready } = started.map_err(failed)?;
        let mut new = EndOnDrop(Some(Arc::clone(&control)));
        let stuck = Arc::clone(&control);
        let armed = in_time(move || stuck.terminate()).map_err(failed)?;
        let ready = ready.await;
        drop(armed);
        let reason = match ready {
            // What the copy says of its layers is a guest's word. They are those of the worker.
            Ok(Ok(_)) => {
                let number = control.process_number().map_err(failed)?;
                let details = format!("process {number}, forked from a session");
                let report = self.report.with_process(details);
                Arc::clone(&self.family).join(&mut link, control, &report).map_err(failed)?;
                // From here on the link ends it.
                new.0 = None;
                return Ok((link, report));
            }
            Ok(Err(reason)) => reason,
            Err(_) => "it ended".to_owned(),
        };
        Err(failed(io::Error::other(format!("the copy did not start: {reason}"))))
    }

    /// Has the worker copy itself, and returns the descriptor of the copy. Waits on a thread.
    async fn supervised(&self, ends: Ends) -> io::Result<OwnedFd> {
        let (family, control) = (Arc::clone(&self.family), Arc::clone(&self.control));
        let (messages, process) = (Arc::clone(&self.messages), self.process);
        let (sender, copy) = oneshot::channel();
        thread("isolet-fork", move || {
            let listener = lock(&family.listener);
            control.begin_fork();
            messages(Message::Fork);
            let fork = Supervision { listener: &listener, family: &family, control: &control };
            let copy = fork.run(process, &ends);
            if copy.is_err() {
                // A worker that does something else with the permission is not to have a copy.
                kill_strays(process, &lock(&family.members));
            }
            if let Err(Ok(copy)) = sender.send(copy) {
                // Nobody waits any more.
                let _ = pidfd_send_signal(&copy, Signal::KILL);
            }
        })?;
        copy.await.map_err(|_| io::Error::other("its supervision has ended"))?
    }
}

/// Ends a worker that nobody has taken over when the future that starts it is dropped.
struct EndOnDrop(Option<Arc<WorkerControl>>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            control.terminate();
        }
    }
}

/// One fork.
struct Supervision<'a> {
    listener: &'a Listener,
    family: &'a Family,
    control: &'a WorkerControl,
}

impl Supervision<'_> {
    /// Permits one process and its threads, and refuses everything else.
    fn run(&self, process: u32, ends: &Ends) -> io::Result<OwnedFd> {
        let started = Instant::now();
        let call = self.next(started, |call| call.argument == FORK && is_of(process, call))?;
        self.listener.permit(&call)?;
        // The only thread of a process that nobody knows yet is the copy.
        let call = self.next(started, |call| call.argument == THREAD && self.is_new(call))?;
        let copy = call.thread;
        let fd = process_of(&call)?;
        if !self.listener.is_waiting(&call) {
            return Err(io::Error::other("the copy has ended"));
        }
        self.listener.give(&call, ends.socket.as_fd(), SOCKET)?;
        self.listener.give(&call, ends.interrupts.as_fd(), INTERRUPTS)?;
        self.listener.give(&call, ends.output.as_fd(), RING)?;
        self.listener.permit(&call)?;
        for _ in 1..COPY_THREADS {
            let call = self.next(started, |call| call.argument == THREAD && call.thread == copy)?;
            self.listener.permit(&call)?;
        }
        Ok(fd)
    }

    /// Waits for a call that is expected.
    fn next(
        &self,
        started: Instant,
        is_expected: impl Fn(&Notification) -> bool,
    ) -> io::Result<Notification> {
        loop {
            if let Some(call) = self.listener.next(TICK)? {
                if is_expected(&call) {
                    return Ok(call);
                }
                self.listener.refuse(&call, libc::EPERM)?;
                continue;
            }
            if let Some(error) = self.control.not_forked() {
                return Err(error);
            }
            if !self.control.is_alive() {
                return Err(io::Error::other("the worker has ended"));
            }
            if started.elapsed() > START_TIME {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    fn is_new(&self, call: &Notification) -> bool {
        let members = lock(&self.family.members);
        u32::try_from(call.thread).is_ok_and(|thread| !members.contains(&thread))
            && process_of(call).is_ok()
    }
}

/// Returns the process whose first thread makes the call. Fails for other threads.
fn process_of(call: &Notification) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(call.thread).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Kills the children of a worker that are in no session. A worker has no others than its copies.
fn kill_strays(worker: u32, members: &HashSet<u32>) {
    for child in children(worker) {
        let Some(pid) = Pid::from_raw(child.cast_signed()) else { continue };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // If it still is a child, the number was not given to another process before.
        if !members.contains(&child) && children(worker).contains(&child) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

/// Returns the numbers of a process's children; none if the kernel does not say.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect()
}

/// Returns `true` if a process makes the call.
fn is_of(process: u32, call: &Notification) -> bool {
    fs::exists(format!("/proc/{process}/task/{}", call.thread)).is_ok_and(|exists| exists)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_of_a_worker_that_are_in_no_session_are_killed_and_others_are_not() {
        // The children wait for an input that does not end, and the shell says how they ended.
        let script = "exec 3<&0; cat <&3 >&2 & stray=$!; cat <&3 >&2 & member=$!; \
                      echo $stray; echo $member; wait $stray; echo $?; kill $member; wait $member; \
                      echo $?";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut numbers = lines.map(|line| line.unwrap().parse::<u32>().unwrap());
        let [stray, member] = [numbers.next().unwrap(), numbers.next().unwrap()];
        assert!(children(shell.id()).contains(&stray) && children(shell.id()).contains(&member));
        kill_strays(shell.id(), &HashSet::from([member]));
        assert_eq!(numbers.next(), Some(128 + 9), "the stray was killed");
        assert_eq!(numbers.next(), Some(128 + 15), "the member was there to be ended");
        shell.wait().unwrap();
    }
}
