//! The service core: sandboxes and sessions, their commands in order, and who hears of their runs.
//!
//! A wire turns what its client sends into typed commands, and writes the typed answers, each of
//! which goes to the [`Reply`] of its command. It decides nothing. The commands of one session are
//! carried out in order; different sessions are independent.

mod answers;
mod calls;
mod command;
mod engines;
pub(crate) mod execution;
mod failure;
pub(crate) mod limits;
mod options;
mod output;
pub(crate) mod plain;
pub(crate) mod policy;
mod reply;
mod sandboxes;
mod session;
mod table;
pub(crate) mod tokens;
mod tools;
mod vocabulary;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use isolet::blocking::block_on;
use isolet::internals::lock;
use isolet::{AuditEvent, Stream, Value};

pub use self::answers::Confinement;
pub use self::answers::{Package, Variable};
use self::calls::Calls;
pub use self::calls::{Answer, Kept};
pub use self::command::Command;
pub use self::engines::{Engines, IMAGE_MEMORY_BYTES, Terms};
pub use self::execution::{Display, Execution};
pub use self::execution::{Exception, Status, TerminationKind};
pub use self::failure::{Failure, FailureKind};
pub use self::options::Input;
pub use self::options::{Run, RunOptions};
use self::output::Flusher;
pub use self::plain::{BYTES, DICT, FLOAT, Plain};
pub use self::policy::Policy;
pub use self::reply::Reply;
pub use self::sandboxes::SandboxEntry;
use self::session::Refused;
pub use self::session::SessionEntry;
pub use self::table::{Lease, Reason, Room, Table};
pub use self::tokens::size_up_to;
pub use self::tokens::{Marshal, tokens};
pub use self::tools::{SubmitEntry, ToolEntry};
pub use self::vocabulary::in_options;

/// Who hears of a run while it runs. Its methods are called by any thread and may wait for a client
/// to read.
pub trait Listener: Send + Sync + 'static {
    /// Whether output can be passed on without waiting. If not, it is collected further, until
    /// there is too much of it.
    fn has_room(&self) -> bool;
    /// Passes on output.
    fn output(&self, stream: Stream, text: String);
    /// Passes on what the run displays.
    fn display(&self, display: Display);
    /// Asks for a tool to be called. Returns what is kept until the call is over; `None` if nobody
    /// was asked.
    fn call(&self, call: u64, tool: &str, arguments: Value) -> Option<Kept>;
    /// Says that nobody waits for a call any more.
    fn uncall(&self, call: u64);
}

/// Whose a session is. Its methods are called by any thread and may wait for a client to read.
pub trait Owner: Send + Sync + 'static {
    /// Returns what messages call the session.
    fn name(&self) -> String;
    /// Passes on an entry of the audit log.
    fn audit(&self, event: &AuditEvent);
    /// Says whether an access could be logged, or why not.
    fn may_access(&self) -> Result<(), String>;
    /// Returns who is asked to call tools before there is a run.
    fn listener(&self) -> Option<Arc<dyn Listener>>;
}

/// Work that a request leads to. It may take as long as code of a guest.
pub enum Work {
    Async(BoxFuture<'static, ()>),
    /// Work that holds the thread which does it.
    Blocking(Box<dyn FnOnce() + Send>),
}

impl Work {
    fn blocking(work: impl FnOnce() + Send + 'static) -> Self {
        Self::Blocking(Box::new(work))
    }

    /// Does the work on this thread: the one that has read the request, once another one reads.
    pub fn run(self) {
        match self {
            Self::Async(work) => block_on(work),
            Self::Blocking(work) => work(),
        }
    }

    /// Has this thread's executor do the work.
    pub fn spawn(self) {
        match self {
            Self::Async(work) => drop(tokio::spawn(work)),
            Self::Blocking(work) => drop(tokio::task::spawn_blocking(work)),
        }
    }
}

/// Sandboxes and sessions.
pub struct Service {
    engines: Arc<Engines>,
    calls: Arc<Calls>,
    flusher: Arc<Flusher>,
    guests: Arc<Guests>,
}

/// The sessions by the numbers by which the library's tools and audit log name them.
#[derive(Default)]
struct Guests(Mutex<HashMap<u64, Arc<SessionEntry>>>);

impl Guests {
    fn get(&self, id: u64) -> Option<Arc<SessionEntry>> {
        lock(&self.0).get(&id).map(Arc::clone)
    }
}

impl Service {
    pub fn new(engines: Arc<Engines>) -> Arc<Self> {
        Arc::new(Self {
            flusher: Flusher::new(),
            engines,
            calls: Arc::default(),
            guests: Arc::default(),
        })
    }

    /// Answers a call of a tool, of this session if one is named. Returns `false` if nobody waits
    /// for it.
    pub fn answer(&self, call: u64, session: Option<&Arc<SessionEntry>>, answer: Answer) -> bool {
        self.calls.answer(call, session, answer)
    }

