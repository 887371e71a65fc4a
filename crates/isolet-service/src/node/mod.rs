//! A node: the sessions of several tenants by id, within limits, each with a deadline.
//!
//! A wire authenticates a request, translates it, and writes a [`Refusal`] in its own form. The
//! node makes all decisions.

mod admission;
mod allowance;
mod audit;
mod ceiling;
mod commands;
mod config;
mod contexts;
mod discretion;
mod domain;
mod durable;
mod ending;
mod events;
mod finished;
mod guest;
mod idempotency;
mod ids;
mod in_flight;
mod journals;
mod kept_files;
mod lending;
mod memory;
mod metrics;
mod named;
mod on_drop;
mod open_requests;
mod packages;
mod pausing;
mod private_directory;
mod restoring;
mod run_gate;
mod run_log;
mod runs;
mod saved;
mod session;
mod slots;
mod sockets;
mod starting;
mod store;
mod streamed;
mod tenants;
mod tool_runs;
mod traces;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use opentelemetry::global::BoxedTracer;
use tokio::sync::oneshot;

use self::audit::{Audit, AuditOwner};
use self::discretion::Discretion;
use self::finished::FinishedSessions;
use self::idempotency::IdempotencyCache;
use self::ids::{Ids, Origin};
use self::in_flight::InFlight;
use self::journals::Journals;
use self::kept_files::KeptFiles;
use self::named::NamedSessions;
use self::on_drop::OnDrop;
use self::open_requests::OpenRequests;
use self::restoring::Restorations;
use self::run_gate::{QueueIsFull, RunGate};
use self::saved::Snapshots;
use self::session::listed;
use self::slots::Slots;
use self::sockets::Sockets;
use self::store::Store;
use self::traces::Traces;
use crate::core::{Command, Engines, Failure, Owner, Package, Reason, Reply, Service, Table, Work};
use isolet::internals::lock;

pub use self::allowance::{Allowance, MostAllowed};
pub use self::audit::{AuditRecord, Outage, Sink, over_quota};
pub use self::ceiling::{ImplicitGrants, MOST_SECONDS};
pub use self::commands::{CommandEnd, CommandEvent, CommandLine, RunningCommand};
pub use self::config::{Config, JournalSettings, RequestLogFormat, Settings, TlsSettings};
pub use self::contexts::{Context, HOME};
pub use self::discretion::Operator;
pub use self::domain::{Domain, SandboxName};
pub use self::events::Event;
pub use self::guest::{Entry, EntryKind, Raised};
pub use self::in_flight::{Charge, Results, with_results};
pub use self::kept_files::{Fingerprint, KeptFile, NewFile};
pub use self::lending::LentRun;
pub use self::memory::Memory;
pub use self::metrics::Metrics;
pub use self::open_requests::RequestPermit;
pub use self::run_log::{Cursor, DurableRun, Reader, RunEnd, Told};
pub use self::runs::Streamed;
pub use self::saved::Snapshot;
pub use self::session::{
    Durability, Listed, NewSession, NodeSession, OwnSession, SessionLease, SessionState,
};
pub use self::streamed::StreamItem;
pub use self::tenants::{LOCAL, Tenant};
pub use self::tool_runs::{Step, ToolRun, WaitingCall};
pub use self::traces::within;

/// How often the node looks for sessions past their deadline.
const ROUND: Duration = Duration::from_secs(1);

/// The number of characters of a random token, which have five random bits each.
const TOKEN_CHARS: usize = 32;

/// Why the sessions of a removed tenant end.
const REMOVED: &str = "its tenant was removed";

/// Why a node refuses a request.
#[derive(Debug)]
pub enum Refusal {
    /// The key is missing or wrong.
    Key,
    /// The session does not exist, or belongs to another client.
    Unknown,
    /// The session has ended, for this reason.
    Gone(String),
    /// The session is being restored: the node was started again.
    Restoring,
    /// The session is paused.
    Paused,
    /// The session has no context of this name.
    NoContext(String),
    /// The session has no such run, for this reason.
    NoRun(String),
    /// The tenant has no snapshot of this id.
    NoSnapshot(String),
    /// The node has the maximum number of sessions.
    Full(usize),
    /// Too little memory is left.
    Memory(Memory),
    /// The tenant has the maximum number of sessions or queued runs.
    Quota(String),
    /// The tenant has started the maximum number of sessions in a second, the first field. The
    /// second is the time until it may start the next one.
    TooFast(f64, Duration),
    /// The audit log cannot be written, for this reason.
    Unlogged(String),
    /// The tenant's quota of the audit log, in bytes, is used up for this time.
    AuditQuota(u64, Duration),
    /// The node has the maximum number of bytes of requests and answers under way.
    InFlight(u64),
    /// The request has waited in a queue for the longest time allowed, the second field.
    Waited(Awaited, Duration),
    /// The node is shutting down.
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

/// What a queued request waits for.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// A free place among the node's runs.
    Run,
    /// Exclusive use of its session.
    Session,
    /// Another start of the tenant that prepares packages.
    Packages,
}

