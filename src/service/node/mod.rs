//! A node: sessions by id for tenants, as many as there is room for, and an end for each.
//!
//! A wire finds out who asks and what for, and says how a [`Refusal`] is written. It decides
//! nothing.

mod ceiling;
mod config;
mod ids;
mod places;
mod replies;
mod runs;
mod sockets;
mod tenants;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use self::ids::{Ids, Origin};
use self::places::{Counts, Slot, Vacated};
use self::replies::Replies;
use self::runs::{Pass, QueueIsFull, RunGate};
use self::sockets::Sockets;
use super::{
    Answer, Client, Engines, Failure, InUse, Policy, Reason, Request, Service, SessionCommand,
    Table, lock,
};

pub(crate) use self::config::{Config, Settings};
pub(crate) use self::replies::{Event, Events};
pub(crate) use self::tenants::Tenant;

/// How often the node looks for sessions whose time is over.
const ROUND: Duration = Duration::from_secs(1);

/// Why a node does not do what a client asks for.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no such key.
    Key,
    /// There is no such session, or it is not this client's.
    Unknown,
    /// The session is gone, for this reason.
    Gone(String),
    /// The node has as many sessions as it may.
    Full(usize),
    /// The tenant has as many sessions, or waiting runs, as it may.
    Quota(String),
    /// The run has waited for its turn for this time.
    Waited(Duration),
    /// The node ends.
    Draining,
    /// The request cannot be read, for this reason.
    Unreadable(String),
    Failure(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Who asks, and what proves it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    /// A tenant's key.
    pub(crate) key: Option<String>,
    /// A session's token.
    pub(crate) token: Option<String>,
}

/// A session of a tenant.
pub(crate) struct NodeSession {
    /// Its number at the service.
    number: i64,
    tenant: String,
    created: SystemTime,
    /// When its time is over.
    deadline: Mutex<Instant>,
    metadata: Value,
    /// The maximum number of the tenant's runs at once.
    max_runs: usize,
    /// Cancelled once the session ends.
    ended: CancellationToken,
    /// Counts as one of the tenant's.
    _slot: Slot,
    /// After it, because there is room only then.
    _vacated: Vacated,
}

impl NodeSession {
    /// Returns what is cancelled once the session ends. Who keeps the session in use has to give it
    /// up then: only after that its place is free.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

/// A session in use.
pub(crate) type Used = InUse<NodeSession>;

/// A session of one request, which ends when this is dropped.
pub(crate) struct OwnSession {
    node: Arc<Node>,
    used: Used,
}

impl OwnSession {
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// Ends the session now.
    pub(crate) async fn end(self) {
        self.node.end(&self.used).await;
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        let tenant = &self.used.session().tenant;
        // It has not been ended if the client has gone away.
        if let Some(ended) = self.node.table.remove(tenant, self.used.handle(), Reason::Closed) {
            let node = Arc::clone(&self.node);
            tokio::spawn(async move { node.end_removed(&ended).await });
        }
    }
}

/// What a new session is to be.
#[derive(Clone)]
pub(crate) struct NewSession {
    pub(crate) policy: Value,
    pub(crate) inputs: Vec<(String, Value)>,
    /// How long it lives, in seconds, if that is less than the node's time.
    pub(crate) ttl: Option<f64>,
    pub(crate) metadata: Value,
}

/// A session as a list has it.
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) created: SystemTime,
    /// How long it still lives, if it is used.
    pub(crate) left: Duration,
    pub(crate) metadata: Value,
}

impl Listed {
    pub(crate) fn of(session: &Used) -> Self {
        listed(session.handle().to_owned(), session.session())
    }
}

/// How full a node is.
pub(crate) struct Load {
    pub(crate) sessions: usize,
    pub(crate) max_sessions: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
}

pub(crate) struct Node {
    ids: Ids,
    settings: Settings,
    tenants: RwLock<Arc<tenants::Tenants>>,
    service: Arc<Service>,
    replies: Arc<Replies>,
    table: Arc<Table<NodeSession>>,
    runs: Arc<RunGate>,
    starts: Semaphore,
    /// Notified when there is room for a session again.
    room: Arc<Notify>,
    counts: Arc<Counts>,
    sockets: Sockets,
    last: AtomicI64,
    is_draining: AtomicBool,
}

