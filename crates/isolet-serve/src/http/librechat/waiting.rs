//! Runs that wait for their clients to send the results of tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolet::internals::lock;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Failed;
use super::programmatic::Program;
use isolet_service::node::{Tenant, ToolRun};

/// How long a client may take, before its run ends.
const PATIENCE: Duration = Duration::from_mins(5);

/// A run, and what it was begun with.
pub(super) struct WaitingRun {
    pub(super) run: ToolRun,
    pub(super) program: Program,
}

struct Entry {
    tenant: String,
    waiting: WaitingRun,
    /// Ends the watch over it once it is taken.
    _watch: DropGuard,
}

/// The waiting runs by token. Each has a session and a place among the runs of its tenant, whose
/// quotas bound them.
#[derive(Default)]
pub(super) struct WaitingRuns(Mutex<HashMap<String, Entry>>);

impl WaitingRuns {
    /// Keeps a run until it is taken, its session has ended, or its client has taken too long.
    pub(super) fn keep(self: &Arc<Self>, tenant: &Tenant, token: String, waiting: WaitingRun) {
        let ended = waiting.run.session().used().session().ended().clone();
        let watch = CancellationToken::new();
        let (watched, all) = (watch.clone(), Arc::downgrade(self));
        let tenant = tenant.name.clone();
        let entry = Entry { tenant, waiting, _watch: watch.drop_guard() };
        lock(&self.0).insert(token.clone(), entry);
        tokio::spawn(async move {
            tokio::select! {
                () = watched.cancelled() => return,
                () = ended.cancelled() => {}
                () = tokio::time::sleep(PATIENCE) => {}
            }
            let over = all.upgrade().and_then(|all| lock(&all.0).remove(&token));
            // Not under the lock: this ends the session.
            drop(over);
        });
    }

    /// Takes a tenant's run, if `check` has nothing against it. `None` if there is none.
    pub(super) fn take(
        &self,
        tenant: &Tenant,
        token: &str,
        check: impl FnOnce(&WaitingRun) -> Result<(), Failed>,
    ) -> Result<Option<WaitingRun>, Failed> {
        let mut all = lock(&self.0);
        let Some(entry) = all.get(token).filter(|entry| entry.tenant == tenant.name) else {
            return Ok(None);
        };
        check(&entry.waiting)?;
        Ok(all.remove(token).map(|entry| entry.waiting))
    }
}
