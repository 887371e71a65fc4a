//! The service core: sandboxes, sessions and their command queues.
//!
//! A wire decodes a client's messages into typed commands, and encodes the typed answers, each of
//! which goes to the [`Reply`] of its command. The core makes all decisions. Commands of one
//! session run in order; different sessions are independent.

mod answers;
mod beginning;
mod calls;
mod command;
mod engines;
mod entries;
pub(crate) mod execution;
mod failure;
mod hints;
mod lending;
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
pub use isolet::internals::plain::{BYTES, DICT, FLOAT};
use isolet::{AuditEvent, Isolation, Stream, Value};

pub use self::answers::Confinement;
pub use self::answers::{Package, StoppedAt, Variable};
pub use self::beginning::{Beginning, GoOnOptions, JournalEntry, LookBack};
use self::calls::Calls;
pub use self::calls::{Answer, Kept};
pub use self::command::Command;
pub use self::engines::{Engines, IMAGE_MEMORY_BYTES, Terms};
pub use self::entries::AllowedMount;
pub use self::execution::{Display, Execution};
pub use self::execution::{Exception, Status, TerminationKind};
pub use self::failure::{Failure, FailureKind};
pub use self::hints::{hint_for_models, hint_in_options};
pub use self::lending::{LentSession, Loan};
pub use self::options::Input;
pub use self::options::{Run, RunOptions};
use self::output::Flusher;
pub use self::plain::Plain;
pub use self::policy::Policy;
pub use self::reply::Reply;
pub use self::sandboxes::SandboxEntry;
use self::session::Refused;
pub use self::session::SessionEntry;
pub use self::table::{Lease, Reason, Room, Table};
pub use self::tokens::size_up_to;
pub use self::tokens::{Marshal, tokens};
pub use self::tools::{SubmitEntry, ToolEntry};
pub use self::vocabulary::{in_options, in_parameters};

/// Receives the events of a run. Any thread may call its methods, which may block until the client
/// reads.
pub trait Listener: Send + Sync + 'static {
    /// Returns `true` if output can be sent without blocking. Otherwise output is buffered, up to a
    /// limit.
    fn has_room(&self) -> bool;
    /// Sends output.
    fn output(&self, stream: Stream, text: String);
    /// Sends a display.
    fn display(&self, display: Display);
    /// Asks the client to call a tool. Returns data to keep until the call is over; `None` if there
    /// is no client to ask.
    fn call(&self, call: ToolCall<'_>) -> Option<Kept>;
    /// Tells the client that a call was cancelled.
    fn uncall(&self, call: u64);
}

/// A call of a tool of the client.
pub struct ToolCall<'a> {
    /// Its number on the wires, unique in the service, or in the session if its owner keeps those.
    pub number: u64,
    /// Its number in its session, which it keeps when it is made again.
    pub id: u64,
    pub tool: &'a str,
    pub arguments: Value,
}

/// The owner of a session. Any thread may call its methods, which may block until the client reads.
pub trait Owner: Send + Sync + 'static {
    /// Returns the session's name in messages.
    fn name(&self) -> String;
    /// Writes an entry of the audit log.
    fn audit(&self, event: &AuditEvent);
    /// Fails with the reason if an access could not be logged.
    fn may_access(&self) -> Result<(), String>;
    /// Returns the listener for tool calls outside of runs.
    fn listener(&self) -> Option<Arc<dyn Listener>>;
    /// Returns `true` if a call of a tool has the number on the wires that it has in its session.
    fn keeps_call_ids(&self) -> bool {
        false
    }
}

/// The work of a request. It may take as long as a guest's code.
pub enum Work {
    Async(BoxFuture<'static, ()>),
    /// Work that blocks its thread.
    Blocking(Box<dyn FnOnce() + Send>),
}

impl Work {
    fn blocking(work: impl FnOnce() + Send + 'static) -> Self {
        Self::Blocking(Box::new(work))
    }

    /// Does the work on this thread, which is the one that has read the request. Another thread
    /// must be reading by then.
    pub fn run(self) {
        match self {
            Self::Async(work) => block_on(work),
            Self::Blocking(work) => work(),
        }
    }

    /// Spawns the work on the current runtime.
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

/// Sessions by the numbers that the library's tools and audit log use for them.
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

    /// Returns the isolation of policies that name none.
    pub(crate) fn isolation(&self) -> Isolation {
        self.engines.isolation()
    }

    /// Answers a tool call, of this session if there is one. Returns `false` if the call is not
    /// waiting.
    pub fn answer(&self, call: u64, session: Option<&Arc<SessionEntry>>, answer: Answer) -> bool {
        self.calls.answer(call, session, answer)
    }

    /// Creates a sandbox entry, and the work of building the sandbox, which answers `reply`.
    /// `owner` receives accesses that belong to no session.
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

    /// Returns `true` if a sandbox with this policy needs no package to be imported or fetched.
    pub fn has_packages_of(&self, policy: &Policy) -> bool {
        policy.has_its_packages(&self.engines)
    }

    /// Returns the work of starting spare interpreters for a sandbox.
    pub fn prewarm(sandbox: Arc<SandboxEntry>, count: usize, reply: Reply<()>) -> Work {
        Work::blocking(move || {
            let warmed = sandbox.wait().and_then(|made| {
                made.sandbox.prewarm(count)?;
                Ok(made.sandbox.blocking().prewarmed()?)
            });
            reply.send(warmed);
        })
    }

    /// Creates a session entry, and the work of starting the session.
    pub fn open(
        self: &Arc<Self>,
        sandbox: &Arc<SandboxEntry>,
        owner: Arc<dyn Owner>,
        beginning: Beginning,
        reply: Reply<Confinement>,
    ) -> (Arc<SessionEntry>, Work) {
        let entry = Arc::new(SessionEntry::new(Arc::clone(sandbox), owner));
        // A new session has an empty queue.
        let _ = entry.push(Command::Open { beginning, reply });
        let work = self.draining(Arc::clone(&entry));
        (entry, work)
    }

    /// Creates the entry of a copy of a session, and the work of making the copy, unless another
    /// thread already handles the session's queue.
    ///
    /// # Errors
    ///
    /// If code runs in the session, fails with the work of sending that failure.
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

    /// Queues a command. Returns the work of carrying it out, unless another thread already handles
    /// the session's queue.
    ///
    /// Does not block, and sends nothing to the client.
    pub fn carry_out(
        self: &Arc<Self>,
        session: &Arc<SessionEntry>,
        command: Command,
    ) -> Option<Work> {
        self.push(session, command).unwrap_or_else(Some)
    }

    /// As `carry_out`, but if code runs in the session, fails with the work of sending that
    /// failure.
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

    /// Interrupts a session's run. Returns the work of ending the session if it does not stop.
    pub fn cancel(session: &Arc<SessionEntry>, reply: Reply<()>) -> Work {
        let (entry, run) = (Arc::clone(session), session.interrupt());
        Work::blocking(move || {
            if let Some(run) = run {
                entry.end_run(&run);
            }
            reply.send(Ok(()));
        })
    }

    /// Kills all sessions.
    pub fn end(&self) {
        let all: Vec<_> = lock(&self.guests.0).values().map(Arc::clone).collect();
        for entry in all {
            entry.kill();
        }
    }

    /// Returns the work of carrying out the session's queued commands.
    fn draining(self: &Arc<Self>, entry: Arc<SessionEntry>) -> Work {
        Work::Async(Box::pin(entry.drain(Arc::clone(self))))
    }
}
