//! A tenant's session: what is asked for, what there is of it, and what a list shows.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;

use super::super::{InUse, Reason, lock};
use super::Node;
use super::places::{Slot, Vacated};
use super::traces::Traced;

/// A session of a tenant.
pub(crate) struct NodeSession {
    /// Its number at the service.
    pub(super) number: i64,
    pub(super) tenant: String,
    pub(super) created: SystemTime,
    /// When its time is over.
    pub(super) deadline: Mutex<Instant>,
    pub(super) metadata: Value,
    /// The maximum number of the tenant's runs at once.
    pub(super) max_runs: usize,
    /// Ends with it.
    pub(super) traced: Traced,
    /// Counts as one of the tenant's.
    pub(super) _slot: Slot,
    /// After it, because there is room only then.
    pub(super) _vacated: Vacated,
}

/// A session in use.
pub(crate) type Used = InUse<NodeSession>;

/// A session of one request, which ends when this is dropped.
pub(crate) struct OwnSession {
    node: Arc<Node>,
    used: Used,
}

impl OwnSession {
    pub(super) fn new(node: Arc<Node>, used: Used) -> Self {
        Self { node, used }
    }

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
        // It has not been ended if the client has gone away.
        if let Some(ended) = self.node.take(&self.used, "closed", Reason::Closed) {
            let node = Arc::clone(&self.node);
            tokio::spawn(async move { node.end_number(ended.number).await });
        }
    }
}

/// What a new session is to be.
#[derive(Clone, Debug)]
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

pub(super) fn listed(id: String, session: &NodeSession) -> Listed {
    let left = lock(&session.deadline).saturating_duration_since(Instant::now());
    Listed { id, created: session.created, left, metadata: session.metadata.clone() }
}
