//! Contexts: several sets of variables of one session, which share its files and modules. The
//! session holds the variables of one context at a time.

use std::sync::{Arc, Mutex};

use isolet::Value;
use tokio::sync::OwnedMutexGuard;

use super::guest::{ENTER, EntryKind, FORGET, Raised, SET_ENVIRON};
use super::{Awaited, Node, Refusal, SessionLease, Streamed};
use crate::core::{Execution, Failure, Run, Service, SessionEntry};
use isolet::internals::lock;

/// The context that every session has.
const FIRST: &str = "default";

/// The default working directory.
pub const HOME: &str = "/home/user";

/// The maximum number of contexts of a session.
const MAX_CONTEXTS: usize = 100;

/// A set of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub id: String,
    /// Its working directory.
    pub directory: String,
    /// The number of runs in it.
    runs: u64,
}

/// The contexts of a session.
#[derive(Default)]
pub(crate) struct Contexts {
    /// Locked while a context is in use.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    contexts: Vec<Context>,
    /// The context whose variables are in the session; `None` once that was restored from a
    /// checkpoint, which may have another one.
    current: Option<String>,
    /// Set while environment variables are changed for one run.
    has_environ: bool,
}

impl Default for State {
    fn default() -> Self {
        let first = Context { id: FIRST.to_owned(), directory: HOME.to_owned(), runs: 0 };
        Self { contexts: vec![first], current: Some(FIRST.to_owned()), has_environ: false }
    }
}

impl Contexts {
    /// Returns the contexts for a copy of the session.
    pub(crate) fn copy(&self) -> Self {
        Self { turn: Arc::default(), state: Mutex::new(lock(&self.state).clone()) }
    }

    /// Returns the contexts, the oldest first.
    pub(crate) fn all(&self) -> Vec<Context> {
        lock(&self.state).contexts.clone()
    }

    /// Takes note that the session goes on as it was before, with any context and environment.
    pub(super) fn restored(&self) {
        let mut state = lock(&self.state);
        state.current = None;
        state.has_environ = true;
    }

    fn get(&self, id: &str) -> Result<Context, Refusal> {
        let state = lock(&self.state);
        let found = state.contexts.iter().find(|context| context.id == id);
        found.cloned().ok_or_else(|| Refusal::NoContext(id.to_owned()))
    }
}

/// Exclusive use of a session. While it is held, no other client's run is under way.
pub struct SessionGuard {
    _guard: OwnedMutexGuard<()>,
}

impl Node {
    /// Waits for exclusive use of a session, at most as long as a run waits in the queue.
    pub async fn hold(&self, session: &SessionLease) -> Result<SessionGuard, Refusal> {
        let turn = Arc::clone(&session.session().contexts.turn).lock_owned();
        let patience = self.settings.queue_time;
        let held = tokio::time::timeout(patience, turn).await;
        let held = held.map_err(|_| Refusal::Waited(Awaited::Session, patience));
        self.counted(held.map(|guard| SessionGuard { _guard: guard }))
    }

    /// Adds a context with this working directory.
    pub async fn add_context(
        &self,
        session: &SessionLease,
        directory: Option<String>,
    ) -> Result<Context, Refusal> {
        let directory = directory.unwrap_or_else(|| HOME.to_owned());
        let found = self.look(session, &directory).await?;
        if !found.is_ok_and(|entry| matches!(entry.kind, EntryKind::Dir | EntryKind::Link)) {
            let text = format!("there is no directory `{directory}`");
            return Err(Refusal::Unreadable(text));
        }
        let id = super::ids::random(16).map_err(|error| Failure::config(error.to_string()))?;
        let context = Context { id, directory, runs: 0 };
        let mut state = lock(&session.session().contexts.state);
        if state.contexts.len() >= MAX_CONTEXTS {
            return Err(Refusal::Quota(format!("contexts of a session: limit {MAX_CONTEXTS}")));
        }
        state.contexts.push(context.clone());
        Ok(context)
    }

    /// Removes a context with its variables. The default context is only cleared.
    pub async fn remove_context(&self, session: &SessionLease, id: &str) -> Result<(), Refusal> {
        let _turn = self.hold(session).await?;
        let current = lock(&session.session().contexts.state).current.clone();
        if id != FIRST && current.is_none_or(|current| current == id) {
            self.prepare(session, FIRST, Vec::new()).await?;
        }
        self.forget(session, id).await?;
        if id != FIRST {
            let mut state = lock(&session.session().contexts.state);
            state.contexts.retain(|context| context.id != id);
        }
        Ok(())
    }

