//! What the library has in `src/support`: one of its files, and models of the others.

#[path = "../../../../src/support/block_on.rs"]
pub(crate) mod block_on;

pub(crate) mod alarm;
pub(crate) mod shared_words;

/// Shuttle's threads, locks and atomics.
pub(crate) mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
    pub(crate) use shuttle::thread::{self, Thread};
    pub(crate) use shuttle::thread_local;
}

pub(crate) mod lock {
    use shuttle::sync::{Mutex, MutexGuard, PoisonError};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Spins twice, so that what is awaited may come before, between and after.
pub(crate) mod spin {
    use std::time::Duration;

    pub(crate) fn spin(_limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
        is_there() || {
            shuttle::thread::yield_now();
            is_there()
        }
    }

    pub(crate) fn budget() -> Duration {
        Duration::ZERO
    }
}

/// Each thread has a processor of its own.
pub(crate) mod processor {
    pub(crate) fn current() -> u64 {
        0
    }
}
