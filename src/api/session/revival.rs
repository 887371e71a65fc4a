//! Has a session go on after a run that has ended its interpreter.

use std::sync::Arc;

use super::Session;
use super::checkpoint::{Checkpoint, Keeper};
use super::opening::{config, keeper, startup};
use super::shared::Shared;
use super::state::SessionState;
use super::variables::{completed, definitions};
use crate::api::engine::Engine;
use crate::api::engine::pool::Refill;
use crate::data::error::Error;
use crate::data::execution::{Execution, Restored};
use crate::data::isolation::IsolationReport;
use crate::host::saved::SavedFile;
use crate::protocol::Command;

impl Session {
    /// Has the session go on after a run, if that has ended the interpreter. `before` tells of what
    /// had ended the one before it.
    pub(super) async fn after(
        &mut self,
        mut execution: Execution,
        before: Option<Restored>,
    ) -> Execution {
        let after = self.revive_if_ended().await;
        execution.session_alive |= after.is_some();
        execution.restored = match (before, after) {
            (Some(before), Some(after)) => {
                Some(Restored { lost_runs: before.lost_runs.saturating_add(after.lost_runs) })
            }
            (before, after) => after.or(before),
        };
        execution
    }

    /// Gives the session another interpreter if its own has ended and it has checkpoints.
    pub(super) async fn revive_if_ended(&mut self) -> Option<Restored> {
        self.shared.keeper.as_ref()?;
        // That may end the interpreter too.
        self.shared.after_keeping().await;
        if !self.shared.state().is_ended() {
            return None;
        }
        // Seldom, and large.
        Box::pin(self.revive()).await
    }

    async fn revive(&mut self) -> Option<Restored> {
        self.shared.release();
        let keeper = self.shared.keeper.as_ref()?;
        let (checkpoint, lost_runs) = keeper.last();
        let all_runs = keeper.runs();
        let (revived, lost_runs) = match checkpoint {
            Some(checkpoint) => match self.at_checkpoint(&checkpoint).await {
                Ok(revived) => (revived, lost_runs),
                // What was kept is of the guest, so it may be what no interpreter can go on from.
                Err(_) => (self.at_beginning(&self.engine).await.ok()?, all_runs),
            },
            None => (self.at_beginning(&self.engine).await.ok()?, all_runs),
        };
        let (shared, isolation) = revived;
        self.seat.give_to(&shared);
        let old = std::mem::replace(&mut self.shared, shared);
        self.isolation = isolation;
        // A handle may have closed the session meanwhile, and found the old interpreter.
        if old.state() == SessionState::Closed {
            self.shared.close();
            return None;
        }
        Some(Restored { lost_runs })
    }

    /// Makes an interpreter that goes on from a checkpoint.
    async fn at_checkpoint(
        &self,
        Checkpoint { file, runs }: &Checkpoint,
    ) -> Result<(Arc<Shared>, IsolationReport), Error> {
        let (engine, policy, old) = (&self.engine, &self.policy, &self.shared);
        let (file, state): (SavedFile, _) = file.again(old.host.saved_limits())?;
        let host = old.host.revived(config(old.id, engine, policy), Some(state))?;
        host.saving().read_from(Arc::new(file));
        let kind = policy.kind();
        let _refill = Refill { pool: engine.pool(), kind: &kind };
        let ready = match engine.pool().take(&kind, &policy.tenant, None) {
            Some(ready) => ready,
            None => Self::fresh(engine, &kind).await?,
        };
        let keeper = Keeper::new(Arc::clone(engine.checkpointer()), *runs);
        let (shared, isolation) =
            Self::connected(old.id, policy, Arc::new(host), ready, Some(keeper));
        shared.restore(policy).await?;
        self.set_up_again(&shared).await?;
        Ok((shared, isolation))
    }

    /// Makes an interpreter of this engine that begins as the session has begun.
    pub(super) async fn at_beginning(
        &self,
        engine: &Engine,
    ) -> Result<(Arc<Shared>, IsolationReport), Error> {
        let (policy, old) = (&self.policy, &self.shared);
        let host = Arc::new(old.host.revived(config(old.id, engine, policy), None)?);
        let startup = startup(&host, policy);
        let kind = policy.kind();
        let _refill = Refill { pool: engine.pool(), kind: &kind };
        let ready = match engine.pool().take(&kind, &policy.tenant, Some(&startup)) {
            Some(ready) => ready,
            None => Self::fresh(engine, &kind).await?,
        };
        let has_begun = ready.begun().is_some();
        let (shared, isolation) =
            Self::connected(old.id, policy, host, ready, keeper(engine, policy));
        if has_begun {
            shared.began();
        } else {
            shared.start(&startup).await;
            shared.started().await?;
        }
        self.set_up_again(&shared).await?;
        Ok((shared, isolation))
    }

    /// Loads the packages again, and defines what was registered in addition to what the sandbox
    /// has. The host knows it already, and how often it was called.
    async fn set_up_again(&self, shared: &Arc<Shared>) -> Result<(), Error> {
        if !self.loaded.is_empty() {
            shared.load_packages(self.loaded.clone()).await?;
        }
        if self.registered.is_empty() && self.submits.is_empty() {
            return Ok(());
        }
        let definitions = definitions(&shared.host, &self.registered, &self.submits, None);
        let report = shared.quick(Command::Define(definitions)).await?;
        completed(&report, "the guest could not define the tools")
    }
}
