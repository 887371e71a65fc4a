//! Interrupting a session's runs from elsewhere.

use std::fmt;
use std::sync::Arc;

use super::shared::Shared;

/// Interrupts the run of one session, from any thread.
#[derive(Clone)]
pub struct InterruptHandle(pub(super) Arc<Shared>);

impl InterruptHandle {
    /// Raises `KeyboardInterrupt` in the run that is under way.
    ///
    /// The session lives on. A guest that catches it goes on too, until its deadline; long C calls
    /// that never look for signals, such as `sum(range(10**9))`, see it when they return. Without a
    /// run under way nothing happens.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle").finish_non_exhaustive()
    }
}
