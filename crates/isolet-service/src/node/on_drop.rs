//! Cleans up after requests whose clients are gone.

use std::sync::Arc;

use super::run_gate::Pass;
use crate::core::{Command, Reply, Service, SessionEntry, Work};

/// Runs a clean-up when dropped, unless it is disarmed.
pub(crate) struct OnDrop {
    work: Option<Box<dyn FnOnce() -> Option<Work> + Send>>,
    /// Released once the clean-up is done.
    pass: Option<Pass>,
}

impl OnDrop {
    /// Closes a session.
    pub(crate) fn close(service: &Arc<Service>, session: &Arc<SessionEntry>) -> Self {
        let (service, session) = (Arc::clone(service), Arc::clone(session));
        let work =
            move || service.carry_out(&session, Command::Close { reply: Reply::to_nobody() });
        Self { work: Some(Box::new(work)), pass: None }
    }

    /// Cancels the run of a session, and keeps its pass until the run has ended.
    pub(crate) fn cancel(session: &Arc<SessionEntry>, pass: Pass) -> Self {
        let session = Arc::clone(session);
        let work = move || Some(Service::cancel(&session, Reply::to_nobody()));
        Self { work: Some(Box::new(work)), pass: Some(pass) }
    }

    pub(crate) fn disarm(mut self) {
        self.work = None;
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        let pass = self.pass.take();
        if let Some(work) = self.work.take().and_then(|work| work()) {
            tokio::task::spawn_blocking(move || {
                work.run();
                drop(pass);
            });
        }
    }
}
