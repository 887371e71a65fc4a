//! Durable sessions that have ended with a run, whose result waits for its client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::durable::DurableSession;
use super::run_log::DurableRun;
use super::session::{Listed, SessionLease};
use super::{Credentials, Node, Refusal, Tenant};
use crate::core::{Failure, Reason};
use isolet::internals::lock;

/// The sessions by id. Each keeps its files and so its room among the journals, which bounds them.
#[derive(Default)]
pub(crate) struct FinishedSessions(Mutex<HashMap<String, Arc<DurableSession>>>);

impl FinishedSessions {
    fn add(&self, session: &Arc<DurableSession>) {
        lock(&self.0).insert(session.id().to_owned(), Arc::clone(session));
    }

    fn get(&self, id: &str) -> Option<Arc<DurableSession>> {
        lock(&self.0).get(id).map(Arc::clone)
    }

    fn of(&self, tenant: &str) -> Vec<Arc<DurableSession>> {
        let all = lock(&self.0);
        all.values().filter(|session| session.tenant() == tenant).map(Arc::clone).collect()
    }

    /// Removes a session, but not its files.
    fn take(&self, id: &str) -> Option<Arc<DurableSession>> {
        lock(&self.0).remove(id)
    }

    /// Removes the sessions of removed tenants, with their files.
    pub(crate) fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        self.forget_if(|session| is_gone(session.tenant()));
    }

    /// Removes the sessions whose time is over, with their files.
    pub(crate) fn forget_old(&self) {
        let now = SystemTime::now();
        self.forget_if(|session| session.deadline() <= now);
    }

    fn forget_if(&self, is_over: impl Fn(&DurableSession) -> bool) {
        lock(&self.0).retain(|_, session| {
            let is_over = is_over(session);
            if is_over {
                session.remove();
            }
            !is_over
        });
    }
}

impl Node {
    /// Ends a durable session with its run. The result waits for its client until the session's
    /// time is over, also in the node's next process, which replays the run.
    pub(super) async fn finish_session(
        &self,
        session: &SessionLease,
        kind: &'static str,
        reason: Reason,
    ) {
        let Some(durable) = &session.session().durable else {
            return self.remove(session, kind, reason).await;
        };
        // First, so that it is found at any time.
        self.finished.add(durable);
        let Some(ended) = self.take_without_files(session, kind, reason) else {
            // A request has ended it, or the node ends and goes on with it.
            self.finished.take(durable.id());
            return;
        };
        if let Ok(entry) = ended.entry() {
            // Not in order, which its journal would have.
            entry.kill();
        }
        self.vacate(&ended).await;
    }

    /// Returns the run of this number of a durable session, if it is the last one. Waits while the
    /// session is being restored, at most as long as a run waits in the queue.
    pub async fn find_run(
        &self,
        who: &Credentials,
        id: &str,
        number: u64,
    ) -> Result<Arc<DurableRun>, Refusal> {
        match self.find_restored(who, id).await {
            Ok(session) => match &session.session().durable {
                Some(durable) => durable.run(number),
                None => Err(Failure::config(
                    "the session is not durable, and the events of its runs are not kept",
                )
                .into()),
            },
            Err(refusal) => match self.finished_session(who, id) {
                Some(session) => session.run(number),
                None => Err(refusal),
            },
        }
    }

    /// Describes a session, also one that has ended with a run.
    pub fn describe(&self, who: &Credentials, id: &str) -> Result<Listed, Refusal> {
        match self.find(who, id) {
            Ok(session) => Ok(Listed::of(&session)),
            Err(refusal) => {
                self.finished_session(who, id).map(|ended| ended.ended()).ok_or(refusal)
            }
        }
    }

    /// Returns a tenant's sessions, also those that have ended with a run, the oldest first.
    pub fn list_all(&self, tenant: &Tenant) -> Vec<Listed> {
        let mut sessions = self.list(tenant);
        // One that is about to end is in both.
        let ended = self.finished.of(&tenant.name).into_iter();
        let ended = ended.filter(|session| !self.table.has(session.id()));
        sessions.extend(ended.map(|session| session.ended()));
        sessions.sort_by_key(|session| session.created);
        sessions
    }

    /// Ends a session, or removes the result of one that has ended with its run.
    pub async fn delete(&self, who: &Credentials, id: &str) -> Result<(), Refusal> {
        let found = match self.find(who, id) {
            Ok(session) => {
                self.end(&session).await;
                Ok(())
            }
            Err(refusal) => Err(refusal),
        };
        // It may have ended with its run in between.
        match self.finished_session(who, id).and_then(|session| self.finished.take(session.id())) {
            Some(session) => {
                session.remove();
                Ok(())
            }
            None => found,
        }
    }

    fn finished_session(&self, who: &Credentials, id: &str) -> Option<Arc<DurableSession>> {
        let session = self.finished.get(id)?;
        let is_known = who.token.as_deref().is_some_and(|token| self.ids.is_token(id, token));
        let tenants = self.tenants();
        let asker = tenants.of(who.key.as_deref()).map(|tenant| tenant.name.as_str());
        (is_known || asker == Some(session.tenant())).then_some(session)
    }
}
