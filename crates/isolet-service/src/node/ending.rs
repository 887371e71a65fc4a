//! Ends sessions, and a node: its runs, its sessions, and those that its next process goes on with.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::session::{NodeSession, SessionLease};
use super::{AuditRecord, Node};
use crate::core::{Command, Reason, SessionEntry};

/// The minimum time for sending answers during a shutdown.
const FAREWELL: Duration = Duration::from_secs(1);

impl Node {
    /// Ends a session.
    pub async fn end(&self, session: &SessionLease) {
        self.remove(session, "closed", Reason::Closed).await;
    }

    /// Returns `true` if a session was ended by a request or a deadline, and not by its own code.
    pub fn was_ended(&self, session: &SessionLease) -> bool {
        match self.table.get(&session.session().tenant.name, session.handle()) {
            Err(Some(Reason::Ended(_))) | Ok(_) => false,
            Err(_) => true,
        }
    }

    pub(super) async fn remove(&self, session: &SessionLease, kind: &'static str, reason: Reason) {
        // Its slot stays taken until it has ended.
        if let Some(ended) = self.take(session, kind, reason) {
            self.vacate(&ended).await;
        }
    }

    /// Closes what is left of a session that was removed from the table.
    pub(super) async fn vacate(&self, ended: &NodeSession) {
        ended.ended().cancel();
        if let Ok(entry) = ended.entry() {
            self.end_entry(&entry).await;
        }
    }

    /// Removes a session from the table with its files, and counts its end under this label.
    pub(super) fn take(
        &self,
        session: &SessionLease,
        kind: &'static str,
        reason: Reason,
    ) -> Option<Arc<NodeSession>> {
        let ended = self.take_without_files(session, kind, reason)?;
        if let Some(durable) = &ended.durable {
            durable.remove();
        }
        Some(ended)
    }

    pub(super) fn take_without_files(
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

    pub(super) async fn end_entry(&self, session: &Arc<SessionEntry>) {
        // It may have ended already.
        let close = |reply| self.service.carry_out(session, Command::Close { reply });
        let _ = self.ask(close).await;
    }

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
