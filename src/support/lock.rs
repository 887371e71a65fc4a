//! A lock that outlives a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if a thread panicked while it held it: a panic ends one request or one
/// session, and the others go on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_held_when_it_panicked_can_be_locked() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                *lock(&mutex) = 2;
                let _held = lock(&mutex);
                panic!("while it holds the lock");
            });
            assert!(thread.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
    }
}
