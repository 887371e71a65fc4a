//! The service core: sandboxes and sessions by number, for a client at the other end of a wire.
//!
//! A wire turns what its client sends into [`Request`]s, and writes what [`Client`] is told. It
//! decides nothing. Each request is answered once. Those of one session are carried out in order;
//! different sessions are independent.

mod answers;
mod calls;
#[cfg(feature = "serve")]
#[path = "../support/control_groups.rs"]
pub(crate) mod control_groups;
mod engines;
mod execution;
mod failure;
#[cfg(feature = "serve")]
pub(crate) mod node;
mod output;
mod policy;
mod sandboxes;
mod session;
mod table;
mod tools;
mod vocabulary;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, join_all};
use isolet::blocking::block_on;
use isolet::{AuditEvent, Display, Stream, Value};

pub(crate) use self::calls::Answer;
use self::calls::Calls;
pub(crate) use self::engines::{Engines, IMAGE_MEMORY_BYTES, Terms};
pub(crate) use self::execution::display as display_value;
#[cfg(feature = "serve")]
pub(crate) use self::execution::interrupted;
pub(crate) use self::failure::Failure;
use self::output::Flusher;
pub(crate) use self::policy::Policy;
use self::sandboxes::SandboxEntry;
use self::session::{Command, Refused, SessionEntry};
pub(crate) use self::table::{Lease, Reason, Room, Table};
pub(crate) use self::vocabulary::in_options;

/// The client of a service: what it is told and asked. Its methods are called by any thread and may
/// wait for the client to read.
pub(crate) trait Client: Send + Sync + 'static {
    /// Answers a request.
    fn reply(&self, request: i64, result: Result<Value, Failure>);
    /// Whether output of a run can be passed on without waiting. If not, it is collected further,
    /// until there is too much of it.
    fn has_room(&self, _run: i64) -> bool {
        true
    }
    /// Passes on output of a run, which has the number of its request.
    fn output(&self, run: i64, stream: Stream, text: String);
    /// Passes on what a run displays.
    fn display(&self, run: i64, display: &Display);
    /// Asks for a tool to be called.
    fn call(&self, call: u64, session: i64, run: i64, tool: &str, arguments: Value);
    /// Says that nobody waits for a call any more.
    fn uncall(&self, call: u64);
    /// Passes on an entry of the audit log.
    fn audit(&self, sandbox: i64, session: i64, event: &AuditEvent);
    /// Says whether an access of a session could be logged, or why not.
    fn may_access(&self, _session: i64) -> Result<(), String> {
        Ok(())
    }
}

/// What a client asks for.
pub(crate) enum Request {
    /// Make a sandbox.
    Sandbox { sandbox: i64, policy: Result<Box<Policy>, Failure>, terms: Terms },
    /// Forget a sandbox.
    Drop { sandbox: i64 },
    /// Keep interpreters ready.
    Prewarm { sandbox: i64, count: usize },
    /// Start a session, or go on in one that was saved.
    Session { session: i64, sandbox: i64, inputs: Vec<(String, Value)>, from: Option<String> },
    /// Do something in a session, in its turn.
    InSession { session: i64, command: Command },
    /// Interrupt a session's run.
    Interrupt { session: i64 },
    /// Interrupt a session's run, and end the session if that does not help.
    Cancel { session: i64 },
    /// End a session and its run at once.
    Kill { session: i64 },
}

pub(crate) use self::session::Command as SessionCommand;

/// Work that a request leads to. It may take as long as code of a guest.
pub(crate) enum Work {
    Async(BoxFuture<'static, ()>),
    /// Work that holds the thread which does it.
    Blocking(Box<dyn FnOnce() + Send>),
}

impl Work {
    fn blocking(work: impl FnOnce() + Send + 'static) -> Self {
        Self::Blocking(Box::new(work))
    }

    /// Does the work on this thread: the one that has read the request, once another one reads.
    pub(crate) fn run(self) {
        match self {
            Self::Async(work) => block_on(work),
            Self::Blocking(work) => work(),
        }
    }

