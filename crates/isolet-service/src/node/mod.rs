//! A node: sessions by id for tenants, as many as there is room for, and an end for each.
//!
//! A wire finds out who asks and what for, and says how a [`Refusal`] is written. It decides
//! nothing.

mod admission;
mod audit;
mod ceiling;
mod config;
mod contexts;
mod creations;
mod discretion;
mod guest;
mod ids;
mod in_flight;
mod memory;
mod metrics;
mod named;
mod on_drop;
mod packages;
mod places;
mod replies;
mod run_gate;
mod runs;
mod saved;
mod session;
mod sleep;
mod sockets;
mod starting;
mod store;
mod streamed;
mod tenants;
mod traces;
mod under_way;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use opentelemetry::global::BoxedTracer;
use tokio::sync::oneshot;

use self::audit::{Audit, Owns};
use self::creations::Creations;
use self::discretion::Discretion;
use self::ids::{Ids, Origin};
use self::in_flight::InFlight;
use self::named::NamedSessions;
use self::on_drop::OnDrop;
use self::places::Places;
use self::run_gate::{QueueIsFull, RunGate};
use self::saved::Snapshots;
use self::session::listed;
use self::sockets::Sockets;
use self::store::Store;
use self::traces::Traces;
use self::under_way::UnderWay;
use crate::core::{
    Command, Engines, Failure, Owner, Package, Reason, Reply, Service, SessionEntry, Table, Work,
};
use isolet::internals::lock;

pub use self::audit::{AuditRecord, Outage, Sink, over_quota};
pub use self::ceiling::{ImplicitGrants, MOST_SECONDS};
pub use self::config::{Config, Settings};
pub use self::contexts::{Context, HOME};
pub use self::discretion::Operator;
pub use self::guest::{Entry, EntryKind, Raised};
pub use self::in_flight::{Charge, with_results};
pub use self::memory::Memory;
pub use self::metrics::Metrics;
pub use self::replies::Event;
pub use self::runs::Streamed;
pub use self::saved::Snapshot;
pub use self::session::{Listed, NewSession, NodeSession, OwnSession, SessionLease};
pub use self::streamed::StreamItem;
pub use self::tenants::{LOCAL, Tenant};
pub use self::traces::within;
pub use self::under_way::Asked;

/// How often the node looks for sessions whose time is over.
const ROUND: Duration = Duration::from_secs(1);

/// Why the sessions of a tenant end that the node does not know any more.
const REMOVED: &str = "its tenant was removed";

/// The least time that answers have to arrive when the node ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a node does not do what a client asks for.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such key.
    Key,
    /// There is no such session, or it is not this client's.
    Unknown,
    /// The session is gone, for this reason.
    Gone(String),
    /// The session is paused.
    Paused,
    /// The session has no context of this name.
    NoContext(String),
    /// The tenant has no snapshot of this id.
    NoSnapshot(String),
    /// The node has as many sessions as it may.
    Full(usize),
    /// Too little memory is left.
    Memory(Memory),
    /// The tenant has as many sessions, or waiting runs, as it may.
    Quota(String),
    /// The tenant has started as many sessions as it may in a second, which is the first. It may
    /// start one after the second.
    TooFast(f64, Duration),
    /// The audit log cannot be written, for this reason.
    Unlogged(String),
    /// The tenant has used up its bytes of the audit log, and has none for so long.
    AuditQuota(u64, Duration),
    /// The node has as many bytes of requests and answers under way as it may.
    InFlight(u64),
    /// The request has waited for its turn for this time, which is all that it may.
    Waited(Awaited, Duration),
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

/// What a request waits for its turn to do.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// To run code, beside other runs of the node.
    Run,
    /// To use a session that other requests use, too.
    Session,
    /// To have packages made ready, after others of its tenant.
    Packages,
}

/// Who asks, and what proves it.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// A tenant's key.
    pub key: Option<String>,
    /// A session's token.
    pub token: Option<String>,
}

/// How full a node is.
pub struct Load {
    pub sessions: usize,
    pub max_sessions: usize,
    pub running: usize,
    pub waiting: usize,
    /// Starts that have packages made ready, and those that wait for their turn to.
    pub preparing: usize,
    pub waiting_for_packages: usize,
}

impl Load {
    /// Returns the part of the sessions that there may be that there are.
    #[expect(clippy::cast_precision_loss, reason = "a node has thousands")]
    pub fn slots_used(&self) -> f64 {
        self.sessions as f64 / self.max_sessions as f64
    }
}

