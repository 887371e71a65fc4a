//! Ends a node: its runs, its sessions, and those that its next process goes on with.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::session::{NodeSession, SessionLease};
use super::{AuditRecord, Node};
use crate::core::Reason;

/// The minimum time for sending answers during a shutdown.
const FAREWELL: Duration = Duration::from_secs(1);

impl Node {
    /// Shuts down: refuses new sessions, waits for runs, interrupts those that take too long, and
    /// ends all sessions.
    ///
    /// Returns the deadline for sending answers.
    pub async fn drain(&self) -> Instant {
        self.is_draining.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + self.settings.drain;
        self.leave_durable().await;
        while self.runs.load() != (0, 0) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let reason = || Reason::Ended("the node has ended".to_owned());
        let take = |session: &SessionLease| self.take(session, "closed", reason());
        let ended: Vec<_> = self.table.all().iter().filter_map(take).collect();
        // Idle sessions close in order; busy ones are killed.
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

    /// Ends durable sessions as if the process had ended: another one goes on with them.
    pub(crate) async fn leave_durable(&self) {
        for session in self.table.those(NodeSession::is_durable) {
            let tenant = &session.session().tenant.name;
            let Some(left) = self.table.remove(tenant, session.handle(), Reason::Left) else {
                continue;
            };
            self.metrics.ended("closed");
            let record = AuditRecord::Ended("the node ends, and goes on with it when it starts");
            self.audit.write(tenant, session.handle(), &record);
            if let Ok(entry) = left.entry() {
                // Not in order, which its journal would have.
                entry.kill();
            }
            self.vacate(&left).await;
        }
    }
}
