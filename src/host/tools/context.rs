//! The context of a tool call: what a tool knows about the call that it serves.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::ToolHost;
use super::queue::CallPermit;
use super::session_handle::SessionHandle;
use crate::data::tool::{ToolError, ToolSpec};
use crate::host::stop::{CallClock, ClockPause};

/// One tool call: its session, and whether anybody still waits for it.
#[derive(Clone)]
pub struct ToolContext {
    session: SessionHandle,
    spec: Arc<ToolSpec>,
    call: u32,
    run: u64,
    /// The sender is dropped when the call is over.
    over: watch::Receiver<()>,
    /// Weak, because a tool may keep its context after the call.
    permit: Weak<CallPermit>,
    clock: Arc<CallClock>,
    host: Weak<ToolHost>,
}

impl ToolContext {
    pub(super) fn new(
        session: SessionHandle,
        spec: Arc<ToolSpec>,
        (run, call): (u64, u32),
        over: watch::Receiver<()>,
        permit: &Arc<CallPermit>,
        clock: &Arc<CallClock>,
        host: Weak<ToolHost>,
    ) -> Self {
        let (permit, clock) = (Arc::downgrade(permit), Arc::clone(clock));
        Self { session, spec, call, run, over, permit, clock, host }
    }

    /// Returns the permit under which the call runs.
    pub(super) fn permit(&self) -> Option<Arc<CallPermit>> {
        self.permit.upgrade()
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

    /// Returns the number of the run that made the call, unique in this process.
    #[must_use]
    pub fn run_id(&self) -> u64 {
        self.run
    }

    /// Returns the name that the tool was called by.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        self.spec.name()
    }

    /// Returns the session that made the call.
    ///
    /// The tool can read the session's variables during the call. Running code in the session fails
    /// with [`ErrorKind::Busy`](crate::ErrorKind::Busy), because the run that made the call is not
    /// over.
    #[must_use]
    pub fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Returns `true` if nobody waits for the result any more. The run was killed or interrupted,
    /// the task that made the call was cancelled, the call timed out, or the call has ended.
    ///
    /// Only blocking tools have to check this; the future of an async tool is dropped instead.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.over.has_changed().is_err()
    }

    /// Waits until [`is_cancelled`](Self::is_cancelled) returns `true`.
    pub async fn cancelled(&self) {
        let mut over = self.over.clone();
        // Nothing is ever sent: the loop ends when the sender is dropped.
        while over.changed().await.is_ok() {}
    }

    /// Keeps this call from counting towards any time limit, until the result is dropped: a person
    /// is asked, who may take hours.
    ///
    /// While all running calls of a run are paused, neither its run time nor its host time passes,
    /// and no other limit of time ends it. So limit the wait yourself. While another call is
    /// running that is not paused, host time passes as usual. The
    /// [timeout](crate::Tool::timeout) of this call stands still, those of others do not.
    ///
    /// After the call has ended or was cancelled, this has no effect.
    ///
    /// ```
    /// use isolet::{Tool, ToolError, ToolSpec, Value};
    ///
    /// # async fn ask(_: &str) -> bool { true }
    /// let delete = Tool::from_handler(ToolSpec::new("delete_all"), |_, cx| async move {
    ///     let pause = cx.pause_clock();
    ///     let allowed = ask("Delete everything?").await;
    ///     drop(pause);
    ///     if allowed { Ok(Value::None) } else { Err(ToolError::new("PermissionError", "no")) }
    /// });
    /// ```
    pub fn pause_clock(&self) -> ClockPause {
        self.clock.pause()
    }

    /// Notes that the call begins to do what must not be done twice, for a tool that is
    /// [deferred](crate::Tool::deferred). A recorded session has that in its journal when this
    /// returns.
    ///
    /// # Errors
    ///
    /// An error for the guest if nobody waits for the call any more, or the journal cannot be
    /// written. Return it, and do nothing.
    pub fn begin(&self) -> Result<(), ToolError> {
        if self.is_cancelled() {
            return Err(ToolError::new("RuntimeError", "nobody waits for the call any more"));
        }
        let noted = self.host.upgrade().map_or(Ok(()), |host| host.note_begin(self.call));
        noted.map_err(|reason| ToolError::new("RuntimeError", reason))
    }

    /// Writes a line to the run's standard error, prefixed with the tool's name in brackets.
    ///
    /// The guest does not see the line. After the call is over, nothing is written.
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