/// The observers of a node: its audit log, its tracer and its operator.
#[derive(Default)]
pub struct Observers {
    /// The audit log.
    pub audit: Option<Box<dyn Sink>>,
    /// Makes the spans of traces.
    pub tracer: Option<BoxedTracer>,
    /// Its operator.
    pub operator: Option<Operator>,
}

pub struct Node {
    ids: Ids,
    settings: Settings,
    tenants: RwLock<Arc<tenants::Tenants>>,
    service: Arc<Service>,
    discretion: Discretion,
    /// Set once those who ask are clients, and not the node itself.
    has_clients: AtomicBool,
    table: Arc<Table<NodeSession>>,
    runs: Arc<RunGate>,
    /// Who starts a worker: as many at once as there are processors, and one of each tenant.
    starts: Arc<RunGate>,
    places: Arc<Places>,
    /// Who has packages made ready: one start of each tenant.
    packages: Arc<RunGate>,
    creations: Creations,
    named: NamedSessions,
    store: Option<Arc<Store>>,
    snapshots: Snapshots,
    sockets: Sockets,
    in_flight: Arc<InFlight>,
    under_way: Arc<UnderWay>,
    audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    traces: Arc<Traces>,
    is_draining: AtomicBool,
}

impl Node {
    /// Makes a node of this name.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be a part of ids.
    pub fn new(
        name: &str,
        mut settings: Settings,
        engines: Arc<Engines>,
        observers: Observers,
    ) -> Result<Arc<Self>, String> {
        let metrics = Arc::<Metrics>::default();
        let audit = Arc::new(Audit::new(observers.audit, settings.audit_outage));
        let traces = Arc::new(Traces::new(observers.tracer));
        let (own, shown) = (settings.own_paths(), settings.policy.mount_points());
        let discretion = Discretion::new(&own, &shown, observers.operator);
        let service = Service::new(engines);
        let tenants =
            std::mem::replace(&mut settings.tenants, tenants::Tenants::Keys(HashMap::new()));
        audit.set_quotas(tenants.audit_quotas().into_iter());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let ids = Ids::new(name)?;
        let store = settings.store.take().map(|store| Store::open(store, &ids)).transpose()?;
        Ok(Arc::new(Self {
            ids,
            table: Table::new(settings.idle, usize::MAX),
            runs: RunGate::new(settings.max_runs, settings.max_queue),
            in_flight: InFlight::new(settings.max_in_flight),
            under_way: UnderWay::new(settings.max_connections, tenants.is_open()),
            starts: RunGate::new(processors, usize::MAX),
            packages: RunGate::new(usize::MAX, settings.max_queue),
            places: Places::new(settings.max_sessions, settings.max_queue, settings.memory_reserve),
            settings,
            service,
            discretion,
            has_clients: AtomicBool::new(false),
            creations: Creations::default(),
            named: NamedSessions::default(),
            store: store.map(Arc::new),
            snapshots: Snapshots::default(),
            sockets: Sockets::new(),
            audit,
            metrics,
            traces,
            tenants: RwLock::new(Arc::new(tenants)),
            is_draining: AtomicBool::new(false),
        }))
    }

    pub fn name(&self) -> &str {
        self.ids.node()
    }

    /// Takes who asks for a client from now on, who is told no paths of the machine.
    pub fn has_clients(&self) {
        self.has_clients.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if no key is needed.
    pub fn is_open(&self) -> bool {
        self.tenants().is_open()
    }

    /// Replaces the tenants. Sessions stay those of the tenant of the same name. Those of a tenant
    /// that is gone end, and their tokens are of no use from then on.
    pub fn replace_tenants(self: &Arc<Self>, settings: Settings) {
        let tenants = Arc::new(settings.tenants);
        self.audit.set_quotas(tenants.audit_quotas().into_iter());
        *self.tenants.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&tenants);
        let is_gone = |name: &str| tenants.named(name).is_none();
        self.snapshots.forget_of(is_gone);
        for session in self.table.those(|session| is_gone(&session.tenant.name)) {
            let ended = self.take(&session, "closed", Reason::Ended(REMOVED.to_owned()));
            if let Some(ended) = ended {
                let node = Arc::clone(self);
                tokio::spawn(async move { node.vacate(&ended).await });
            }
        }
    }

