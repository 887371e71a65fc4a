//! Makes the packages of a start ready: resolves and fetches them, and has images made.
//!
//! It may take minutes, by the index or by what packages do when they are imported. So it is no
//! part of the start: a tenant's starts whose packages are not there wait for each other, and
//! nobody else does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::run_gate::{Pass, QueueIsFull};
use super::{Awaited, Node, Refusal};
use crate::core::{Failure, Policy, Reply, SandboxEntry, Terms};

/// A sandbox of the service, whose packages are ready.
pub(crate) struct Ready {
    pub(crate) sandbox: Arc<SandboxEntry>,
}

/// Says on drop that nobody waits for packages any more.
struct Waits(Option<Arc<AtomicBool>>);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

impl Node {
    /// Makes a sandbox of a tenant's policy. Waits for the tenant's other starts if packages have
    /// to be made ready for it.
    pub(crate) async fn make_ready(&self, tenant: &str, policy: &Policy) -> Result<Ready, Refusal> {
        let limit = self.settings.package_time;
        let turn = self.turn_for(tenant, policy).await?;
        let given_up = Arc::<AtomicBool>::default();
        let mut waits = Waits(Some(Arc::clone(&given_up)));
        let terms = Terms {
            owner: tenant.to_owned(),
            // What is left is for fetching them, and for loading them if there is no image.
            import_time: Some(limit / 2),
            resolves: true,
            given_up: Some(given_up),
            // It has to end before the tenant's next one begins, also if nobody waits for it.
            turn: turn.map(|turn| Box::new(turn) as _),
        };
        let policy = Ok(Box::new(policy.clone()));
        // What is known of no session is nobody's.
        let owner = self.owner("", "");
        let (reply, answer) = Reply::channel();
        let name = tenant.to_owned();
        let (sandbox, work) = self.service.make_sandbox(name, policy, terms, owner, reply);
        work.spawn();
        let made = tokio::time::timeout(limit, self.received(answer)).await;
        made.map_err(|_| late(limit))??;
        // Later calls of its sessions are not given up.
        waits.0 = None;
        Ok(Ready { sandbox })
    }

    /// Waits for the tenant's turn to make packages ready, unless they are.
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
        // The one before may have been about the same packages.
        Ok(Some(turn).filter(|_| !self.service.has_packages_of(policy)))
    }
}

fn late(limit: std::time::Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    Failure::packages(format!(
        "the packages were not ready in time: the node's limit is {seconds} s (`package_time`)"
    ))
}
