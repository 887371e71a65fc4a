//! Answers that are given exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::NetError;

/// Receives the result of a call: called exactly once, from any thread.
pub(crate) type Answer<T> = Box<dyn FnOnce(Result<T, NetError>) + Send>;

/// An answer that must be given. If it is dropped, the answer is that the exchange was closed.
pub(super) struct Reply<T> {
    answer: Option<Answer<T>>,
    guard: Option<WaitGuard>,
}

impl<T> Reply<T> {
    pub(super) fn new(answer: Answer<T>) -> Self {
        Self { answer: Some(answer), guard: None }
    }

    /// Sets the wait that ends just before the answer is given.
    pub(super) fn hold_guard(&mut self, guard: Option<WaitGuard>) {
        self.guard = guard;
    }

    pub(super) fn give(mut self, result: Result<T, NetError>) {
        self.settle(result);
    }

    fn settle(&mut self, result: Result<T, NetError>) {
        self.guard = None;
        if let Some(answer) = self.answer.take() {
            answer(result);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.settle(Err(NetError::closed()));
    }
}

/// Marks whether a caller waits for one kind of answer. At most one can wait at a time.
#[derive(Clone, Default)]
pub(super) struct PendingWait(Arc<AtomicBool>);

impl PendingWait {
    /// Begins a wait. Returns `None` if another one is in progress.
    pub(super) fn begin(&self) -> Option<WaitGuard> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| WaitGuard(self.clone()))
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A wait, which ends on drop.
pub(super) struct WaitGuard(PendingWait);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
