//! What a request has begun and nobody waits for any more.

use std::sync::Arc;

use super::run_gate::Pass;
use crate::core::{Command, Reply, Service, SessionEntry, Work};

/// Has something ended if it is dropped: nobody waits for what it was made for any more.
pub(crate) struct OnDrop {
    work: Option<Box<dyn FnOnce() -> Option<Work> + Send>>,
    /// Kept until it has ended.
    pass: Option<Pass>,
}

impl OnDrop {
    /// Has a session end.
    pub(crate) fn close(service: &Arc<Service>, session: &Arc<SessionEntry>) -> Self {
        let (service, session) = (Arc::clone(service), Arc::clone(session));
        let work =
            move || service.carry_out(&session, Command::Close { reply: Reply::to_nobody() });
        Self { work: Some(Box::new(work)), pass: None }
    }

    /// Has the run of a session end, whose place among the runs is kept until then.
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
