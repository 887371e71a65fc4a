//! A handle that interrupts a session's runs from another thread, or ends the session.

use std::fmt;
use std::sync::Arc;

use super::seat::Seat;

/// Interrupts the run of one session, from any thread.
#[derive(Clone)]
pub struct InterruptHandle(pub(super) Arc<Seat>);

impl InterruptHandle {
    /// Raises `KeyboardInterrupt` in the current run.
    ///
    /// The session stays usable. A guest that catches the exception goes on until its deadline. A
    /// long C call that never checks for signals, such as `sum(range(10**9))`, sees the interrupt
    /// only when it returns. If no run is under way, nothing happens.
    pub fn interrupt(&self) {
        self.0.current().interrupt();
    }

    /// Ends the current run and the session at once, as dropping the session does.
    ///
    /// The future of the run returns soon; its result says that the session is closed.
    pub fn kill(&self) {
        self.0.current().close();
    }
}

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle").finish_non_exhaustive()
    }
}
