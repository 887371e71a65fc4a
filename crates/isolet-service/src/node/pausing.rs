//! Pauses and resumes sessions, copies them, and takes snapshots.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::audit::AuditRecord;
use super::saved::{Kept, Snapshot};
use super::session::{NodeSession, NodeSessionState, SessionLease};
use super::starting::no_turn;
use super::store::{Saved, Store};
use super::tenants::Tenant;
use super::{Node, OnDrop, Refusal};
use crate::core::{Beginning, Command, Failure, Reason, Reply, SessionEntry};
use isolet::internals::lock;

impl Node {
    /// Saves a session and ends it until it is resumed, which frees its slot. Returns `false` if it
    /// was paused already.
    pub async fn pause(self: &Arc<Self>, session: SessionLease) -> Result<bool, Refusal> {
        let node = Arc::clone(self);
        // On a task that completes even if the client is gone, because the session has no valid
        // state in between.
        unfinished(tokio::spawn(async move { node.pause_now(&session).await }).await)
    }

    async fn pause_now(&self, session: &SessionLease) -> Result<bool, Refusal> {
        let _turn = self.hold(session).await?;
        let of = session.session();
        if of.is_paused() {
            return Ok(false);
        }
        let store = self.store()?;
        let saved = store.begin(&of.tenant)?;
        let active = mem::replace(&mut *lock(&of.state), NodeSessionState::Transitioning);
        let paused = match active.entry() {
            Some(entry) => self.save(entry, saved).await.map(|saved| (Arc::clone(entry), saved)),
            None => Err(Refusal::Paused),
        };
        let paused = match paused {
            Ok((entry, saved)) => {
                *lock(&of.deadline) = Instant::now() + store.ttl;
                *lock(&of.state) = NodeSessionState::Paused(saved);
                // Without closing it in order: it resumes from the file.
                entry.kill();
                self.end_entry(&entry).await;
                Ok(true)
            }
            Err(refusal) => {
                *lock(&of.state) = active;
                Err(refusal)
            }
        };
        self.settle(session).await;
        paused
    }

    /// Resumes a paused session, with this lifetime in seconds. Returns `false` if it was not
    /// paused.
    pub async fn resume(
        self: &Arc<Self>,
        session: SessionLease,
        ttl: Option<f64>,
    ) -> Result<bool, Refusal> {
        // Answered even while code runs.
        if !session.session().is_paused() {
            return Ok(false);
        }
        let node = Arc::clone(self);
        unfinished(tokio::spawn(async move { node.resume_now(&session, ttl).await }).await)
    }

    async fn resume_now(&self, session: &SessionLease, ttl: Option<f64>) -> Result<bool, Refusal> {
        let deadline = self.deadline(ttl)?;
        let _turn = self.hold(session).await?;
        let of = session.session();
        if !of.is_paused() {
            return Ok(false);
        }
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        self.audit.check(&of.tenant.name)?;
        let tenant = self.current(&of.tenant)?;
        let ready = self.make_ready(&tenant.name, &of.policy).await?;
        let slot = self.slots.take(&tenant, Duration::ZERO).await?;
        let stored = mem::replace(&mut *lock(&of.state), NodeSessionState::Transitioning);
        let opened = match &stored {
            NodeSessionState::Paused(saved) => {
                let whose = (&*of.tenant.name, session.handle());
                self.open(whose, ready, Beginning::Saved(saved.path()), false).await
            }
            _ => Err(Failure::config("the session is about to be paused or resumed")),
        };
        let resumed = match opened {
            Ok(entry) => {
                *lock(&of.deadline) = deadline;
                *lock(&of.state) = NodeSessionState::Active { session: entry, _slot: slot };
                Ok(true)
            }
            Err(failure) => {
                *lock(&of.state) = stored;
                Err(failure.into())
            }
        };
        self.settle(session).await;
        resumed
    }

    /// Pauses an expired session, or ends it if it cannot be paused.
    pub(crate) fn pause_at_end(self: &Arc<Self>, session: SessionLease) {
        let node = Arc::clone(self);
        if let Some(store) = &self.store {
            // So that the next round does not pause it again.
            *lock(&session.session().deadline) = Instant::now() + store.ttl;
        }
        tokio::spawn(async move {
            if let Err(refusal) = node.pause_now(&session).await {
                let reason = format!("its time was over, and it could not be paused: {refusal:?}");
                node.remove(&session, "expired", Reason::Ended(reason)).await;
            }
        });
    }