    /// Deletes the variables of a context. Modules stay imported.
    pub async fn restart_context(&self, session: &SessionLease, id: &str) -> Result<(), Refusal> {
        let _turn = self.hold(session).await?;
        self.forget(session, id).await
    }

    async fn forget(&self, session: &SessionLease, id: &str) -> Result<(), Refusal> {
        let contexts = &session.session().contexts;
        let context = contexts.get(id)?;
        if lock(&contexts.state).current.is_none() {
            self.prepare(session, id, Vec::new()).await?;
        }
        let is_current = lock(&contexts.state).current.as_deref() == Some(id);
        let arguments = vec![id.into(), is_current.into(), context.directory.into()];
        done(self.call::<()>(session, FORGET, arguments).await?)?;
        let mut state = lock(&contexts.state);
        if let Some(context) = state.contexts.iter_mut().find(|context| context.id == id) {
            context.runs = 0;
        }
        Ok(())
    }

    /// Runs code in a context of a held session, with environment variables for this run. Also
    /// returns the number of the run in the context.
    pub async fn stream_in(
        self: &Arc<Self>,
        session: SessionLease,
        turn: SessionGuard,
        context: Option<&str>,
        environ: Vec<(String, String)>,
        run: Run,
    ) -> Result<(Streamed, u64), Refusal> {
        let id = context.unwrap_or(FIRST);
        self.prepare(&session, id, environ).await?;
        let number = {
            let mut state = lock(&session.session().contexts.state);
            let context = state.contexts.iter_mut().find(|context| context.id == id);
            let context = context.ok_or_else(|| Refusal::NoContext(id.to_owned()))?;
            context.runs += 1;
            context.runs
        };
        Ok((self.stream_held(session, turn, run).await?, number))
    }

    /// Runs code in a held session, with the run's events.
    pub(super) async fn stream_held(
        self: &Arc<Self>,
        session: SessionLease,
        turn: SessionGuard,
        run: Run,
    ) -> Result<Streamed, Refusal> {
        let held = self.held(&session, turn)?;
        let Streamed { events, result } = self.stream(session, run).await?;
        let result = Box::pin(async move {
            let result = result.await;
            held.end();
            result
        });
        Ok(Streamed { events, result })
    }

    /// Runs code in a held session.
    pub async fn run_in_turn(
        self: &Arc<Self>,
        session: &SessionLease,
        run: Run,
    ) -> Result<Execution, Refusal> {
        let turn = self.hold(session).await?;
        let held = self.held(session, turn)?;
        let ran = self.run(session, run).await;
        held.end();
        ran
    }

    fn held(self: &Arc<Self>, session: &SessionLease, turn: SessionGuard) -> Result<Held, Refusal> {
        let entry = session.session().entry()?;
        Ok(Held { node: Arc::clone(self), turn: Some((entry, turn)) })
    }

    /// Switches the session to the variables of a context, and sets or restores the environment.
    async fn prepare(
        &self,
        session: &SessionLease,
        id: &str,
        environ: Vec<(String, String)>,
    ) -> Result<(), Refusal> {
        let contexts = &session.session().contexts;
        let context = contexts.get(id)?;
        let current = lock(&contexts.state).current.clone();
        if current.as_deref() != Some(id) {
            let leave = current.map_or(Value::None, Value::from);
            let arguments = vec![leave, id.into(), context.directory.into()];
            done(self.call::<()>(session, ENTER, arguments).await?)?;
            lock(&contexts.state).current = Some(id.to_owned());
        }
        let has_environ = !environ.is_empty();
        if has_environ || lock(&contexts.state).has_environ {
            let environ = environ.into_iter().map(|(name, value)| (name, Value::from(value)));
            done(self.call::<()>(session, SET_ENVIRON, vec![Value::dict(environ)]).await?)?;
            lock(&contexts.state).has_environ = has_environ;
        }
        Ok(())
    }
}

fn done(called: Result<(), Raised>) -> Result<(), Refusal> {
    called.map_err(|Raised { type_name, message }| {
        Refusal::Unreadable(format!("the session cannot do it: {type_name}: {message}"))
    })
}

/// The turn of a run. If the client is gone, the turn ends with the run.
struct Held {
    node: Arc<Node>,
    turn: Option<(Arc<SessionEntry>, SessionGuard)>,
}

impl Held {
    /// Releases the turn after the run has ended.
    fn end(mut self) {
        self.turn = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some((session, turn)) = self.turn.take() {
            let node = Arc::clone(&self.node);
            tokio::spawn(async move {
                // The answer comes once the run has ended.
                let _ = node.ask(|reply| Some(Service::cancel(&session, reply))).await;
                drop(turn);
            });
        }
    }
}
