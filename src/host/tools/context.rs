//! What a host function knows of the call that it serves.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::queue::Place;
use super::session_handle::SessionHandle;
use crate::data::tool::ToolSpec;

/// One call of a host function: whose it is, and whether anybody still waits for it.
#[derive(Clone)]
pub struct ToolContext {
    session: SessionHandle,
    spec: Arc<ToolSpec>,
    call: u32,
    /// Its sender is dropped when the call is over.
    over: watch::Receiver<()>,
    /// Weak, since a function may keep its context for longer than the call.
    place: Weak<Place>,
}

impl ToolContext {
    pub(super) fn new(
        session: SessionHandle,
        spec: Arc<ToolSpec>,
        call: u32,
        over: watch::Receiver<()>,
        place: &Arc<Place>,
    ) -> Self {
        Self { session, spec, call, over, place: Arc::downgrade(place) }
    }

    /// The place that the call has taken among those that run at once.
    pub(super) fn place(&self) -> Option<Arc<Place>> {
        self.place.upgrade()
    }

    /// Returns the number of the session, unique in this process.
    #[must_use]
    pub fn session_id(&self) -> u64 {
        self.session.id()
    }

    /// Returns the number of the call, unique in its session.
    #[must_use]
    pub fn call_id(&self) -> u64 {
        u64::from(self.call)
    }

    /// Returns the name that the function was called by.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        self.spec.name()
    }

    /// Returns the session that made the call.
    ///
    /// Its variables can be read while the call is served. Running code in it gives
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy): the run that made the call is not over.
    #[must_use]
    pub fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Returns whether nobody waits for the result any more: the run was killed or interrupted, the
    /// task that made the call was cancelled, the call took too long, or it has ended.
    ///
    /// Only functions that block have to ask; the future of an async one is dropped then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.over.has_changed().is_err()
    }

    /// Waits until [`is_cancelled`](Self::is_cancelled).
    pub async fn cancelled(&self) {
        let mut over = self.over.clone();
        // Nothing is ever sent: it ends when the sender is gone.
        while over.changed().await.is_ok() {}
    }

    /// Writes a line to the run's standard error, after the function's name in brackets.
    ///
    /// The guest does not see it. Nothing is written when the call is over.
    pub fn log(&self, line: impl fmt::Display) {
        if !self.is_cancelled() {
            self.session.log(&format!("[{}] {line}\n", self.spec.name()));
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("session_id", &self.session_id())
            .field("call_id", &self.call)
            .field("tool_name", &self.tool_name())
            .finish_non_exhaustive()
    }
}
