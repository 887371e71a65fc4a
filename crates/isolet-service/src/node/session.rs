//! A session of a node, and what is asked and told of one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::contexts::{Context, Contexts};
use super::places::Place;
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
    /// When its time is over.
    pub(crate) deadline: Mutex<Instant>,
    /// Whether it is paused then, and not ended.
    pub(crate) pauses_at_end: bool,
    /// Whether it goes on when it is used although it is paused, if its wire does so.
    pub(crate) resumes_on_use: bool,
    pub(crate) metadata: Plain,
    pub(crate) place: Mutex<Place>,
    pub(crate) contexts: Contexts,
    pub(crate) use_so_far: Mutex<Use>,
    /// Cancelled once the session ends.
    pub(crate) ended: CancellationToken,
    /// Ends with it.
    pub(crate) traced: Traced,
}

impl NodeSession {
    /// Returns the session of the service.
    pub(crate) fn entry(&self) -> Result<Arc<SessionEntry>, Refusal> {
        lock(&self.place).entry().map(Arc::clone).ok_or(Refusal::Paused)
    }

    /// Interrupts what runs in it.
    pub fn interrupt(&self) -> Result<(), Refusal> {
        self.entry()?.interrupt_run();
        Ok(())
    }

    /// Returns what is cancelled once the session ends. Who keeps the session in use has to give it
    /// up then: only after that its place is free.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub fn is_paused(&self) -> bool {
        lock(&self.place).entry().is_none()
    }

    pub fn pauses_at_end(&self) -> bool {
        self.pauses_at_end
    }

    pub fn resumes_on_use(&self) -> bool {
        self.resumes_on_use
    }

    /// Returns its contexts, the oldest first.
    pub fn contexts(&self) -> Vec<Context> {
        self.contexts.all()
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns how many bytes a value may have.
    pub fn max_value(&self) -> u64 {
        self.policy.value_bytes()
    }

    pub fn use_so_far(&self) -> Use {
        *lock(&self.use_so_far)
    }
}

/// What the runs of a session have used.
#[derive(Clone, Copy, Default)]
pub struct Use {
    pub run_time: Duration,
    /// The most memory that one of them has used.
    pub peak_memory_bytes: u64,
}

/// A session in use.
pub type SessionLease = Lease<NodeSession>;

/// A session of one request, which ends when this is dropped.
pub struct OwnSession {
    pub(crate) node: Arc<Node>,
    pub(crate) used: SessionLease,
}

impl OwnSession {
    pub fn used(&self) -> &SessionLease {
        &self.used
    }

    /// Ends the session now.
    pub async fn end(self) {
        self.node.end(&self.used).await;
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        // It has not been ended if the client has gone away.
        if let Some(ended) = self.node.take(&self.used, "closed", Reason::Closed) {
            let node = Arc::clone(&self.node);
            tokio::spawn(async move { node.vacate(&ended).await });
        }
    }
}

/// What a new session is to be.
#[derive(Clone, Default, Serialize)]
pub struct NewSession {
    pub policy: Policy,
    /// What it gets as far as the ceiling allows.
    pub grants: ImplicitGrants,
    #[serde(serialize_with = "plain::named")]
    pub inputs: Vec<(String, Value)>,
    /// How long it lives, in seconds, if that is less than the node's time.
    pub ttl: Option<f64>,
    /// Whether it is paused when its time is over.
    pub pauses_at_end: bool,
    pub resumes_on_use: bool,
    pub metadata: Plain,
    /// The snapshot that it begins as.
    pub snapshot: Option<String>,
}

/// A session as a list has it.
pub struct Listed {
    pub id: String,
    pub created: SystemTime,
    /// How long it still lives, if it is used.
    pub left: Duration,
    pub is_paused: bool,
    pub memory_bytes: u64,
    pub metadata: Plain,
}

impl Listed {
    pub fn of(session: &SessionLease) -> Self {
        listed(session.handle().to_owned(), session.session())
    }
}

impl Use {
    /// Adds what a run has used.
    pub(crate) fn add(&mut self, usage: &execution::Usage) {
        self.run_time = self.run_time.saturating_add(usage.wall_time);
        self.peak_memory_bytes = self.peak_memory_bytes.max(usage.peak_memory_bytes);
    }
}

pub(crate) fn listed(id: String, session: &NodeSession) -> Listed {
    let left = lock(&session.deadline).saturating_duration_since(Instant::now());
    let (created, is_paused) = (session.created, session.is_paused());
    let (memory_bytes, metadata) = (session.policy.memory_bytes(), session.metadata.clone());
    Listed { id, created, left, is_paused, memory_bytes, metadata }
}
