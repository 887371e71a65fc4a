//! Answers that are given exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::NetError;

/// Receives the result of a call: called exactly once, from any thread.
pub(crate) type Answer<T> = Box<dyn FnOnce(Result<T, NetError>) + Send>;

/// An answer that must be given. If it is dropped, the answer is that the exchange was closed.
pub(super) struct Reply<T> {
    answer: Option<Answer<T>>,
    owed: Option<Owed>,
}

impl<T> Reply<T> {
    pub(super) fn new(answer: Answer<T>) -> Self {
        Self { answer: Some(answer), owed: None }
    }

    /// Sets the wait that ends just before the answer is given.
    pub(super) fn owe(&mut self, owed: Option<Owed>) {
        self.owed = owed;
    }

    pub(super) fn give(mut self, result: Result<T, NetError>) {
        self.settle(result);
    }

    fn settle(&mut self, result: Result<T, NetError>) {
        self.owed = None;
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
pub(super) struct Slot(Arc<AtomicBool>);

impl Slot {
    /// Begins a wait. Returns `None` if another one is in progress.
    pub(super) fn begin(&self) -> Option<Owed> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| Owed(self.clone()))
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A wait, which ends on drop.
pub(super) struct Owed(Slot);

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