    /// Copies a session, with this lifetime in seconds.
    pub async fn fork(
        &self,
        session: &SessionLease,
        ttl: Option<f64>,
    ) -> Result<SessionLease, Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        self.audit.check(&session.session().tenant.name)?;
        let deadline = self.deadline(ttl)?;
        let _turn = self.hold(session).await?;
        let of = session.session();
        let entry = of.entry()?;
        let tenant = self.current(&of.tenant)?;
        let ready = if of.policy.is_forkable() || self.store.is_none() {
            None
        } else {
            Some(self.make_ready(&tenant.name, &of.policy).await?)
        };
        let slot = self.slots.take(&tenant, Duration::ZERO).await?;
        let id = self.next_id()?;
        let (whose, since) = ((&*of.tenant.name, id.as_str()), Instant::now());
        let traced = self.traces.session(&of.tenant.name, &id);
        let copy = if let Some(ready) = ready {
            let saved = self.save(&entry, self.store()?.begin(&tenant)?).await?;
            self.open(whose, ready, Beginning::Saved(saved.path()), false).await?
        } else if of.policy.is_forkable() {
            self.copy(whose, &entry).await?
        } else {
            return Err(Refusal::Failure(Failure::denied(
                "sessions of this node cannot be forked: its configuration has neither `forkable` \
                 in `[policy]` nor a `[store]`",
            )));
        };
        self.metrics.started(since);
        let copied = NodeSession {
            tenant,
            policy: of.policy.clone(),
            created: SystemTime::now(),
            deadline: Mutex::new(deadline),
            pauses_at_end: of.pauses_at_end,
            resumes_on_use: of.resumes_on_use,
            metadata: of.metadata.clone(),
            state: Mutex::new(NodeSessionState::Active { session: copy, _slot: slot }),
            contexts: of.contexts.copy(),
            commands: super::commands::Commands::default(),
            durable: None,
            use_so_far: Mutex::default(),
            ended: self.sockets.ending(),
            traced,
        };
        self.admit(id, copied, &AuditRecord::Created).await
    }

    /// Copies a session of the service. Returns the copy.
    async fn copy(
        &self,
        (tenant, id): (&str, &str),
        session: &Arc<SessionEntry>,
    ) -> Result<Arc<SessionEntry>, Failure> {
        let _turn = self.starts.enter(tenant, usize::MAX).await.map_err(no_turn)?;
        let (reply, answer) = Reply::channel();
        let (copy, abandoned) = match self.service.fork(session, self.owner(tenant, id), reply) {
            Ok((copy, work)) => {
                let abandoned = OnDrop::close(&self.service, &copy);
                if let Some(work) = work {
                    work.spawn();
                }
                (copy, abandoned)
            }
            Err(refusing) => {
                refusing.spawn();
                self.received(answer).await?;
                return Err(Failure::protocol("code runs in the session"));
            }
        };
        self.received(answer).await?;
        abandoned.disarm();
        Ok(copy)
    }

    /// Saves the current state of a session, for new sessions to start from.
    pub async fn snapshot(
        &self,
        session: &SessionLease,
        name: Option<String>,
    ) -> Result<Snapshot, Refusal> {
        let _turn = self.hold(session).await?;
        let (of, store) = (session.session(), self.store()?);
        let tenant = self.current(&of.tenant)?;
        let saved = self.save(&of.entry()?, store.begin(&tenant)?).await?;
        let snapshot = Snapshot {
            id: self.next_id()?,
            name,
            session: session.handle().to_owned(),
            created: SystemTime::now(),
        };
        self.snapshots.add(Kept {
            snapshot: snapshot.clone(),
            tenant: of.tenant.name.clone(),
            saved: Arc::new(saved),
            contexts: of.contexts.copy(),
            until: Instant::now() + store.ttl,
        });
        // The tenant may have been removed in the meantime.
        self.current(&tenant).inspect_err(|_| {
            self.snapshots.remove(&tenant, &snapshot.id);
        })?;
        Ok(snapshot)
    }

    /// Returns a tenant's snapshots, the oldest first.
    pub fn snapshots(&self, tenant: &Tenant) -> Vec<Snapshot> {
        self.snapshots.of(tenant)
    }

    /// Removes a snapshot. Returns `true` if the tenant had it.
    pub fn remove_snapshot(&self, tenant: &Tenant, id: &str) -> bool {
        self.snapshots.remove(tenant, id)
    }

    /// Returns `true` if the text has the form of an id of a session or a snapshot.
    pub fn is_id(&self, text: &str) -> bool {
        self.ids.origin(text).is_some()
    }

    async fn save(&self, session: &Arc<SessionEntry>, saved: Saved) -> Result<Saved, Refusal> {
        let path = saved.path();
        self.ask(|reply| self.service.carry_out(session, Command::Save { path, reply })).await?;
        saved.finish()
    }

    fn store(&self) -> Result<&Arc<Store>, Refusal> {
        self.store.as_ref().ok_or_else(|| {
            Refusal::Failure(Failure::denied(
                "this node keeps no sessions: its configuration has no `[store]`",
            ))
        })
    }

    /// Closes a session that was removed from the table while it was being paused or resumed.
    async fn settle(&self, session: &SessionLease) {
        if !self.table.has(session.handle()) {
            self.vacate(session.session()).await;
        }
    }
}

/// Returns a task's result.
fn unfinished<T>(ended: Result<Result<T, Refusal>, tokio::task::JoinError>) -> Result<T, Refusal> {
    ended.unwrap_or_else(|error| Err(Failure::protocol(error.to_string()).into()))
}
