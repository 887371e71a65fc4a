//! A node: sessions by id for tenants, as many as there is room for, and an end for each.
//!
//! A wire finds out who asks and what for, and says how a [`Refusal`] is written. It decides
//! nothing.

mod audit;
mod ceiling;
mod config;
mod creations;
mod ids;
mod memory;
mod metrics;
mod places;
mod replies;
mod run_gate;
mod runs;
mod session;
mod tenants;
mod traces;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;
use opentelemetry::global::BoxedTracer;
use tokio::sync::{Notify, Semaphore};

use self::audit::Audit;
use self::creations::Creations;
use self::ids::{Ids, Origin};
use self::places::{Counts, Vacated};
use self::replies::Replies;
use self::run_gate::{QueueIsFull, RunGate};
use self::session::{NodeSession, listed};
use self::traces::Traces;
use super::{
    Client, Engines, Failure, Policy, Reason, Request, Service, SessionCommand, Table, lock,
};

pub(crate) use self::audit::{Happened, Sink};
pub(crate) use self::config::{Config, Settings};
pub(crate) use self::memory::Memory;
pub(crate) use self::metrics::Metrics;
pub(crate) use self::replies::{Event, Events};
pub(crate) use self::runs::{NewRun, Streamed};
pub(crate) use self::session::{Listed, NewSession, OwnSession, Used};
pub(crate) use self::tenants::Tenant;
pub(crate) use self::traces::within;

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
    /// Too little memory is left.
    Memory(Memory),
    /// The tenant has as many sessions, or waiting runs, as it may.
    Quota(String),
    /// The tenant has started as many sessions as it may in a second, which is the first. It may
    /// start one after the second.
    TooFast(f64, Duration),
    /// The run has waited for its turn for this time.
    Waited(Duration),
    /// The node ends.
    Draining,
    /// The request cannot be read, for this reason.
    Unreadable(String),
    Failure(Failure),
}

impl From<QueueIsFull> for Refusal {
    fn from(QueueIsFull(waiting): QueueIsFull) -> Self {
        Self::Quota(format!("waiting runs of this key: limit {waiting}"))
    }
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

/// How full a node is.
pub(crate) struct Load {
    pub(crate) sessions: usize,
    pub(crate) max_sessions: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
}

impl Load {
    /// Returns the part of the sessions that there may be that there are.
    #[expect(clippy::cast_precision_loss, reason = "a node has thousands")]
    pub(crate) fn slots_used(&self) -> f64 {
        self.sessions as f64 / self.max_sessions as f64
    }
}

/// What a node tells others of what it does.
#[derive(Default)]
pub(crate) struct Watchers {
    /// The audit log.
    pub(crate) audit: Option<Sink>,
    /// Makes the spans of traces.
    pub(crate) tracer: Option<BoxedTracer>,
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
    creations: Creations,
    audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    traces: Arc<Traces>,
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
        watchers: Watchers,
    ) -> Result<Arc<Self>, String> {
        let metrics = Arc::<Metrics>::default();
        let audit = Arc::new(Audit::new(watchers.audit));
        let traces = Arc::new(Traces::new(watchers.tracer));
        let replies = Replies::new(Arc::clone(&audit), Arc::clone(&traces), metrics.tool_calls());
        let replies = Arc::new(replies);
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
            creations: Creations::default(),
            audit,
            metrics,
            traces,
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
        self.counted(self.tenants().of(who.key.as_deref()).map(Arc::clone).ok_or(Refusal::Key))
    }

    /// Counts a request that is refused.
    fn counted<T, E: Into<Refusal>>(&self, result: Result<T, E>) -> Result<T, Refusal> {
        result.map_err(|refusal| {
            let refusal = refusal.into();
            self.metrics.refused(&refusal);
            refusal
        })
    }

    /// What the node has counted and measured.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The same, as Prometheus reads it.
    pub(crate) fn metrics_text(&self) -> String {
        self.metrics.text(&self.load())
    }

    /// Returns how many runs there may be at once.
    pub(crate) fn max_runs(&self) -> usize {
        self.settings.max_runs
    }

    /// Returns how long a run waits for its turn.
    pub(crate) fn queue_time(&self) -> Duration {
        self.settings.queue_time
    }

    pub(crate) fn load(&self) -> Load {
        let (running, waiting) = self.runs.load();
        let (sessions, max_sessions) = (self.table.len(), self.settings.max_sessions);
        Load { sessions, max_sessions, running, waiting }
    }

    /// Starts a session. If `key` is given, sending the same again finds the same session.
    pub(crate) async fn create(
        &self,
        tenant: &Arc<Tenant>,
        new: NewSession,
        key: Option<&str>,
    ) -> Result<Used, Refusal> {
        let Some(key) = key else {
            return self.counted(self.start(tenant, new).await);
        };
        let creation = self.creations.of(&tenant.name, key, &new)?;
        let start =
            async || self.start(tenant, new).await.map(|session| session.handle().to_owned());
        let id = self.counted(creation.id.get_or_try_init(start).await)?;
        self.table.get(&tenant.name, id).map_err(gone)
    }