    /// Returns a tenant as the node knows it now.
    fn current(&self, tenant: &Tenant) -> Result<Arc<Tenant>, Refusal> {
        self.tenants().named(&tenant.name).map(Arc::clone).ok_or(Refusal::Key)
    }

    fn tenants(&self) -> Arc<tenants::Tenants> {
        Arc::clone(&self.tenants.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the tenant of a key.
    pub fn tenant(&self, who: &Credentials) -> Result<Arc<Tenant>, Refusal> {
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
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The same, as Prometheus reads it.
    pub fn metrics_text(&self) -> String {
        self.metrics.text(&self.load())
    }

    /// Returns how many bytes an answer may have.
    pub fn max_answer(&self) -> u64 {
        self.settings.max_answer
    }

    /// Returns how many runs there may be at once.
    pub fn max_runs(&self) -> usize {
        self.settings.max_runs
    }

    /// Returns how long a run waits for its turn.
    pub fn queue_time(&self) -> Duration {
        self.settings.queue_time
    }

    pub fn load(&self) -> Load {
        let (running, waiting) = self.runs.load();
        let (preparing, waiting_for_packages) = self.packages.load();
        let (sessions, max_sessions) = (self.places.all(), self.settings.max_sessions);
        Load { sessions, max_sessions, running, waiting, preparing, waiting_for_packages }
    }

    /// Finds a session for who has its tenant's key or its own token.
    pub fn find(&self, who: &Credentials, id: &str) -> Result<SessionLease, Refusal> {
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
    pub fn token(&self, id: &str) -> String {
        self.ids.token(id)
    }

    /// Returns a tenant's sessions, the oldest first.
    pub fn list(&self, tenant: &Tenant) -> Vec<Listed> {
        let mut sessions: Vec<_> = self.table.of(&tenant.name);
        sessions.sort_by_key(|(_, session)| session.created);
        sessions.into_iter().map(|(id, session)| listed(id, &session)).collect()
    }

    /// Gives a session more time, or less.
    pub fn renew(&self, session: &SessionLease, ttl: Option<f64>) -> Result<(), Refusal> {
        *lock(&session.session().deadline) = self.deadline(ttl)?;
        Ok(())
    }

    fn deadline(&self, ttl: Option<f64>) -> Result<Instant, Refusal> {
        let asked = ttl.map(|ttl| crate::core::execution::duration("ttl", ttl)).transpose()?;
        Ok(Instant::now() + asked.unwrap_or(self.settings.ttl).min(self.settings.ttl))
    }

    /// Has a session carry out a command that runs no code.
    pub async fn carry_out<T: Send + 'static>(
        &self,
        session: &SessionLease,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        let session = session.session().entry()?;
        Ok(self.ask(|reply| self.service.carry_out(&session, command(reply))).await?)
    }

    /// Loads packages that the session's policy names. Returns those that were not there before.
    pub async fn install(
        &self,
        session: &SessionLease,
        requirements: Vec<String>,
    ) -> Result<Vec<Package>, Refusal> {
        let requirements = ceiling::admit_packages(&session.session().policy, requirements)?;
        self.carry_out(session, |reply| Command::LoadPackages { requirements, reply }).await
    }

    /// Ends a session.
    pub async fn end(&self, session: &SessionLease) {
        self.remove(session, "closed", Reason::Closed).await;
    }

    /// Returns `true` if a session was ended from outside, and not by what it ran.
    pub fn was_ended(&self, session: &SessionLease) -> bool {
        match self.table.get(&session.session().tenant.name, session.handle()) {
            Err(Some(Reason::Ended(_))) | Ok(_) => false,
            Err(_) => true,
        }
    }

    async fn remove(&self, session: &SessionLease, kind: &'static str, reason: Reason) {
        // Its place is taken until it has ended.
        if let Some(ended) = self.take(session, kind, reason) {
            self.vacate(&ended).await;
        }
    }

    /// Ends what there is of a session that the table does not have any more.
    async fn vacate(&self, ended: &NodeSession) {
        ended.ended().cancel();
        if let Ok(entry) = ended.entry() {
            self.end_entry(&entry).await;
        }
    }

    /// Takes a session away, which counts as an end of this kind.
    fn take(
        &self,
        session: &SessionLease,
        kind: &'static str,
        reason: Reason,
    ) -> Option<Arc<NodeSession>> {
        let (tenant, text) = (&session.session().tenant.name, reason.to_string());
        let ended = self.table.remove(tenant, session.handle(), reason)?;
        self.metrics.ended(kind);
        self.audit.write(tenant, session.handle(), &AuditRecord::Ended(&text));
        Some(ended)
    }

    async fn end_entry(&self, session: &Arc<SessionEntry>) {
        // It may have ended by itself.
        let close = |reply| self.service.carry_out(session, Command::Close { reply });
        let _ = self.ask(close).await;
    }

    /// Ends sessions whose time is over, and lets those in that have waited for time, for as long
    /// as the node serves.
    pub async fn keep_time(self: Arc<Self>) {
        tokio::spawn(Arc::clone(&self.places).keep_time());
        loop {
            tokio::time::sleep(ROUND).await;
            self.audit.keep_up();
            for idle in self.table.idle() {
                if idle.session().is_paused() {
                    continue;
                }
                if idle.session().pauses_at_end {
                    self.pause_at_end(idle);
                } else {
                    self.give_up(idle).await;
                }
            }
            let now = Instant::now();
            let over = |session: &NodeSession| *lock(&session.deadline) <= now;
            for session in self.table.those(over) {
                if session.session().pauses_at_end && !session.session().is_paused() {
                    self.pause_at_end(session);
                } else {
                    self.remove(&session, "expired", Reason::Expired).await;
                }
            }
            self.snapshots.forget_old();
            self.named.forget_gone(|id| self.table.has(id));
            self.creations.forget(|id| !self.table.has(id));
        }
    }

    /// Ends a session that nobody uses, unless somebody does now.
    async fn give_up(&self, idle: SessionLease) {
        let reason = Reason::Idle(self.settings.idle);
        let (tenant, id) = (Arc::clone(&idle.session().tenant), idle.handle().to_owned());
        let text = reason.to_string();
        if let Some(ended) = idle.give_up(Some(reason)) {
            self.metrics.ended("idle");
            self.audit.write(&tenant.name, &id, &AuditRecord::Ended(&text));
            self.vacate(&ended).await;
        }
    }

    /// Returns why the node starts nothing now, if so.
    pub fn is_ready(&self) -> Result<(), Refusal> {
        if self.is_draining() { Err(Refusal::Draining) } else { self.audit.check(LOCAL) }
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Takes no new sessions from now on, waits for the runs, and ends all sessions. What has not
    /// ended in time is interrupted.
    ///
    /// Returns until when answers that are being sent may take.
    pub async fn drain(&self) -> Instant {
        self.is_draining.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + self.settings.drain;
        while self.runs.load() != (0, 0) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let reason = || Reason::Ended("the node has ended".to_owned());
        let take = |session: &SessionLease| self.take(session, "closed", reason());
        let ended: Vec<_> = self.table.all().iter().filter_map(take).collect();
        // Idle ones end in good order, those that run something at once.
        let ends = join_all(ended.iter().map(|session| self.vacate(session)));
        let _ = tokio::time::timeout_at(deadline.max(Instant::now() + FAREWELL).into(), ends).await;
        self.service.end();
        self.sockets.end().await;
        if let Some(store) = &self.store {
            store.clear();
        }
        self.audit.end();
        deadline.max(Instant::now() + FAREWELL)
    }

    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Returns how long a session lives that nobody uses.
    pub fn idle(&self) -> Duration {
        self.settings.idle
    }

    /// Has the service begin something, and waits for the answer.
    async fn ask<T: Send + 'static>(
        &self,
        begin: impl FnOnce(Reply<T>) -> Option<Work>,
    ) -> Result<T, Failure> {
        let (reply, answer) = Reply::channel();
        if let Some(work) = begin(reply) {
            work.spawn();
        }
        self.received(answer).await
    }

    /// Waits for an answer, and returns what a client is told of it.
    async fn received<T>(
        &self,
        answer: oneshot::Receiver<Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let answer = answer.await.unwrap_or_else(|_| Err(Failure::protocol("the node ends")));
        let has_clients = self.has_clients.load(Ordering::Relaxed);
        answer.map_err(
            |failure| if has_clients { self.discretion.failure(&failure) } else { failure },
        )
    }

    /// Returns whose a session with this id is.
    fn owner(&self, tenant: &str, id: &str) -> Arc<dyn Owner> {
        Arc::new(Owns::new(&self.audit, tenant, id))
    }
}

/// Why a session that is looked for is not there.
fn gone(reason: Option<Reason>) -> Refusal {
    match reason {
        Some(reason) => Refusal::Gone(reason.to_string()),
        None => Refusal::Unknown,
    }
}