impl Node {
    /// Makes a node of this name.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be a part of ids.
    pub(crate) fn new(
        name: &str,
        mut settings: Settings,
        engines: Arc<Engines>,
    ) -> Result<Arc<Self>, String> {
        let replies = Arc::new(Replies::default());
        let service = Service::new(Arc::clone(&replies) as Arc<dyn Client>, engines);
        replies.serve(&service);
        let tenants =
            std::mem::replace(&mut settings.tenants, tenants::Tenants::Keys(HashMap::new()));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Arc::new(Self {
            ids: Ids::new(name)?,
            tenants: RwLock::new(Arc::new(tenants)),
            table: Table::new(settings.idle, usize::MAX),
            runs: RunGate::new(settings.max_runs, settings.max_queue),
            starts: Semaphore::new(processors),
            room: Arc::default(),
            settings,
            service,
            replies,
            counts: Arc::default(),
            sockets: Sockets::new(),
            last: AtomicI64::new(0),
            is_draining: AtomicBool::new(false),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        self.ids.node()
    }

    /// Returns `true` if no key is needed.
    pub(crate) fn is_open(&self) -> bool {
        self.tenants().is_open()
    }

    /// Replaces the tenants. Sessions stay those of the tenant of the same name.
    pub(crate) fn replace_tenants(&self, settings: Settings) {
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        *tenants = Arc::new(settings.tenants);
    }

    fn tenants(&self) -> Arc<tenants::Tenants> {
        Arc::clone(&self.tenants.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the tenant of a key.
    pub(crate) fn tenant(&self, who: &Credentials) -> Result<Arc<Tenant>, Refusal> {
        self.tenants().of(who.key.as_deref()).map(Arc::clone).ok_or(Refusal::Key)
    }

    pub(crate) fn load(&self) -> Load {
        let (running, waiting) = self.runs.load();
        let (sessions, max_sessions) = (self.table.len(), self.settings.max_sessions);
        Load { sessions, max_sessions, running, waiting }
    }

    /// Starts a session.
    pub(crate) async fn create(
        &self,
        tenant: &Arc<Tenant>,
        new: NewSession,
    ) -> Result<Used, Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        let policy = tenant.ceiling.admit(&self.settings.policy, Policy::read(new.policy)?)?;
        let deadline = self.deadline(new.ttl)?;
        let slot = self.counts.take(tenant, self.settings.max_sessions)?;
        // The table has room for as many.
        let room = self.table.make_room().map_err(|_| Refusal::Full(self.settings.max_sessions))?;
        let number = self.open(policy, new.inputs).await?;
        let session = NodeSession {
            number,
            tenant: tenant.name.clone(),
            created: SystemTime::now(),
            deadline: Mutex::new(deadline),
            metadata: new.metadata,
            max_runs: tenant.quotas.runs,
            ended: self.sockets.ending(),
            _slot: slot,
            _vacated: Vacated(Arc::clone(&self.room)),
        };
        let id = self.ids.next().map_err(|error| Failure::config(error.to_string()))?;
        Ok(room.fill_again(&tenant.name, id, session))
    }

    /// As [`create`](Self::create), for one request. While there is no room, waits for it, at most
    /// for `patience`.
    pub(crate) async fn create_own(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        new: NewSession,
        patience: Duration,
    ) -> Result<OwnSession, Refusal> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            // Before the attempt, so that no room is missed that there is after it.
            let room = self.room.notified();
            match self.create(tenant, new.clone()).await {
                Ok(used) => return Ok(OwnSession { node: Arc::clone(self), used }),
                Err(refusal @ (Refusal::Full(_) | Refusal::Quota(_))) => {
                    if tokio::time::timeout_at(deadline, room).await.is_err() {
                        return Err(refusal);
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Opens a session at the service. Returns its number.
    async fn open(&self, policy: Policy, inputs: Vec<(String, Value)>) -> Result<i64, Failure> {
        // Starting is work for a processor: more at once would all take longer.
        let _turn = self.starts.acquire().await;
        let number = self.next();
        let policy = Ok(Box::new(policy));
        self.ask(Request::Sandbox { sandbox: number, policy }).await?;
        let close = Request::InSession { session: number, command: SessionCommand::Close };
        let abandoned = OnDrop { node: self, request: Some(close) };
        let request = Request::Session { session: number, sandbox: number, inputs, from: None };
        let opened = self.ask(request).await;
        self.ask(Request::Drop { sandbox: number }).await?;
        opened?;
        abandoned.disarm();
        Ok(number)
    }

    /// Finds a session for who has its tenant's key or its own token.
    pub(crate) fn find(&self, who: &Credentials, id: &str) -> Result<Used, Refusal> {
        let origin = self.ids.origin(id).ok_or(Refusal::Unknown)?;
        if origin == Origin::Elsewhere {
            return Err(Refusal::Unknown);
        }
        if origin == Origin::Earlier {
            return Err(Refusal::Gone("the node was started anew since then".to_owned()));
        }
        let is_known = who.token.as_deref().is_some_and(|token| self.ids.is_token(id, token));
        let owner = if is_known {
            self.table.owner(id).ok_or(Refusal::Unknown)?
        } else {
            self.tenant(who).map_err(|_| Refusal::Unknown)?.name.clone()
        };
        self.table.get(&owner, id).map_err(|reason| match reason {
            Some(reason) => Refusal::Gone(reason.to_string()),
            None => Refusal::Unknown,
        })
    }

    /// Returns the token of a session.
    pub(crate) fn token(&self, id: &str) -> String {
        self.ids.token(id)
    }

    /// Returns a tenant's sessions, the oldest first.
    pub(crate) fn list(&self, tenant: &Tenant) -> Vec<Listed> {
        let mut sessions: Vec<_> = self.table.of(&tenant.name);
        sessions.sort_by_key(|(_, session)| session.created);
        sessions.into_iter().map(|(id, session)| listed(id, &session)).collect()
    }

    /// Gives a session more time, or less.
    pub(crate) fn renew(&self, session: &Used, ttl: Option<f64>) -> Result<(), Refusal> {
        *lock(&session.session().deadline) = self.deadline(ttl)?;
        Ok(())
    }

    fn deadline(&self, ttl: Option<f64>) -> Result<Instant, Refusal> {
        let asked = ttl.map(|ttl| super::execution::duration("ttl_s", ttl)).transpose()?;
        Ok(Instant::now() + asked.unwrap_or(self.settings.ttl).min(self.settings.ttl))
    }

    /// Has a session carry out a command that runs no code.
    pub(crate) async fn carry_out(
        &self,
        session: &Used,
        command: SessionCommand,
    ) -> Result<Value, Refusal> {
        let session = session.session().number;
        Ok(self.ask(Request::InSession { session, command }).await?)
    }

    /// Runs code in a session, in the tenant's turn. Dropping the future ends the run.
    pub(crate) async fn run(&self, session: &Used, run: NewRun) -> Result<Value, Refusal> {
        let _pass = self.turn(session).await?;
        self.finish(session, self.next(), run).await
    }

    /// As [`run`](Self::run), with what the run says while it runs.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        session: Used,
        run: NewRun,
    ) -> Result<Streamed, Refusal> {
        let pass = self.turn(&session).await?;
        let number = self.next();
        let events = self.replies.listen(number);
        let node = Arc::clone(self);
        let result = Box::pin(async move {
            let _pass = pass;
            node.finish(&session, number, run).await
        });
        Ok(Streamed { events, result })
    }

    /// Waits for the tenant's turn to run code.
    async fn turn(&self, session: &Used) -> Result<Pass, Refusal> {
        let NodeSession { tenant, max_runs, .. } = &**session.session();
        let patience = self.settings.queue_time;
        let entered = tokio::time::timeout(patience, self.runs.enter(tenant, *max_runs)).await;
        let entered = entered.map_err(|_| Refusal::Waited(patience))?;
        entered.map_err(|QueueIsFull(waiting)| {
            Refusal::Quota(format!("waiting runs of this key: limit {waiting}"))
        })
    }

    async fn finish(&self, session: &Used, number: i64, run: NewRun) -> Result<Value, Refusal> {
        let command =
            SessionCommand::Run { code: run.code, inputs: run.inputs, options: run.options };
        let request = Request::InSession { session: session.session().number, command };
        let cancel = Request::Cancel { session: session.session().number };
        let cancelled = OnDrop { node: self, request: Some(cancel) };
        let answer = self.ask_as(number, request).await;
        cancelled.disarm();
        let is_over = match &answer {
            Ok(execution) => execution.get("session_alive").is_some(),
            Err(failure) => !failure.session_alive,
        };
        if is_over {
            let reason = match &answer {
                Ok(execution) => ended(execution),
                Err(failure) => failure.message.clone(),
            };
            self.remove(session, Reason::Ended(reason)).await;
        }
        Ok(answer?)
    }

    /// Interrupts what runs in a session.
    pub(crate) async fn interrupt(&self, session: &Used) -> Result<(), Refusal> {
        let session = session.session().number;
        self.ask(Request::Interrupt { session }).await?;
        Ok(())
    }

    /// Answers a call of a tool. Returns `false` if none of this session waits for it.
    pub(crate) fn answer(&self, session: &Used, call: u64, answer: Answer) -> bool {
        if !self.replies.take_call(call, session.session().number) {
            return false;
        }
        self.service.answer(call, answer);
        true
    }

    /// Ends a session.
    pub(crate) async fn end(&self, session: &Used) {
        self.remove(session, Reason::Closed).await;
    }

    async fn remove(&self, session: &Used, reason: Reason) {
        let tenant = &session.session().tenant;
        // Its place is taken until it has ended.
        if let Some(ended) = self.table.remove(tenant, session.handle(), reason) {
            self.end_removed(&ended).await;
        }
    }

    async fn end_removed(&self, session: &NodeSession) {
        session.ended.cancel();
        let session = session.number;
        // It may have ended by itself.
        let _ = self.ask(Request::InSession { session, command: SessionCommand::Close }).await;
    }

    /// Ends sessions whose time is over, for as long as the node serves.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ROUND).await;
            for idle in self.table.idle() {
                if let Some(ended) = idle.give_up(Some(Reason::Idle(self.settings.idle))) {
                    self.end_removed(&ended).await;
                }
            }
            let now = Instant::now();
            let over = |session: &NodeSession| *lock(&session.deadline) <= now;
            for session in self.table.those(over) {
                self.remove(&session, Reason::Ended("its time was over".to_owned())).await;
            }
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Takes no new sessions from now on, waits for the runs, and ends all sessions. What has not
    /// ended in time is interrupted.
    pub(crate) async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + self.settings.drain;
        while self.runs.load() != (0, 0) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.service.end();
        self.sockets.end().await;
    }

    pub(crate) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Returns how long a session lives that nobody uses.
    pub(crate) fn idle(&self) -> Duration {
        self.settings.idle
    }

    fn next(&self) -> i64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn ask(&self, request: Request) -> Result<Value, Failure> {
        self.ask_as(self.next(), request).await
    }

    async fn ask_as(&self, number: i64, request: Request) -> Result<Value, Failure> {
        let answer = self.replies.expect(number);
        if let Some(work) = self.service.accept(number, request) {
            tokio::task::spawn_blocking(move || work.run());
        }
        answer.await.unwrap_or_else(|_| Err(Failure::protocol("the node ends")))
    }
}

/// Code to run.
pub(crate) struct NewRun {
    pub(crate) code: String,
    pub(crate) inputs: Vec<(String, Value)>,
    /// As the option of a run has them in `docs/serve.md`.
    pub(crate) options: Value,
}

/// A run that is listened to.
pub(crate) struct Streamed {
    pub(crate) events: Events,
    pub(crate) result: futures_util::future::BoxFuture<'static, Result<Value, Refusal>>,
}

/// Sends a request to the service if it is dropped: nobody waits for what it was made for any more.
struct OnDrop<'a> {
    node: &'a Node,
    request: Option<Request>,
}

impl OnDrop<'_> {
    fn disarm(mut self) {
        self.request = None;
    }
}

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take()
            && let Some(work) = self.node.service.accept(self.node.next(), request)
        {
            tokio::task::spawn_blocking(move || work.run());
        }
    }
}

fn listed(id: String, session: &NodeSession) -> Listed {
    let left = lock(&session.deadline).saturating_duration_since(Instant::now());
    Listed { id, created: session.created, left, metadata: session.metadata.clone() }
}

/// Says why a session is over, by the execution of its last run.
fn ended(execution: &Value) -> String {
    let message = execution.get("termination").and_then(|termination| termination.get("message"));
    match message.and_then(Value::as_str) {
        Some(message) => format!("it has ended: {message}"),
        None => "it has ended with its last run".to_owned(),
    }
}