    /// Starts a session for one request. While there is no room, waits for it, at most for
    /// `patience`.
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
            let refusal = match self.start(tenant, new.clone()).await {
                Ok(used) => return Ok(OwnSession::new(Arc::clone(self), used)),
                Err(refusal) => refusal,
            };
            let is_over = match refusal {
                Refusal::Full(_) | Refusal::Quota(_) | Refusal::Memory(_) => {
                    tokio::time::timeout_at(deadline, room).await.is_err()
                }
                Refusal::TooFast(_, after) => {
                    tokio::time::timeout_at(deadline, tokio::time::sleep(after)).await.is_err()
                }
                _ => true,
            };
            if is_over {
                return self.counted(Err(refusal));
            }
        }
    }

    async fn start(&self, tenant: &Arc<Tenant>, new: NewSession) -> Result<Used, Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        let mut policy = tenant.ceiling.admit(&self.settings.policy, Policy::read(new.policy)?)?;
        policy.audit |= self.audit.is_on();
        let deadline = self.deadline(new.ttl)?;
        let slot = self.counts.take(tenant, self.settings.max_sessions)?;
        if let Some(memory) =
            Memory::read().filter(|all| all.is_below(self.settings.memory_reserve))
        {
            return Err(Refusal::Memory(memory));
        }
        let since = Instant::now();
        let rate = tenant.quotas.starts;
        tenant.starts.take(rate, since).map_err(|after| Refusal::TooFast(rate, after))?;
        // The table has room for as many.
        let room = self.table.make_room().map_err(|_| Refusal::Full(self.settings.max_sessions))?;
        let id = self.ids.next().map_err(|error| Failure::config(error.to_string()))?;
        let number = self.next();
        self.audit.name(number, &tenant.name, &id);
        let traced = self.traces.session(&tenant.name, &id);
        if let Err(failure) = self.open(number, policy, new.inputs).await {
            self.audit.forget(number, &failure.message);
            return Err(failure.into());
        }
        self.metrics.started(since);
        let session = NodeSession {
            number,
            tenant: tenant.name.clone(),
            created: SystemTime::now(),
            deadline: Mutex::new(deadline),
            metadata: new.metadata,
            max_runs: tenant.quotas.runs,
            traced,
            _slot: slot,
            _vacated: Vacated(Arc::clone(&self.room)),
        };
        Ok(room.fill_again(&tenant.name, id, session))
    }

    /// Opens a session at the service, with this number.
    async fn open(
        &self,
        number: i64,
        policy: Policy,
        inputs: Vec<(String, Value)>,
    ) -> Result<(), Failure> {
        // Starting is work for a processor: more at once would all take longer.
        let _turn = self.starts.acquire().await;
        let policy = Ok(Box::new(policy));
        self.ask(Request::Sandbox { sandbox: number, policy }).await?;
        let close = Request::InSession { session: number, command: SessionCommand::Close };
        let abandoned = OnDrop { node: self, request: Some(close) };
        let request = Request::Session { session: number, sandbox: number, inputs, from: None };
        let opened = self.ask(request).await;
        self.ask(Request::Drop { sandbox: number }).await?;
        opened?;
        abandoned.disarm();
        Ok(())
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
        if is_known {
            // Its token proves that there was one.
            let ended = || Refusal::Gone("it has ended".to_owned());
            let owner = self.table.owner(id).ok_or_else(ended)?;
            return self
                .table
                .get(&owner, id)
                .map_err(|reason| reason.map_or_else(ended, |reason| gone(Some(reason))));
        }
        let tenant = self.tenants().of(who.key.as_deref()).map(Arc::clone);
        self.table.get(&tenant.ok_or(Refusal::Unknown)?.name, id).map_err(gone)
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

    /// Ends a session.
    pub(crate) async fn end(&self, session: &Used) {
        self.remove(session, "closed", Reason::Closed).await;
    }

    async fn remove(&self, session: &Used, kind: &'static str, reason: Reason) {
        // Its place is taken until it has ended.
        if let Some(ended) = self.take(session, kind, reason) {
            self.end_number(ended.number).await;
        }
    }

    /// Takes a session away, which counts as an end of this kind.
    fn take(&self, session: &Used, kind: &'static str, reason: Reason) -> Option<Arc<NodeSession>> {
        let text = reason.to_string();
        let ended = self.table.remove(&session.session().tenant, session.handle(), reason)?;
        self.said_to_end(&ended, kind, &text);
        Some(ended)
    }

    fn said_to_end(&self, session: &NodeSession, kind: &'static str, reason: &str) {
        self.metrics.ended(kind);
        self.audit.forget(session.number, reason);
    }

    async fn end_number(&self, session: i64) {
        // It may have ended by itself.
        let _ = self.ask(Request::InSession { session, command: SessionCommand::Close }).await;
    }

    /// Ends sessions whose time is over, for as long as the node serves.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ROUND).await;
            for idle in self.table.idle() {
                let reason = Reason::Idle(self.settings.idle);
                let text = reason.to_string();
                if let Some(ended) = idle.give_up(Some(reason)) {
                    self.said_to_end(&ended, "idle", &text);
                    self.end_number(ended.number).await;
                }
            }
            let now = Instant::now();
            let over = |session: &NodeSession| *lock(&session.deadline) <= now;
            for session in self.table.those(over) {
                let reason = Reason::Ended("its time was over".to_owned());
                self.remove(&session, "expired", reason).await;
            }
            self.creations.forget(|id| !self.table.has(id));
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
        for session in self.table.all() {
            self.take(&session, "closed", Reason::Ended("the node has ended".to_owned()));
        }
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

/// Why a session that is looked for is not there.
fn gone(reason: Option<Reason>) -> Refusal {
    match reason {
        Some(reason) => Refusal::Gone(reason.to_string()),
        None => Refusal::Unknown,
    }
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