/// The credentials of a request.
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
    /// The number of starts that prepare packages, and of those queued behind them.
    pub preparing: usize,
    pub waiting_for_packages: usize,
}

impl Load {
    /// Returns the ratio of sessions to the maximum.
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
    /// Creates spans.
    pub tracer: Option<BoxedTracer>,
    /// Receives messages for the operator.
    pub operator: Option<Operator>,
}

pub struct Node {
    ids: Ids,
    settings: Settings,
    tenants: RwLock<Arc<tenants::Tenants>>,
    service: Arc<Service>,
    discretion: Discretion,
    /// Set once requests come from clients, and not from the node's own start-up check.
    has_clients: AtomicBool,
    table: Arc<Table<NodeSession>>,
    runs: Arc<RunGate>,
    /// Starting workers: as many at once as there are processors, and one of each tenant.
    starts: Arc<RunGate>,
    slots: Arc<Slots>,
    /// Preparing packages: one start of each tenant at a time.
    packages: Arc<RunGate>,
    idempotency: IdempotencyCache,
    named: NamedSessions,
    store: Option<Arc<Store>>,
    snapshots: Snapshots,
    journals: Option<Arc<Journals>>,
    restorations: Restorations,
    finished: FinishedSessions,
    kept: KeptFiles,
    sockets: Sockets,
    in_flight: Arc<InFlight>,
    open_requests: Arc<OpenRequests>,
    audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    traces: Arc<Traces>,
    is_draining: AtomicBool,
    since: Instant,
}

