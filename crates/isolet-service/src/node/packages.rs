//! Prepares the packages of a start: resolves and fetches them, and builds an image.
//!
//! This may take minutes, because of the index or of slow imports, so it precedes the start. It
//! delays only starts of the same tenant that also have to prepare packages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::run_gate::{Pass, QueueIsFull};
use super::{Awaited, Node, Refusal};
use crate::core::{Failure, Policy, Reply, SandboxEntry, Terms};

/// A sandbox whose packages are ready.
pub(crate) struct Ready {
    pub(crate) sandbox: Arc<SandboxEntry>,
}

/// Cancels the preparation on drop, unless it is disarmed.
struct Waits(Option<Arc<AtomicBool>>);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

impl Node {
    /// Builds the sandbox of a tenant's policy. If its packages have to be prepared, waits for the
    /// tenant's other preparations.
    pub(crate) async fn make_ready(&self, tenant: &str, policy: &Policy) -> Result<Ready, Refusal> {
        let limit = self.settings.package_time;
        let turn = self.turn_for(tenant, policy).await?;
        let given_up = Arc::<AtomicBool>::default();
        let mut waits = Waits(Some(Arc::clone(&given_up)));
        let terms = Terms {
            owner: tenant.to_owned(),
            // The rest is for fetching, and for loading if no image can be built.
            import_time: Some(limit / 2),
            resolves: true,
            given_up: Some(given_up),
            // Held until the work ends, even if the client is gone: the tenant's next preparation
            // starts after it.
            turn: turn.map(|turn| Box::new(turn) as _),
        };
        let policy = Ok(Box::new(policy.clone()));
        // An access without a session belongs to no tenant.
        let owner = self.owner("", "");
        let (reply, answer) = Reply::channel();
        let name = tenant.to_owned();
        let (sandbox, work) = self.service.make_sandbox(name, policy, terms, owner, reply);
        work.spawn();
        let made = tokio::time::timeout(limit, self.received(answer)).await;
        made.map_err(|_| late(limit))??;
        // From here on, the preparation must not cancel calls of its sessions.
        waits.0 = None;
        Ok(Ready { sandbox })
    }

    /// Waits for the tenant's turn to prepare packages, unless they are ready.
    async fn turn_for(&self, tenant: &str, policy: &Policy) -> Result<Option<Pass>, Refusal> {
        if self.service.has_packages_of(policy) {
            return Ok(None);
        }
        let limit = self.settings.package_time;
        let turn = tokio::time::timeout(limit, self.packages.enter(tenant, 1)).await;
        let turn = turn.map_err(|_| Refusal::Waited(Awaited::Packages, limit))?;
        let turn = turn.map_err(|QueueIsFull(waiting)| {
            Refusal::Quota(format!(
                "starts of this key that wait for packages of others: limit {waiting} (`max_queue`)"
            ))
        })?;
        // The previous preparation may have been for the same packages.
        Ok(Some(turn).filter(|_| !self.service.has_packages_of(policy)))
    }
}

fn late(limit: std::time::Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    Failure::packages(format!(
        "the packages were not ready in time: the node's limit is {seconds} s (`package_time`)"
    ))
}
