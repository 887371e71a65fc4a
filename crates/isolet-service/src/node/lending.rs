//! Lends a session of a node to who runs its code by itself: the node counts the session, and has
//! each run wait for its turn.

use std::time::Instant;

use isolet::Execution;

use super::audit::AuditRecord;
use super::run_gate::Pass;
use super::session::SessionLease;
use super::traces::Traced;
use super::{Node, Refusal};
use crate::core::{Command, LentSession, Status};
use isolet::internals::lock;

/// A run of a lent session, which has its turn until this is dropped.
pub struct LentRun {
    _pass: Pass,
    traced: Traced,
    since: Instant,
}

impl Node {
    /// Lends a session that has no variables and runs no code. It ends with its loan.
    pub async fn lend(&self, session: &SessionLease) -> Result<LentSession, Refusal> {
        let entry = session.session().entry()?;
        let lend = |reply| self.service.carry_out(&entry, Command::Lend { reply });
        Ok(self.ask(lend).await?)
    }

    /// Waits in the tenant's queue of runs for a run of a lent session.
    pub async fn admit_run(&self, session: &SessionLease) -> Result<LentRun, Refusal> {
        let traced = self.traces.run(&session.session().traced, session.handle());
        let pass = self.turn(session).await?;
        Ok(LentRun { _pass: pass, traced, since: Instant::now() })
    }

    /// Counts the end of a run of a lent session.
    pub fn end_run(&self, session: &SessionLease, mut run: LentRun, ran: Option<&Execution>) {
        let outcome = ran.map_or("refused", |execution| Status::of(execution.outcome()).name());
        self.metrics.ran(outcome, run.since);
        run.traced.ended(outcome);
        let node_session = session.session();
        self.audit.write(&node_session.tenant.name, session.handle(), &AuditRecord::Ran(outcome));
        if let Some(execution) = ran {
            lock(&node_session.use_so_far).add(&(*execution.usage()).into());
        }
    }
}