impl Node {
    /// Creates a node with this name.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be part of an id.
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
        let journals = settings.journals.take();
        let journals = journals.map(|journals| Journals::open(journals, name)).transpose()?;
        let (journals, ids) = match journals {
            Some((journals, secret)) => (Some(journals), Ids::with_secret(name, secret)?),
            None => (None, Ids::new(name)?),
        };
        let store = settings.store.take().map(|store| Store::open(store, &ids)).transpose()?;
        Ok(Arc::new(Self {
            ids,
            table: Table::new(settings.idle, usize::MAX),
            runs: RunGate::new(settings.max_runs, settings.max_queue),
            in_flight: InFlight::new(settings.max_in_flight),
            open_requests: OpenRequests::new(settings.max_connections, tenants.is_open()),
            starts: RunGate::new(processors, usize::MAX),
            packages: RunGate::new(usize::MAX, settings.max_queue),
            slots: Slots::new(settings.max_sessions, settings.max_queue, settings.memory_reserve),
            settings,
            service,
            discretion,
            has_clients: AtomicBool::new(false),
            idempotency: IdempotencyCache::default(),
            named: NamedSessions::default(),
            store: store.map(Arc::new),
            snapshots: Snapshots::default(),
            journals,
            restorations: Restorations::default(),
            finished: FinishedSessions::default(),
            kept: KeptFiles::default(),
            sockets: Sockets::new(),
            audit,
            metrics,
            traces,
            tenants: RwLock::new(Arc::new(tenants)),
            is_draining: AtomicBool::new(false),
            since: Instant::now(),
        }))
    }

    pub fn name(&self) -> &str {
        self.ids.node()
    }

    /// Treats all further requests as a client's: their failures contain no paths of the machine.
    pub fn has_clients(&self) {
        self.has_clients.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if no key is needed.
    pub fn is_open(&self) -> bool {
        self.tenants().is_open()
    }

    /// Replaces the tenants. A session belongs to the new tenant of the same name. Sessions of
    /// removed tenants end, and their tokens stop working.
    pub fn replace_tenants(self: &Arc<Self>, settings: Settings) {
        let tenants = Arc::new(settings.tenants);
        self.audit.set_quotas(tenants.audit_quotas().into_iter());
        *self.tenants.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&tenants);
        let is_gone = |name: &str| tenants.named(name).is_none();
        self.snapshots.forget_of(is_gone);
        self.restorations.forget(is_gone);
        self.finished.forget(is_gone);
        self.kept.forget_of(is_gone);
        for session in self.table.those(|session| is_gone(&session.tenant.name)) {
            let ended = self.take(&session, "closed", Reason::Ended(REMOVED.to_owned()));
            if let Some(ended) = ended {
                let node = Arc::clone(self);
                tokio::spawn(async move { node.vacate(&ended).await });
            }
        }
    }

    /// Returns the current settings of a tenant.
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

    /// Counts a refusal in the metrics.
    fn counted<T, E: Into<Refusal>>(&self, result: Result<T, E>) -> Result<T, Refusal> {
        result.map_err(|refusal| {
            let refusal = refusal.into();
            self.metrics.refused(&refusal);
            refusal
        })
    }

    /// Returns the domain below which sandboxes have names.
    pub fn domain(&self) -> Option<&Domain> {
        self.settings.domain.as_ref()
    }

    /// Returns a random text of a-z and 2-7, which nobody can guess.
    pub fn random_token(&self) -> Result<String, Refusal> {
        let token = ids::random(TOKEN_CHARS);
        token.map_err(|error| Failure::config(error.to_string()).into())
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns the metrics in Prometheus's text format.
    pub fn metrics_text(&self) -> String {
        self.metrics.text(&self.load())
    }

    /// Returns the maximum length of an answer, in bytes.
    pub fn max_answer(&self) -> u64 {
        self.settings.max_answer
    }

    /// Returns the maximum number of concurrent runs.
    pub fn max_runs(&self) -> usize {
        self.settings.max_runs
    }

    /// Returns the longest time that a run waits in the queue.
    pub fn queue_time(&self) -> Duration {
        self.settings.queue_time
    }

    pub fn load(&self) -> Load {
        let (running, waiting) = self.runs.load();
        let (preparing, waiting_for_packages) = self.packages.load();
        let (sessions, max_sessions) = (self.slots.all(), self.settings.max_sessions);
        Load { sessions, max_sessions, running, waiting, preparing, waiting_for_packages }
    }

    /// Finds the session of an id, for a client with its tenant's key or its token.
    pub fn find(&self, who: &Credentials, id: &str) -> Result<SessionLease, Refusal> {
        let origin = self.ids.origin(id).ok_or(Refusal::Unknown)?;
        if origin == Origin::Elsewhere {
            return Err(Refusal::Unknown);
        }
        let is_known = who.token.as_deref().is_some_and(|token| self.ids.is_token(id, token));
        if origin == Origin::Earlier {
            self.find_earlier(who, id, is_known)?;
        }
        if is_known {
            // The token proves that the session existed.
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

    /// Returns a tenant's sessions that have not ended, the oldest first.
    pub fn list(&self, tenant: &Tenant) -> Vec<Listed> {
        let mut sessions: Vec<_> = self.table.of(&tenant.name);
        sessions.sort_by_key(|(_, session)| session.created);
        sessions.into_iter().map(|(id, session)| listed(id, &session)).collect()
    }

    /// Sets a session's deadline to this many seconds from now.
    pub fn renew(&self, session: &SessionLease, ttl: Option<f64>) -> Result<(), Refusal> {
        let deadline = self.deadline(ttl)?;
        if let Some(durable) = &session.session().durable {
            durable.renew(deadline).map_err(|failure| self.discretion.failure(&failure))?;
        }
        *lock(&session.session().deadline) = deadline;
        Ok(())
    }

    fn deadline(&self, ttl: Option<f64>) -> Result<Instant, Refusal> {
        let asked = ttl.map(|ttl| crate::core::execution::duration("ttl", ttl)).transpose()?;
        Ok(Instant::now() + asked.unwrap_or(self.settings.ttl).min(self.settings.ttl))
    }

    /// Carries out a command that runs no code in a session.
    pub async fn carry_out<T: Send + 'static>(
        &self,
        session: &SessionLease,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refusal> {
        let session = session.session().entry()?;
        Ok(self.ask(|reply| self.service.carry_out(&session, command(reply))).await?)
    }

    /// Loads packages that the session's policy allows. Returns the newly loaded ones.
    pub async fn install(
        &self,
        session: &SessionLease,
        requirements: Vec<String>,
    ) -> Result<Vec<Package>, Refusal> {
        let requirements = ceiling::admit_packages(&session.session().policy, requirements)?;
        self.carry_out(session, |reply| Command::LoadPackages { requirements, reply }).await
    }

    /// Ends or pauses expired and idle sessions, and starts the checks of queued starts. Runs
    /// forever.
    pub async fn keep_time(self: Arc<Self>) {
        tokio::spawn(Arc::clone(&self.slots).keep_time());
        loop {
            tokio::time::sleep(ROUND).await;
            self.audit.keep_up();
            for idle in self.table.idle() {
                // A durable session waits for its client until its time is over.
                if idle.session().is_paused() || idle.session().is_durable() {
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
            self.restorations.forget_old();
            self.finished.forget_old();
            self.kept.forget_unused(self.settings.ttl);
            self.named.forget_gone(|id| self.table.has(id));
            self.idempotency.forget(|id| !self.table.has(id));
        }
    }

    /// Ends an idle session, unless a request has begun to use it.
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

    /// Fails if the node cannot start sessions at the moment.
    pub fn is_ready(&self) -> Result<(), Refusal> {
        if self.is_draining() { Err(Refusal::Draining) } else { self.audit.check(LOCAL) }
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Returns the time after which an unused session ends.
    pub fn idle(&self) -> Duration {
        self.settings.idle
    }

    /// Starts work in the service and waits for its answer.
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

    /// Waits for an answer, and hides the machine's paths in its failure.
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

    /// Returns the owner of a session with this id.
    fn owner(&self, tenant: &str, id: &str) -> Arc<dyn Owner> {
        Arc::new(AuditOwner::new(&self.audit, tenant, id, false))
    }
}

/// Returns the refusal for a session that is gone.
fn gone(reason: Option<Reason>) -> Refusal {
    match reason {
        Some(Reason::Left) => Refusal::Draining,
        Some(reason) => Refusal::Gone(reason.to_string()),
        None => Refusal::Unknown,
    }
}
