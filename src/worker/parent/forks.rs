//! Copies a worker that has a session. The kernel asks this side before it makes a process or a
//! thread for the worker, and this side permits what belongs to a fork that its owner has asked
//! for.
//!
//! A worker, its copies and theirs are a family: they have one filter, and one listener for it.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::runtime::Handle;

use super::launch::in_time;
use super::link::{self, Bounds, Started, WorkerControl, thread};
use super::process::{Copied, Process};
use super::strays::{check_numbers, process_of};
use super::supervision::{Ends, Original, Supervisor};
use super::template::Template;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::IsolationReport;
use crate::protocol::{Control, Forker, Host, Link, Message, Outbox};
use crate::support::lock::lock;
use crate::worker::wire::output_ring::{self, Consumer};

/// How long a worker that was killed is waited for.
const ENDING_TIME: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A worker that was made to be copied, its copies, and theirs.
pub(super) struct Family {
    supervisor: Arc<Supervisor>,
    /// The numbers of the processes.
    members: Mutex<HashSet<u32>>,
    max_copies: usize,
    bounds: Bounds,
    /// Reads what the workers send, as far as it can. Otherwise threads do.
    event_loop: Option<Handle>,
    /// It reaps the processes, and ends them all when it ends.
    template: Arc<Template>,
    /// Set if a fork has failed, and something may be left of it. There are no more forks then.
    may_have_strays: AtomicBool,
}

/// A process of a family. It ends when this is dropped, and counts until then.
pub(super) struct Member {
    family: Arc<Family>,
    process: u32,
    control: Arc<WorkerControl>,
    messages: Outbox,
    report: IsolationReport,
    /// Held during a fork of this worker.
    turn: Arc<tokio::sync::Mutex<()>>,
    suspect: Arc<Suspect>,
}

/// The process of a worker, once it has been permitted a copy that is not there. It may have made
/// one that nobody has seen, or still be about to.
#[derive(Default)]
struct Suspect(Mutex<Option<OwnedFd>>);

impl Family {
    /// Makes the family of a worker, of which there are no copies yet.
    pub(super) fn new(
        listener: OwnedFd,
        max_copies: usize,
        bounds: Bounds,
        event_loop: Option<Handle>,
        template: Arc<Template>,
    ) -> Arc<Self> {
        let supervisor = Supervisor::new(listener, Arc::clone(template.processes()));
        let (members, may_have_strays) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self {
            supervisor,
            members,
            max_copies,
            bounds,
            event_loop,
            template,
            may_have_strays,
        })
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
        let (turn, suspect) = (Arc::default(), Arc::default());
        let member = Member { family: self, process, control, messages, report, turn, suspect };
        link.forker = Some(Arc::new(member));
        Ok(())
    }

    /// Kills what forks have left. If something may still be there, no more copies are made.
    fn end_strays(&self) {
        if !self.template.end_strays() {
            self.may_have_strays.store(true, Ordering::Release);
        }
    }
}

impl Suspect {
    /// Has a worker looked after when it has ended.
    fn set(&self, control: &WorkerControl) {
        let Ok(number) = control.process_number() else { return };
        // If it has ended meanwhile, it makes no copy any more.
        if let Ok(process) = process_of(number)
            && control.process_number().is_ok_and(|still| still == number)
        {
            *lock(&self.0) = Some(process);
        }
    }

    fn is_one(&self) -> bool {
        lock(&self.0).is_some()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.control.terminate();
        lock(&self.family.members).remove(&self.process);
        if let Some(process) = lock(&self.suspect.0).take() {
            let family = Arc::clone(&self.family);
            let look = move || {
                let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&ENDING_TIME));
                family.end_strays();
            };
            if thread("isolet-strays", look).is_err() {
                self.family.may_have_strays.store(true, Ordering::Release);
            }
        }
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
        check_numbers().map_err(failed)?;
        if self.family.may_have_strays.load(Ordering::Acquire) {
            let reason = "an earlier fork of it or of a copy has failed, and a process that it has \
                          made may still be there; start a new session";
            return Err(failed(io::Error::other(reason)));
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
        let process = Process::Copied(process);
        let Family { bounds, event_loop, .. } = &*self.family;
        let ends = link::Ends { socket, interrupts, ring };
        let event_loop = event_loop.as_ref();
        let started = link::start(ends, process, host, *bounds, 0, event_loop, |_| Ok(()));
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

    /// Has the worker copy itself, and returns the copy.
    async fn supervised(&self, ends: Ends) -> io::Result<Copied> {
        // Goes on when this future is dropped, until the fork has ended.
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let Self { family, control, suspect, .. } = self;
        if suspect.is_one() {
            let family = Arc::clone(family);
            let (sender, looked) = tokio::sync::oneshot::channel();
            thread("isolet-strays", move || {
                family.end_strays();
                let _ = sender.send(());
            })?;
            let _ = looked.await;
        }
        control.begin_fork();
        let after_failure = {
            let (family, control) = (Arc::clone(family), Arc::clone(control));
            let suspect = Arc::clone(suspect);
            move |is_permitted: bool| {
                if is_permitted {
                    suspect.set(&control);
                }
                family.end_strays();
                drop(turn);
            }
        };
        let original = Arc::clone(control) as Arc<dyn Original>;
        let copy =
            family.supervisor.permit_copy(self.process, original, ends, Box::new(after_failure))?;
        (self.messages)(Message::Fork);
        let copy = copy.await.map_err(|_| io::Error::other("its supervision has ended"))??;
        Ok(Copied::new(copy, Arc::clone(&family.template)))
    }
}

impl Original for WorkerControl {
    fn not_forked(&self) -> Option<io::Error> {
        Self::not_forked(self)
    }

    fn is_alive(&self) -> bool {
        Control::is_alive(self)
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
