//! A session of a node, and what is asked and told of one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::super::{Lease, Plain, Policy, Reason, SessionEntry, execution, lock, plain};
use super::contexts::{Context, Contexts};
use super::places::Place;
use super::tenants::Tenant;
use super::traces::Traced;
use super::{ImplicitGrants, Node, Refusal};

/// A session of a tenant.
pub(crate) struct NodeSession {
    pub(super) tenant: Arc<Tenant>,
    pub(super) policy: Policy,
    pub(super) created: SystemTime,
    /// When its time is over.
    pub(super) deadline: Mutex<Instant>,
    /// Whether it is paused then, and not ended.
    pub(super) pauses_at_end: bool,
    /// Whether it goes on when it is used although it is paused, if its wire does so.
    pub(super) resumes_on_use: bool,
    pub(super) metadata: Plain,
    pub(super) place: Mutex<Place>,
    pub(super) contexts: Contexts,
    pub(super) use_so_far: Mutex<Use>,
    /// Cancelled once the session ends.
    pub(super) ended: CancellationToken,
    /// Ends with it.
    pub(super) traced: Traced,
}

impl NodeSession {
    /// Returns the session of the service.
    pub(super) fn entry(&self) -> Result<Arc<SessionEntry>, Refusal> {
        lock(&self.place).entry().map(Arc::clone).ok_or(Refusal::Paused)
    }

    /// Interrupts what runs in it.
    pub(crate) fn interrupt(&self) -> Result<(), Refusal> {
        self.entry()?.interrupt_run();
        Ok(())
    }

    /// Returns what is cancelled once the session ends. Who keeps the session in use has to give it
    /// up then: only after that its place is free.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(crate) fn is_paused(&self) -> bool {
        lock(&self.place).entry().is_none()
    }

    pub(crate) fn pauses_at_end(&self) -> bool {
        self.pauses_at_end
    }

    pub(crate) fn resumes_on_use(&self) -> bool {
        self.resumes_on_use
    }

    /// Returns its contexts, the oldest first.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        self.contexts.all()
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns how many bytes a value may have.
    pub(crate) fn max_value(&self) -> u64 {
        self.policy.value_bytes()
    }

    pub(crate) fn use_so_far(&self) -> Use {
        *lock(&self.use_so_far)
    }
}

/// What the runs of a session have used.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    pub(crate) run_time: Duration,
    /// The most memory that one of them has used.
    pub(crate) peak_memory_bytes: u64,
}

/// A session in use.
pub(crate) type SessionLease = Lease<NodeSession>;

/// A session of one request, which ends when this is dropped.
pub(crate) struct OwnSession {
    pub(super) node: Arc<Node>,
    pub(super) used: SessionLease,
}

impl OwnSession {
    pub(crate) fn used(&self) -> &SessionLease {
        &self.used
    }

    /// Ends the session now.
    pub(crate) async fn end(self) {
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
pub(crate) struct NewSession {
    pub(crate) policy: Policy,
    /// What it gets as far as the ceiling allows.
    pub(crate) grants: ImplicitGrants,
    #[serde(serialize_with = "plain::named")]
    pub(crate) inputs: Vec<(String, Value)>,
    /// How long it lives, in seconds, if that is less than the node's time.
    pub(crate) ttl: Option<f64>,
    /// Whether it is paused when its time is over.
    pub(crate) pauses_at_end: bool,
    pub(crate) resumes_on_use: bool,
    pub(crate) metadata: Plain,
    /// The snapshot that it begins as.
    pub(crate) snapshot: Option<String>,
}

/// A session as a list has it.
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) created: SystemTime,
    /// How long it still lives, if it is used.
    pub(crate) left: Duration,
    pub(crate) is_paused: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) metadata: Plain,
}

impl Listed {
    pub(crate) fn of(session: &SessionLease) -> Self {
        listed(session.handle().to_owned(), session.session())
    }
}

impl Use {
    /// Adds what a run has used.
    pub(super) fn add(&mut self, usage: &execution::Usage) {
        self.run_time = self.run_time.saturating_add(usage.wall_time);
        self.peak_memory_bytes = self.peak_memory_bytes.max(usage.peak_memory_bytes);
    }
}

pub(super) fn listed(id: String, session: &NodeSession) -> Listed {
    let left = lock(&session.deadline).saturating_duration_since(Instant::now());
    let (created, is_paused) = (session.created, session.is_paused());
    let (memory_bytes, metadata) = (session.policy.memory_bytes(), session.metadata.clone());
    Listed { id, created, left, is_paused, memory_bytes, metadata }
}
