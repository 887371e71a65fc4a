//! Starts sessions: checks limits, waits for a slot, and opens the session.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::audit::AuditRecord;
use super::packages::Ready;
use super::run_gate::QueueIsFull;
use super::session::{NewSession, NodeSession, NodeSessionState, OwnSession, SessionLease};
use super::tenants::Tenant;
use super::{Node, OnDrop, REMOVED, Refusal, gone};
use crate::core::{Beginning, Failure, Reason, Reply, SessionEntry};

/// Why a session ends whose start could not be written to the audit log.
const UNLOGGED: &str = "its start could not be logged";

impl Node {
    /// Starts a session. With the same `key` as an earlier request, returns that session.
    pub async fn create(
        &self,
        tenant: &Arc<Tenant>,
        new: NewSession,
        key: Option<&str>,
    ) -> Result<SessionLease, Refusal> {
        let Some(key) = key else {
            return self.create_patiently(tenant, new, Duration::ZERO).await;
        };
        let creation = self.idempotency.of(&tenant.name, key, &new)?;
        let start = async || {
            let session = Box::pin(self.start(tenant, new, Duration::ZERO)).await?;
            Ok::<_, Refusal>(session.handle().to_owned())
        };
        let id = self.counted(creation.id.get_or_try_init(start).await)?;
        self.table.get(&tenant.name, id).map_err(gone)
    }

    /// As [`create`](Self::create), but waits in the queue for a slot, at most for `patience`.
    pub(crate) async fn create_patiently(
        &self,
        tenant: &Arc<Tenant>,
        new: NewSession,
        patience: Duration,
    ) -> Result<SessionLease, Refusal> {
        // Boxed, because every waiting request would hold its state.
        self.counted(Box::pin(self.start(tenant, new, patience)).await)
    }

    /// Starts a session for one request, waiting for a slot for at most `patience`.
    pub async fn create_own(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        new: NewSession,
        patience: Duration,
    ) -> Result<OwnSession, Refusal> {
        let used = self.create_patiently(tenant, new, patience).await?;
        Ok(OwnSession { node: Arc::clone(self), used })
    }

    async fn start(
        &self,
        tenant: &Arc<Tenant>,
        new: NewSession,
        patience: Duration,
    ) -> Result<SessionLease, Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        self.audit.check(&tenant.name)?;
        let mut policy = tenant.ceiling.admit(&self.settings.policy, new.policy, &new.grants)?;
        policy.audit |= self.audit.is_on();
        let deadline = self.deadline(new.ttl)?;
        let from = new.snapshot.map(|id| self.snapshots.begin(tenant, &id)).transpose()?;
        let ready = self.make_ready(&tenant.name, &policy).await?;
        let slot = self.slots.take(tenant, patience).await?;
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        let (id, since) = (self.next_id()?, Instant::now());
        let traced = self.traces.session(&tenant.name, &id);
        let beginning = match &from {
            Some((saved, _)) => Beginning::Saved(saved.path()),
            None => Beginning::fresh(new.inputs),
        };
        let entry = self.open((&tenant.name, &id), ready, beginning).await?;
        self.metrics.started(since);
        let session = NodeSession {
            tenant: Arc::clone(tenant),
            policy,
            created: SystemTime::now(),
            deadline: Mutex::new(deadline),
            pauses_at_end: new.pauses_at_end,
            resumes_on_use: new.resumes_on_use,
            metadata: new.metadata,
            state: Mutex::new(NodeSessionState::Active { session: entry, _slot: slot }),
            contexts: from.map(|(_, contexts)| contexts).unwrap_or_default(),
            commands: super::commands::Commands::default(),
            use_so_far: Mutex::default(),
            ended: self.sockets.ending(),
            traced,
        };
        self.admit(id, session).await
    }

    /// Starts and ends a session with the configured policy, to check that this works.
    pub async fn check(&self) -> Result<(), Refusal> {
        let own = (self.name(), "check");
        let ready = self.make_ready(self.name(), &self.settings.policy).await?;
        let entry = self.open(own, ready, Beginning::fresh(Vec::new())).await?;
        self.end_entry(&entry).await;
        Ok(())
    }

    pub(crate) fn next_id(&self) -> Result<String, Failure> {
        self.ids.next().map_err(|error| Failure::config(error.to_string()))
    }

    /// Adds a started session to the table.
    pub(crate) async fn admit(
        &self,
        id: String,
        session: NodeSession,
    ) -> Result<SessionLease, Refusal> {
        // The table itself has no limit below that of slots.
        let room = self.table.make_room().map_err(|_| Refusal::Full(self.settings.max_sessions))?;
        let tenant = Arc::clone(&session.tenant);
        self.audit.write(&tenant.name, &id, &AuditRecord::Created);
        let used = room.fill_again(&tenant.name, id, session);
        // A session whose start is not logged must not be used.
        if let Err(refusal) = self.audit.check(&tenant.name) {
            self.remove(&used, "closed", Reason::Ended(UNLOGGED.to_owned())).await;
            return Err(refusal);
        }
        // Checked after adding it: from now on, removing the tenant finds the session.
        if let Err(refusal) = self.current(&tenant) {
            self.remove(&used, "closed", Reason::Ended(REMOVED.to_owned())).await;
            return Err(refusal);
        }
        Ok(used)
    }

    /// Opens a tenant's session with this id, with variables or from a file.
    pub(crate) async fn open(
        &self,
        (tenant, id): (&str, &str),
        ready: Ready,
        beginning: Beginning,
    ) -> Result<Arc<SessionEntry>, Failure> {
        // Starting keeps a processor busy: more at once would delay all.
        let _turn = self.starts.enter(tenant, usize::MAX).await.map_err(no_turn)?;
        let (reply, answer) = Reply::channel();
        let owner = self.owner(tenant, id);
        let (session, work) = self.service.open(&ready.sandbox, owner, beginning, reply);
        let abandoned = OnDrop::close(&self.service, &session);
        work.spawn();
        self.received(answer).await?;
        abandoned.disarm();
        Ok(session)
    }
}

/// Returns the failure of a start that is refused by the queue of starts.
pub(crate) fn no_turn(QueueIsFull(waiting): QueueIsFull) -> Failure {
    Failure::config(format!("waiting starts of this key: limit {waiting}"))
}
