//! A handle that interrupts a session's runs from another thread.

use std::fmt;
use std::sync::Arc;

use super::shared::Shared;

/// Interrupts the run of one session, from any thread.
#[derive(Clone)]
pub struct InterruptHandle(pub(super) Arc<Shared>);

impl InterruptHandle {
    /// Raises `KeyboardInterrupt` in the current run.
    ///
    /// The session stays usable. A guest that catches the exception goes on until its deadline. A
    /// long C call that never checks for signals, such as `sum(range(10**9))`, sees the interrupt
    /// only when it returns. If no run is under way, nothing happens.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle").finish_non_exhaustive()
    }
}
