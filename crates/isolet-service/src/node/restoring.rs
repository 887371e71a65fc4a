//! Restores the durable sessions of earlier processes of the node, in the background.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Semaphore, watch};

use super::audit::AuditRecord;
use super::durable::DurableSession;
use super::journals::{Description, SessionFiles};
use super::run_log::DurableRun;
use super::session::{NodeSession, NodeSessionState, SessionLease};
use super::{Credentials, ImplicitGrants, Node, Origin, Refusal, Tenant};
use crate::core::Beginning;
use isolet::internals::lock;

/// How soon a restoration is tried again for which there was no room.
const AGAIN: Duration = Duration::from_secs(1);

/// Why an id of an earlier process is not one of the asker's sessions.
const STARTED_ANEW: &str = "the node was started anew since then";

/// Sessions of earlier processes that are not restored yet, or cannot be.
pub(crate) struct Restorations {
    all: Mutex<HashMap<String, Restoration>>,
    changed: watch::Sender<()>,
}

struct Restoration {
    /// None if the description cannot be read.
    tenant: Option<String>,
    state: State,
}

enum State {
    Waiting,
    /// It cannot be restored, for this reason. Its files stay for the operator, until this time.
    Failed(String, SessionFiles, Option<SystemTime>),
}

impl Default for Restorations {
    fn default() -> Self {
        Self { all: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Restorations {
    fn set(&self, id: &str, tenant: Option<&str>, state: State) {
        let tenant = tenant.map(str::to_owned);
        lock(&self.all).insert(id.to_owned(), Restoration { tenant, state });
        self.changed.send_replace(());
    }

    fn end(&self, id: &str) {
        lock(&self.all).remove(id);
        self.changed.send_replace(());
    }

    /// Returns `true` if the session still has to be restored.
    fn is_waiting(&self, id: &str) -> bool {
        matches!(lock(&self.all).get(id), Some(Restoration { state: State::Waiting, .. }))
    }

    /// Returns why an asker does not get a session yet, or never. `is_its` says whether it is one
    /// of this tenant, or of none that is known.
    fn refusal(&self, id: &str, is_its: impl Fn(Option<&str>) -> bool) -> Option<Refusal> {
        let all = lock(&self.all);
        let found = all.get(id).filter(|found| is_its(found.tenant.as_deref()))?;
        Some(match &found.state {
            State::Waiting => Refusal::Restoring,
            State::Failed(reason, ..) => Refusal::Gone(reason.clone()),
        })
    }

    /// Removes the sessions of removed tenants.
    pub(crate) fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        self.forget_if(|found| found.tenant.as_deref().is_some_and(&is_gone));
    }

    /// Removes sessions that could not be restored, and whose time is over.
    pub(crate) fn forget_old(&self) {
        let now = SystemTime::now();
        self.forget_if(
            |found| matches!(&found.state, State::Failed(_, _, Some(until)) if *until <= now),
        );
    }

    fn forget_if(&self, is_over: impl Fn(&Restoration) -> bool) {
        lock(&self.all).retain(|_, found| {
            let is_over = is_over(found);
            if let (true, State::Failed(_, files, _)) = (is_over, &found.state) {
                files.remove();
            }
            !is_over
        });
        self.changed.send_replace(());
    }
}

impl Node {
    /// Checks that an id of an earlier process is that of a session of the asker. To others, it is
    /// like any other id of that process.
    pub(super) fn find_earlier(
        &self,
        who: &Credentials,
        id: &str,
        is_known: bool,
    ) -> Result<(), Refusal> {
        let tenants = self.tenants();
        let asker = tenants.of(who.key.as_deref()).map(|tenant| tenant.name.as_str());
        let is_its = |tenant: Option<&str>| is_known || (tenant.is_some() && tenant == asker);
        if let Some(refusal) = self.restorations.refusal(id, is_its) {
            return Err(refusal);
        }
        let owner = self.table.owner(id);
        let is_restored = owner.is_some() && is_its(owner.as_deref());
        if is_restored { Ok(()) } else { Err(Refusal::Gone(STARTED_ANEW.to_owned())) }
    }

    /// As [`find`](Self::find), but waits while the session is being restored, at most as long as a
    /// run waits in the queue.
    pub async fn find_restored(
        &self,
        who: &Credentials,
        id: &str,
    ) -> Result<SessionLease, Refusal> {
        let mut changed = self.restorations.changed.subscribe();
        let until = tokio::time::Instant::now() + self.settings.queue_time;
        loop {
            match self.find(who, id) {
                Err(Refusal::Restoring) => {}
                found => return found,
            }
            if tokio::time::timeout_at(until, changed.changed()).await.is_err() {
                return Err(Refusal::Restoring);
            }
        }
    }

    /// Returns the tenant of a session that is being restored.
    pub(super) fn restoring_tenant(&self, id: &str) -> Option<Arc<Tenant>> {
        let name = lock(&self.restorations.all).get(id)?.tenant.clone()?;
        self.tenants().named(&name).map(Arc::clone)
    }

    /// Begins to restore the sessions that earlier processes of the node have left.
    ///
    /// # Errors
    ///
    /// Fails if the directory of journals cannot be read.
    pub fn restore(self: &Arc<Self>) -> Result<(), String> {
        let Some(journals) = &self.journals else { return Ok(()) };
        let left = journals
            .left(|id| self.ids.origin(id).is_some_and(|origin| origin != Origin::Elsewhere));
        let left = left.map_err(|error| format!("cannot read the journals: {error}"))?;
        let tenants = self.tenants();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let at_once = Arc::new(Semaphore::new(processors));
        for (files, description) in left {
            let description = match description {
                Ok(description) => description,
                Err(reason) => {
                    self.cannot_restore(files, None, &format!("its description: {reason}"));
                    continue;
                }
            };
            if tenants.named(&description.tenant).is_none() {
                files.remove();
                continue;
            }
            self.restorations.set(files.id(), Some(&description.tenant), State::Waiting);
            let (node, at_once) = (Arc::clone(self), Arc::clone(&at_once));
            tokio::spawn(async move { node.restore_one(files, description, &at_once).await });
        }
        Ok(())
    }

    async fn restore_one(
        self: Arc<Self>,
        files: SessionFiles,
        description: Description,
        at_once: &Semaphore,
    ) {
        let id = files.id().to_owned();
        loop {
            // Its tenant was removed, or its time is over.
            if !self.restorations.is_waiting(&id) || description.deadline <= SystemTime::now() {
                files.remove();
                return self.restorations.end(&id);
            }
            if self.is_draining() {
                return;
            }
            // Fails only if it is closed, which never happens.
            let turn = at_once.acquire().await;
            let opened = Box::pin(self.restored(&files, &description)).await;
            drop(turn);
            match opened {
                Ok(session) => return self.take_up(files, description, session).await,
                Err(_) if self.is_draining() => return,
                Err(
                    Refusal::Full(_)
                    | Refusal::Memory(_)
                    | Refusal::Quota(_)
                    | Refusal::TooFast(..)
                    | Refusal::Unlogged(_)
                    | Refusal::AuditQuota(..)
                    | Refusal::InFlight(_)
                    | Refusal::Waited(..)
                    | Refusal::Draining,
                ) => tokio::time::sleep(AGAIN).await,
                Err(Refusal::Failure(failure)) => {
                    return self.cannot_restore(files, Some(&description), &failure.message);
                }
                Err(refusal) => {
                    return self.cannot_restore(files, Some(&description), &format!("{refusal:?}"));
                }
            }
        }
    }

    /// Makes the session of a journal, up to its last run.
    async fn restored(
        &self,
        files: &SessionFiles,
        description: &Description,
    ) -> Result<NodeSession, Refusal> {
        let tenants = self.tenants();
        let tenant = tenants.named(&description.tenant).ok_or(Refusal::Key)?;
        self.audit.check(&tenant.name)?;
        let (asked, grants) = (description.policy.clone(), ImplicitGrants::default());
        let policy = self.admitted(tenant, asked, &grants, true)?;
        let ready = self.make_ready(&tenant.name, &policy).await?;
        let slot = self.slots.take(tenant, Duration::ZERO).await?;
        let whose = (&*tenant.name, files.id());
        let since = Instant::now();
        let traced = self.traces.session(&tenant.name, files.id());
        let entry = self.open(whose, ready, Beginning::Resumed(files.journal()), true).await?;
        self.metrics.started(since);
        self.audit.write(&tenant.name, files.id(), &AuditRecord::Restored);
        // A session whose start is not logged must not be used. Its files stay for another try.
        if let Err(refusal) = self.audit.check(&tenant.name) {
            entry.kill();
            self.end_entry(&entry).await;
            return Err(refusal);
        }
        let left = description.deadline.duration_since(SystemTime::now()).unwrap_or_default();
        Ok(NodeSession {
            tenant: Arc::clone(tenant),
            policy,
            created: description.created,
            deadline: Mutex::new(Instant::now() + left.min(self.settings.ttl)),
            pauses_at_end: false,
            resumes_on_use: false,
            metadata: description.metadata.clone(),
            state: Mutex::new(NodeSessionState::Active { session: entry, _slot: slot }),
            contexts: super::contexts::Contexts::default(),
            commands: super::commands::Commands::default(),
            durable: None,
            use_so_far: Mutex::default(),
            ended: self.sockets.ending(),
            traced,
        })
    }

    /// Adds a restored session to the table, and has its last run go on.
    async fn take_up(
        self: &Arc<Self>,
        files: SessionFiles,
        description: Description,
        session: NodeSession,
    ) {
        let id = files.id().to_owned();
        let entry = session.entry();
        let runs = entry.as_ref().map_or(0, |entry| entry.recorded_runs());
        let run = (runs > 0).then(|| DurableRun::new(runs, true, &session.policy));
        let has_one_run = description.has_one_run;
        let durable = Some(DurableSession::restored(files, description, run.clone()));
        let session = NodeSession { durable, ..session };
        let added = self.add(id.clone(), session).await;
        self.restorations.end(&id);
        if self.is_draining() {
            // It may have come after those that are left.
            return self.leave_durable().await;
        }
        match (added, run) {
            (Ok(session), Some(run)) => {
                tokio::spawn(Arc::clone(self).go_on_with(session, run));
            }
            // Its client was not told that the run has begun.
            (Ok(session), None) if has_one_run => self.end(&session).await,
            (Ok(_), None) => {}
            (Err(refusal), _) => {
                self.discretion.report(&format!("the session {id} was not restored: {refusal:?}"));
            }
        }
    }

    /// Keeps in mind, and tells the operator, that a session cannot be restored.
    fn cannot_restore(&self, files: SessionFiles, found: Option<&Description>, reason: &str) {
        let id = files.id().to_owned();
        self.discretion.report(&format!("the session {id} cannot be restored: {reason}"));
        let tenant = found.map(|found| found.tenant.as_str());
        let reason = format!("the node was started again, and cannot restore it: {reason}");
        let until = found.map(|found| found.deadline);
        self.restorations.set(&id, tenant, State::Failed(reason, files, until));
    }
}