    /// Has this thread's executor do the work.
    #[cfg(feature = "serve")]
    pub(crate) fn spawn(self) {
        match self {
            Self::Async(work) => drop(tokio::spawn(work)),
            Self::Blocking(work) => drop(tokio::task::spawn_blocking(work)),
        }
    }
}

/// One client's sandboxes and sessions.
pub(crate) struct Service {
    client: Arc<dyn Client>,
    engines: Arc<Engines>,
    calls: Arc<Calls>,
    flusher: Arc<Flusher>,
    sandboxes: Mutex<HashMap<i64, Arc<SandboxEntry>>>,
    sessions: Mutex<HashMap<i64, Arc<SessionEntry>>>,
    /// By the numbers that the library gives them.
    guests: Arc<Guests>,
}

/// The sessions by the numbers that the library gives them.
#[derive(Default)]
struct Guests(Mutex<HashMap<u64, Arc<SessionEntry>>>);

impl Guests {
    fn get(&self, id: u64) -> Option<Arc<SessionEntry>> {
        lock(&self.0).get(&id).map(Arc::clone)
    }
}

impl Service {
    pub(crate) fn new(client: Arc<dyn Client>, engines: Arc<Engines>) -> Arc<Self> {
        Arc::new(Self {
            flusher: Flusher::new(Arc::clone(&client)),
            client,
            engines,
            calls: Arc::default(),
            sandboxes: Mutex::default(),
            sessions: Mutex::default(),
            guests: Arc::default(),
        })
    }

    /// Answers a call of a tool. Does nothing if the call is over.
    pub(crate) fn answer(&self, call: u64, answer: Answer) {
        self.calls.answer(call, answer);
    }

    /// Accepts a request. Returns the work that it is, or `None` if another thread does it.
    ///
    /// Does not wait, and tells the client nothing.
    pub(crate) fn accept(self: &Arc<Self>, number: i64, request: Request) -> Option<Work> {
        let accepted = match request {
            Request::Sandbox { sandbox, policy, terms } => {
                self.make_sandbox(number, sandbox, policy, terms)
            }
            Request::Drop { sandbox } => {
                let dropped = lock(&self.sandboxes).remove(&sandbox);
                dropped.map(|_| Some(self.answered(number))).ok_or_else(|| no_sandbox(sandbox))
            }
            Request::Prewarm { sandbox, count } => self.prewarm(number, sandbox, count),
            Request::Session { session, sandbox, inputs, from } => {
                self.open_session(number, session, sandbox, Command::Open { inputs, from })
            }
            Request::InSession { session, command } => self.in_session(number, session, command),
            Request::Interrupt { session } => self
                .session(session)
                .map(|entry| entry.interrupt())
                .map(|_| Some(self.answered(number))),
            Request::Cancel { session } => self.session(session).map(|entry| {
                let (service, run) = (Arc::clone(self), entry.interrupt());
                Some(Work::blocking(move || {
                    if let Some(run) = run {
                        entry.end_run(run);
                    }
                    service.client.reply(number, Ok(Value::None));
                }))
            }),
            Request::Kill { session } => self
                .session(session)
                .map(|entry| entry.kill())
                .map(|()| Some(self.answered(number))),
        };
        accepted.unwrap_or_else(|failure| Some(self.replied(number, Err(failure))))
    }

    /// Ends all sessions: those that are idle in good order, the others at once.
    pub(crate) fn end_in_order(&self) {
        let all: Vec<_> = lock(&self.sessions).drain().map(|(_, entry)| entry).collect();
        block_on(join_all(all.iter().map(|entry| entry.end())));
    }

    /// Ends all sessions and their runs at once.
    pub(crate) fn end(&self) {
        for (_, entry) in lock(&self.sessions).drain() {
            entry.kill();
        }
    }

    fn replied(&self, number: i64, result: Result<Value, Failure>) -> Work {
        let client = Arc::clone(&self.client);
        Work::Async(Box::pin(async move { client.reply(number, result) }))
    }

    /// Returns the work of a request that has been carried out.
    fn answered(&self, number: i64) -> Work {
        self.replied(number, Ok(Value::None))
    }

