//! A descriptor that other threads make readable: a flag that a thread can wait for.

use std::sync::Arc;

use super::lock::lock;
use super::sync::{Condvar, Mutex, PoisonError, thread_local};

/// Wakes a thread that waits until this is readable.
#[derive(Default)]
pub(crate) struct Alarm {
    is_readable: Mutex<bool>,
    changed: Condvar,
}

thread_local! {
    static OWN: Arc<Alarm> = Arc::default();
}

impl Alarm {
    #[expect(clippy::unnecessary_wraps, reason = "a system may give none")]
    pub(crate) fn of_this_thread() -> Option<Arc<Self>> {
        Some(OWN.with(Arc::clone))
    }

    pub(crate) fn ring(&self) {
        *lock(&self.is_readable) = true;
        self.changed.notify_all();
    }

    pub(crate) fn silence(&self) {
        *lock(&self.is_readable) = false;
    }

    /// Waits until it is readable, or `is_there` returns `true`, which is asked whenever
    /// [`look`](Self::look) was called.
    pub(crate) fn wait_or(&self, is_there: impl Fn() -> bool) {
        let waiting = |is_readable: &mut bool| !*is_readable && !is_there();
        let waited = self.changed.wait_while(lock(&self.is_readable), waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Has who waits ask again.
    pub(crate) fn look(&self) {
        drop(lock(&self.is_readable));
        self.changed.notify_all();
    }
}
