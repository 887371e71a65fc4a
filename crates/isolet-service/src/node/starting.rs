//! Starts sessions: checks limits, waits for a slot, and opens the session.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::audit::{AuditOwner, AuditRecord};
use super::durable::DurableSession;
use super::in_flight::note_session;
use super::journals::{Description, SessionFiles, wall};
use super::packages::Ready;
use super::run_gate::QueueIsFull;
use super::session::{
    Durability, NewSession, NodeSession, NodeSessionState, OwnSession, SessionLease,
};
use super::tenants::Tenant;
use super::{ImplicitGrants, Node, OnDrop, REMOVED, Refusal, gone};
use crate::core::{Beginning, Failure, Owner, Policy, Reason, Reply, SessionEntry};

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
        if new.durable.is_some() {
            let message = "a session that ends with its request or socket cannot be durable";
            return Err(Failure::config(message).into());
        }
        let used = self.create_patiently(tenant, new, patience).await?;
        Ok(OwnSession::new(self, used))
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
        let is_durable = new.durable.is_some();
        if is_durable && new.snapshot.is_some() {
            let message = "a durable session cannot begin as a snapshot";
            return Err(Failure::config(message).into());
        }
        let journals = if is_durable { Some(self.journals()?) } else { None };
        let asked = is_durable.then(|| new.policy.clone());
        let policy = self.admitted(tenant, new.policy, &new.grants, is_durable)?;
        let deadline = self.deadline(new.ttl)?;
        let from = new.snapshot.map(|id| self.snapshots.begin(tenant, &id)).transpose()?;
        let ready = self.make_ready(&tenant.name, &policy).await?;
        let slot = self.slots.take(tenant, patience).await?;
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        let (id, since) = (self.next_id()?, Instant::now());
        let files = journals.map(|journals| journals.begin(tenant, &id)).transpose()?;
        let traced = self.traces.session(&tenant.name, &id);
        let beginning = match &from {
            Some((saved, _)) => Beginning::Saved(saved.path()),
            None => Beginning::Fresh {
                inputs: new.inputs,
                journal: files.as_ref().map(SessionFiles::journal),
            },
        };
        let entry = self.open((&tenant.name, &id), ready, beginning, is_durable).await?;
        self.metrics.started(since);
        let created = SystemTime::now();
        let durable = files.zip(asked).map(|(files, asked)| {
            let description = Description {
                tenant: tenant.name.clone(),
                policy: asked,
                metadata: new.metadata.clone(),
                created,
                deadline: wall(deadline),
                has_one_run: new.durable == Some(Durability::Run),
            };
            DurableSession::begin(files, description)
        });
        let durable = match durable.transpose() {
            Ok(durable) => durable,
            Err(failure) => {
                self.end_entry(&entry).await;
                return Err(self.discretion.failure(&failure).into());
            }
        };
        let session = NodeSession {
            tenant: Arc::clone(tenant),
            policy,
            created,
            deadline: Mutex::new(deadline),
            pauses_at_end: new.pauses_at_end,
            resumes_on_use: new.resumes_on_use,
            metadata: new.metadata,
            state: Mutex::new(NodeSessionState::Active { session: entry, _slot: slot }),
            contexts: from.map(|(_, contexts)| contexts).unwrap_or_default(),
            commands: super::commands::Commands::default(),
            durable,
            use_so_far: Mutex::default(),
            ended: self.sockets.ending(),
            traced,
        };
        self.admit(id, session, &AuditRecord::Created).await
    }

    /// Returns the policy of a session, if its tenant may have it.
    pub(crate) fn admitted(
        &self,
        tenant: &Tenant,
        asked: Policy,
        grants: &ImplicitGrants,
        is_durable: bool,
    ) -> Result<Policy, Failure> {
        let mut policy = tenant.ceiling.admit(&self.settings.policy, asked, grants)?;
        policy.audit |= self.audit.is_on();
        Ok(if is_durable { policy.durable() } else { policy })
    }

    /// Starts and ends a session with the configured policy, to check that this works.
    pub async fn check(&self) -> Result<(), Refusal> {
        let own = (self.name(), "check");
        let ready = self.make_ready(self.name(), &self.settings.policy).await?;
        let entry = self.open(own, ready, Beginning::fresh(Vec::new()), false).await?;
        self.end_entry(&entry).await;
        Ok(())
    }

    pub(crate) fn next_id(&self) -> Result<String, Failure> {
        self.ids.next().map_err(|error| Failure::config(error.to_string()))
    }

    /// Writes to the audit log that a session has started, and adds it to the table.
    pub(crate) async fn admit(
        &self,
        id: String,
        session: NodeSession,
        record: &AuditRecord<'_>,
    ) -> Result<SessionLease, Refusal> {
        let tenant = Arc::clone(&session.tenant);
        self.audit.write(&tenant.name, &id, record);
        let used = self.add(id, session).await?;
        // A session whose start is not logged must not be used.
        if let Err(refusal) = self.audit.check(&tenant.name) {
            self.remove(&used, "closed", Reason::Ended(UNLOGGED.to_owned())).await;
            return Err(refusal);
        }
        note_session(used.handle());
        Ok(used)
    }

    /// Adds a session to the table whose start is in the audit log.
    pub(super) async fn add(
        &self,
        id: String,
        session: NodeSession,
    ) -> Result<SessionLease, Refusal> {
        let tenant = Arc::clone(&session.tenant);
        // The table itself has no limit below that of slots.
        let room = self.table.make_room().map_err(|_| Refusal::Full(self.settings.max_sessions))?;
        let used = room.fill_again(&tenant.name, id, session);
        // Checked after adding it: from now on, removing the tenant finds the session.
        if let Err(refusal) = self.current(&tenant) {
            self.remove(&used, "closed", Reason::Ended(REMOVED.to_owned())).await;
            return Err(refusal);
        }
        Ok(used)
    }

    /// Opens a tenant's session with this id, with variables or from a file or a journal.
    pub(crate) async fn open(
        &self,
        (tenant, id): (&str, &str),
        ready: Ready,
        beginning: Beginning,
        is_durable: bool,
    ) -> Result<Arc<SessionEntry>, Failure> {
        // Starting keeps a processor busy: more at once would delay all.
        let _turn = self.starts.enter(tenant, usize::MAX).await.map_err(no_turn)?;
        let (reply, answer) = Reply::channel();
        let owner: Arc<dyn Owner> = Arc::new(AuditOwner::new(&self.audit, tenant, id, is_durable));
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
