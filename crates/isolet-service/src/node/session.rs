//! A session of a node: its state, and the types that describe it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::commands::Commands;
use super::contexts::{Context, Contexts};
use super::durable::DurableSession;
use super::slots::Slot;
use super::store::Saved;
use super::tenants::Tenant;
use super::traces::Traced;
use super::{ImplicitGrants, Node, Refusal};
use crate::core::{Lease, Plain, Policy, Reason, SessionEntry, execution, plain};
use isolet::internals::lock;

/// A session of a tenant.
pub struct NodeSession {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) policy: Policy,
    pub(crate) created: SystemTime,
    /// When it expires.
    pub(crate) deadline: Mutex<Instant>,
    /// Set if the session is paused when it expires, and not ended.
    pub(crate) pauses_at_end: bool,
    /// Set if a request resumes the paused session, in protocols that do so.
    pub(crate) resumes_on_use: bool,
    pub(crate) metadata: Plain,
    pub(crate) state: Mutex<NodeSessionState>,
    pub(crate) contexts: Contexts,
    pub(crate) commands: Commands,
    /// Set if it outlives the node's process.
    pub(crate) durable: Option<Arc<DurableSession>>,
    pub(crate) use_so_far: Mutex<Use>,
    /// Cancelled once the session ends.
    pub(crate) ended: CancellationToken,
    /// The session's span, which ends with it.
    pub(crate) traced: Traced,
}

impl NodeSession {
    /// Returns the session of the service.
    pub(crate) fn entry(&self) -> Result<Arc<SessionEntry>, Refusal> {
        lock(&self.state).entry().map(Arc::clone).ok_or(Refusal::Paused)
    }

    /// Interrupts the session's run.
    pub fn interrupt(&self) -> Result<(), Refusal> {
        self.entry()?.interrupt_run();
        Ok(())
    }

    /// Returns a token that is cancelled once the session ends. Holders of a lease must drop it
    /// then: only after that is the session's slot free.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub fn is_paused(&self) -> bool {
        lock(&self.state).entry().is_none()
    }

    pub fn is_durable(&self) -> bool {
        self.durable.is_some()
    }

    pub fn pauses_at_end(&self) -> bool {
        self.pauses_at_end
    }

    pub fn resumes_on_use(&self) -> bool {
        self.resumes_on_use
    }

    /// Returns the contexts, the oldest first.
    pub fn contexts(&self) -> Vec<Context> {
        self.contexts.all()
    }

    /// Returns the commands that run or wait for their turn.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the maximum size of a value, in bytes.
    pub fn max_value(&self) -> u64 {
        self.policy.value_bytes()
    }

    pub fn use_so_far(&self) -> Use {
        *lock(&self.use_so_far)
    }
}

/// Whether a session runs, or is saved in the store.
pub(crate) enum NodeSessionState {
    Active {
        session: Arc<SessionEntry>,
        /// The session's slot.
        _slot: Slot,
    },
    /// Being paused or resumed.
    Transitioning,
    Paused(Saved),
}

impl NodeSessionState {
    /// Returns the session of the service, if it is running.
    pub(crate) fn entry(&self) -> Option<&Arc<SessionEntry>> {
        match self {
            Self::Active { session, .. } => Some(session),
            Self::Transitioning | Self::Paused(_) => None,
        }
    }
}

/// The total usage of a session's runs.
#[derive(Clone, Copy, Default)]
pub struct Use {
    pub run_time: Duration,
    /// The highest peak of all runs.
    pub peak_memory_bytes: u64,
}

/// A session in use.
pub type SessionLease = Lease<NodeSession>;

/// A session for one request, which ends when this is dropped.
pub struct OwnSession {
    /// Ends it; none if it lives on.
    node: Option<Arc<Node>>,
    used: SessionLease,
}

impl OwnSession {
    pub(crate) fn new(node: &Arc<Node>, used: SessionLease) -> Self {
        Self { node: Some(Arc::clone(node)), used }
    }

    pub fn used(&self) -> &SessionLease {
        &self.used
    }

    /// Ends the session now.
    pub async fn end(self) {
        if let Some(node) = &self.node {
            node.end(&self.used).await;
        }
    }

    /// Has the session live on.
    pub(crate) fn keep(mut self) {
        self.node = None;
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        let Some(node) = self.node.take() else { return };
        // Still in the table if the client has disconnected.
        if let Some(ended) = node.take(&self.used, "closed", Reason::Closed) {
            tokio::spawn(async move { node.vacate(&ended).await });
        }
    }
}

/// A request for a new session.
#[derive(Clone, Default, Serialize)]
pub struct NewSession {
    pub policy: Policy,
    /// Permissions that it gets without asking, as far as the ceiling has them.
    pub grants: ImplicitGrants,
    #[serde(serialize_with = "plain::named")]
    pub inputs: Vec<(String, Value)>,
    /// Its lifetime in seconds, if shorter than the node's.
    pub ttl: Option<f64>,
    /// Set if it is paused when it expires.
    pub pauses_at_end: bool,
    pub resumes_on_use: bool,
    pub metadata: Plain,
    /// The snapshot to start from.
    pub snapshot: Option<String>,
    /// Set if it outlives the node's process.
    pub durable: Option<Durability>,
}

/// Which end of its own a session has that outlives the node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Durability {
    /// It takes run after run.
    Session,
    /// It ends with its first run.
    Run,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// It waits for code.
    Idle,
    /// Code runs in it.
    Running,
    /// It is saved in the store.
    Paused,
    /// It has ended with a run, whose result waits for its client.
    Ended,
}

/// A session, as lists show it.
pub struct Listed {
    pub id: String,
    pub created: SystemTime,
    /// The time until it expires.
    pub left: Duration,
    pub state: SessionState,
    pub is_durable: bool,
    /// The memory limit, in bytes.
    pub memory_bytes: u64,
    /// What its runs have used so far.
    pub used: Use,
    pub metadata: Plain,
}

impl Listed {
    pub fn of(session: &SessionLease) -> Self {
        listed(session.handle().to_owned(), session.session())
    }

    pub fn is_paused(&self) -> bool {
        self.state == SessionState::Paused
    }
}

impl Use {
    /// Adds the usage of a run.
    pub(crate) fn add(&mut self, usage: &execution::Usage) {
        self.run_time = self.run_time.saturating_add(usage.wall_time);
        self.peak_memory_bytes = self.peak_memory_bytes.max(usage.peak_memory_bytes);
    }
}

pub(crate) fn listed(id: String, session: &NodeSession) -> Listed {
    let left = lock(&session.deadline).saturating_duration_since(Instant::now());
    let created = session.created;
    let state = match lock(&session.state).entry() {
        None => SessionState::Paused,
        Some(entry) if entry.is_running() => SessionState::Running,
        Some(_) => SessionState::Idle,
    };
    let (memory_bytes, metadata) = (session.policy.memory_bytes(), session.metadata.clone());
    let (is_durable, used) = (session.is_durable(), session.use_so_far());
    Listed { id, created, left, state, is_durable, memory_bytes, used, metadata }
}