    /// Begins a sandbox. Returns it, and the work of making it, whose end the reply is told.
    /// `owner` is who hears of accesses of no session that is known.
    pub fn make_sandbox(
        self: &Arc<Self>,
        name: String,
        policy: Result<Box<Policy>, Failure>,
        terms: Terms,
        owner: Arc<dyn Owner>,
        reply: Reply<()>,
    ) -> (Arc<SandboxEntry>, Work) {
        let entry = Arc::new(SandboxEntry::new(name));
        let (service, begun) = (Arc::clone(self), Arc::clone(&entry));
        let work = Work::blocking(move || {
            let owner_of = |guests: &Guests, session: u64, owner: &Arc<dyn Owner>| {
                let entry = guests.get(session);
                entry.map_or_else(|| Arc::clone(owner), |entry| Arc::clone(entry.owner()))
            };
            let (guests, nobody) = (Arc::clone(&service.guests), Arc::clone(&owner));
            let sink = move |event: &AuditEvent| {
                owner_of(&guests, event.session, &nobody).audit(event);
            };
            let guests = Arc::clone(&service.guests);
            let gate = move |session| owner_of(&guests, session, &owner).may_access();
            let handler = |name: &str| service.tool_handler(name);
            let made = policy
                .and_then(|policy| policy.build(&service.engines, &terms, handler, (sink, gate)));
            let result = made.as_ref().map(|_| ()).map_err(Clone::clone);
            entry.finish(made);
            drop(terms.turn);
            reply.send(result);
        });
        (begun, work)
    }

    /// Returns whether a sandbox of this policy is made without making or fetching packages.
    pub fn has_packages_of(&self, policy: &Policy) -> bool {
        policy.has_its_packages(&self.engines)
    }

    /// Returns the work of keeping interpreters of a sandbox ready.
    pub fn prewarm(sandbox: Arc<SandboxEntry>, count: usize, reply: Reply<()>) -> Work {
        Work::blocking(move || {
            let warmed = sandbox.wait().and_then(|made| {
                made.sandbox.prewarm(count)?;
                Ok(made.sandbox.blocking().prewarmed()?)
            });
            reply.send(warmed);
        })
    }

    /// Begins a session. Returns it, and the work of starting it.
    pub fn open(
        self: &Arc<Self>,
        sandbox: &Arc<SandboxEntry>,
        owner: Arc<dyn Owner>,
        (inputs, from): (Vec<(String, Value)>, Option<String>),
        reply: Reply<Confinement>,
    ) -> (Arc<SessionEntry>, Work) {
        let entry = Arc::new(SessionEntry::new(Arc::clone(sandbox), owner));
        // A new session has no other work.
        let _ = entry.push(Command::Open { inputs, from, reply });
        let work = self.draining(Arc::clone(&entry));
        (entry, work)
    }

    /// Begins a copy of a session. Returns it, and the work of making it, if no other thread does
    /// it.
    ///
    /// # Errors
    ///
    /// Fails with the work of saying so if code runs in the session.
    pub fn fork(
        self: &Arc<Self>,
        session: &Arc<SessionEntry>,
        owner: Arc<dyn Owner>,
        reply: Reply<Confinement>,
    ) -> Result<(Arc<SessionEntry>, Option<Work>), Work> {
        let copy = session.copied(owner);
        let command = Command::Fork { copy: Arc::clone(&copy), reply };
        self.push(session, command).map(|work| (copy, work))
    }

    /// Has a session carry out a command in its turn. Returns the work that it is, if no other
    /// thread does it.
    ///
    /// Does not wait, and tells the client nothing.
    pub fn carry_out(
        self: &Arc<Self>,
        session: &Arc<SessionEntry>,
        command: Command,
    ) -> Option<Work> {
        self.push(session, command).unwrap_or_else(Some)
    }

    /// The same. Fails with the work of saying so if code runs in the session.
    fn push(
        self: &Arc<Self>,
        session: &Arc<SessionEntry>,
        command: Command,
    ) -> Result<Option<Work>, Work> {
        if matches!(command, Command::Close { .. }) {
            session.kill_unless_idle();
        }
        let entry = Arc::clone(session);
        match entry.push(command) {
            Ok(true) => Ok(Some(self.draining(entry))),
            Ok(false) => Ok(None),
            Err(Refused::Busy(command)) => Err(Work::Async(Box::pin(async move {
                command.refuse(&Failure::busy(&entry.name()));
            }))),
            Err(Refused::Look(command)) => {
                Ok(Some(Work::Async(Box::pin(async move { entry.look(*command).await }))))
            }
        }
    }

    /// Interrupts a session's run. Returns the work of ending the session if that does not help.
    pub fn cancel(session: &Arc<SessionEntry>, reply: Reply<()>) -> Work {
        let (entry, run) = (Arc::clone(session), session.interrupt());
        Work::blocking(move || {
            if let Some(run) = run {
                entry.end_run(&run);
            }
            reply.send(Ok(()));
        })
    }

    /// Ends all sessions that have started, and their runs, at once.
    pub fn end(&self) {
        let all: Vec<_> = lock(&self.guests.0).values().map(Arc::clone).collect();
        for entry in all {
            entry.kill();
        }
    }

    /// Returns the work of carrying out the session's commands.
    fn draining(self: &Arc<Self>, entry: Arc<SessionEntry>) -> Work {
        Work::Async(Box::pin(entry.drain(Arc::clone(self))))
    }
}