    fn make_sandbox(
        self: &Arc<Self>,
        number: i64,
        sandbox: i64,
        policy: Result<Box<Policy>, Failure>,
        terms: Terms,
    ) -> Result<Option<Work>, Failure> {
        let entry = Arc::new(SandboxEntry::new(sandbox));
        let mut sandboxes = lock(&self.sandboxes);
        if sandboxes.contains_key(&sandbox) {
            return Err(Failure::protocol(format!("there is a sandbox {sandbox} already")));
        }
        sandboxes.insert(sandbox, Arc::clone(&entry));
        let service = Arc::clone(self);
        Ok(Some(Work::blocking(move || {
            let made = policy.and_then(|policy| {
                let auditor = || (Arc::clone(&service.client), Arc::clone(&service.guests));
                let ((client, guests), (asked, its)) = (auditor(), auditor());
                let sink = move |event: &AuditEvent| {
                    let session = guests.get(event.session).map_or(0, |entry| entry.number());
                    client.audit(sandbox, session, event);
                };
                let gate = move |session| {
                    asked.may_access(its.get(session).map_or(0, |entry| entry.number()))
                };
                let handler = |name: &str| service.tool_handler(name);
                policy.build(&service.engines, &terms, handler, (sink, gate))
            });
            let result = made.as_ref().map(|_| Value::Dict(Vec::new())).map_err(Clone::clone);
            if made.is_err() {
                lock(&service.sandboxes).remove(&sandbox);
            }
            entry.finish(made);
            drop(terms.turn);
            service.client.reply(number, result);
        })))
    }

    /// Returns whether a sandbox of this policy is made without making or fetching packages.
    #[cfg(feature = "serve")]
    pub(crate) fn has_packages_of(&self, policy: &Policy) -> bool {
        policy.has_its_packages(&self.engines)
    }

    fn prewarm(
        self: &Arc<Self>,
        number: i64,
        sandbox: i64,
        count: usize,
    ) -> Result<Option<Work>, Failure> {
        let (entry, client) = (self.sandbox(sandbox)?, Arc::clone(&self.client));
        Ok(Some(Work::blocking(move || {
            let warmed = entry.wait().and_then(|made| {
                made.sandbox.prewarm(count)?;
                Ok(made.sandbox.blocking().prewarmed()?)
            });
            client.reply(number, warmed.map(|()| Value::None));
        })))
    }

    fn open_session(
        self: &Arc<Self>,
        number: i64,
        session: i64,
        sandbox: i64,
        open: Command,
    ) -> Result<Option<Work>, Failure> {
        let sandbox = self.sandbox(sandbox)?;
        let mut sessions = lock(&self.sessions);
        if sessions.contains_key(&session) {
            return Err(Failure::protocol(format!("there is a session {session} already")));
        }
        let entry = Arc::new(SessionEntry::new(session, sandbox));
        sessions.insert(session, Arc::clone(&entry));
        drop(sessions);
        // A new session has no other work.
        let _ = entry.push(number, open);
        Ok(Some(self.draining(entry)))
    }

    fn in_session(
        self: &Arc<Self>,
        number: i64,
        session: i64,
        command: Command,
    ) -> Result<Option<Work>, Failure> {
        let entry = self.session(session)?;
        if matches!(command, Command::Close) {
            lock(&self.sessions).remove(&session);
            entry.kill_unless_idle();
        }
        let copy = match command {
            Command::Fork { copy } => Some(copy),
            _ => None,
        };
        if let Some(copy) = copy {
            let mut sessions = lock(&self.sessions);
            if sessions.contains_key(&copy) {
                return Err(Failure::protocol(format!("there is a session {copy} already")));
            }
            sessions.insert(copy, entry.expect_copy(copy));
        }
        match entry.push(number, command) {
            Ok(true) => Ok(Some(self.draining(entry))),
            Ok(false) => Ok(None),
            Err(Refused::Busy) => {
                if let Some(copy) = copy {
                    entry.expect_no_copy(copy);
                    lock(&self.sessions).remove(&copy);
                }
                Err(Failure::busy(session))
            }
            Err(Refused::Look(command)) => {
                let client = Arc::clone(&self.client);
                Ok(Some(Work::Async(Box::pin(async move {
                    client.reply(number, entry.look(command).await);
                }))))
            }
        }
    }

    /// Returns the work of carrying out the session's commands.
    fn draining(self: &Arc<Self>, entry: Arc<SessionEntry>) -> Work {
        Work::Async(Box::pin(entry.drain(Arc::clone(self))))
    }

    fn sandbox(&self, sandbox: i64) -> Result<Arc<SandboxEntry>, Failure> {
        lock(&self.sandboxes).get(&sandbox).map(Arc::clone).ok_or_else(|| no_sandbox(sandbox))
    }

    fn session(&self, session: i64) -> Result<Arc<SessionEntry>, Failure> {
        let entry = lock(&self.sessions).get(&session).map(Arc::clone);
        entry.ok_or_else(|| Failure::protocol(format!("there is no session {session}")))
    }
}

fn no_sandbox(sandbox: i64) -> Failure {
    Failure::protocol(format!("there is no sandbox {sandbox}"))
}

/// Locks a mutex whose data stays valid if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
