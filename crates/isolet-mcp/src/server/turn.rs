//! The turns of calls that use the same session: first come, first served.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The most calls that may wait for one session.
const WAITING: usize = 16;

/// Something that one call uses at a time.
pub(super) struct Turns<T> {
    inner: Arc<Mutex<T>>,
    waiting: AtomicUsize,
}

impl<T> Turns<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner: Arc::new(Mutex::new(inner)), waiting: AtomicUsize::new(0) }
    }

    /// Takes the turn if it is free.
    pub(super) fn try_take(&self) -> Option<OwnedMutexGuard<T>> {
        Arc::clone(&self.inner).try_lock_owned().ok()
    }

    /// Waits for the caller's turn. Fails at once if too many wait, with their number.
    pub(super) async fn wait(&self) -> Result<OwnedMutexGuard<T>, usize> {
        let waiting = Waiting(&self.waiting);
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        if before > WAITING {
            return Err(WAITING);
        }
        let turn = Arc::clone(&self.inner).lock_owned().await;
        drop(waiting);
        Ok(turn)
    }
}

/// Counts one that waits, until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn calls_take_turns_in_order_and_too_many_are_refused() {
        let turns = Turns::new(0);
        let first = turns.wait().await.unwrap();
        let mut later: Vec<_> = (0..WAITING + 3).map(|_| Box::pin(turns.wait())).collect();
        let refused = later.iter_mut().filter_map(FutureExt::now_or_never);
        assert_eq!(refused.filter(|one| matches!(one, Err(WAITING))).count(), 2);
        drop(first);
        assert!(later[1].as_mut().now_or_never().is_none());
        assert!(later[0].as_mut().now_or_never().is_some());
    }
}
