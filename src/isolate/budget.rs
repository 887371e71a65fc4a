//! The memory budget of one session: a number of bytes that can be taken and given back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How much memory a session may have, and how much it has.
///
/// WebAssembly memories and the contents of JavaScript's buffers take from it. V8's heap has a
/// separate limit ([`heap`](super::heap)). Buffers are given back on whatever thread V8 frees them.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
    refused: Mutex<Option<Exceeded>>,
}

/// The budget has less memory left than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session's memory limit is {limit} bytes, needed {needed}")]
pub(crate) struct Exceeded {
    /// The whole budget, in bytes.
    pub(crate) limit: u64,
    /// What would have been in use, in bytes.
    pub(crate) needed: u64,
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64) -> Self {
        let (used, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { limit, used, peak, refused: Mutex::new(None) }
    }

    /// Takes all of `bytes`, or fails and takes nothing.
    pub(crate) fn try_take(&self, bytes: u64) -> Result<(), Exceeded> {
        self.take_leaving(bytes, 0)
    }

    /// Takes all of `bytes`, or fails and takes nothing if less than `rest` would be left.
    pub(crate) fn take_leaving(&self, bytes: u64, rest: u64) -> Result<(), Exceeded> {
        let within = |used: u64| {
            let needed = used.checked_add(bytes)?;
            (needed.checked_add(rest)? <= self.limit).then_some(needed)
        };
        match self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, within) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::AcqRel);
                Ok(())
            }
            Err(used) => {
                let needed = used.saturating_add(bytes).saturating_add(rest);
                let exceeded = Exceeded { limit: self.limit, needed };
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(exceeded);
                Err(exceeded)
            }
        }
    }

    /// Takes bytes unconditionally, because they are already in use.
    pub(crate) fn take(&self, bytes: u64) {
        let before = self.used.fetch_add(bytes, Ordering::AcqRel);
        self.peak.fetch_max(before.saturating_add(bytes), Ordering::AcqRel);
    }

    /// Gives back bytes that were taken.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Returns the whole budget, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Returns how many bytes can still be taken.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Returns the peak use so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Acquire)
    }

    /// Returns the most recent refusal, if there was one.
    pub(crate) fn last_refusal(&self) -> Option<Exceeded> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_budget_gives_what_it_has_and_no_byte_more() {
        let budget = MemoryBudget::new(100);
        assert_eq!(budget.try_take(60), Ok(()));
        assert_eq!(budget.last_refusal(), None);
        let refusal = Exceeded { limit: 100, needed: 101 };
        assert_eq!(budget.try_take(41), Err(refusal));
        assert_eq!((budget.used(), budget.last_refusal()), (60, Some(refusal)));
        assert_eq!(budget.take_leaving(40, 1), Err(refusal));
        assert_eq!(budget.try_take(40), Ok(()));
        budget.give_back(100);
        assert_eq!(budget.try_take(1), Ok(()));
        assert_eq!((budget.used(), budget.peak()), (1, 100));
        assert_eq!(budget.try_take(u64::MAX), Err(Exceeded { limit: 100, needed: u64::MAX }));
    }

    #[test]
    fn threads_together_get_no_more_than_the_budget() {
        let budget = Arc::new(MemoryBudget::new(1000));
        let take = |_| {
            let budget = Arc::clone(&budget);
            std::thread::spawn(move || (0..1000).filter(|_| budget.try_take(1).is_ok()).count())
        };
        let threads: Vec<_> = (0..4).map(take).collect();
        let taken: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!((taken, budget.used(), budget.peak()), (1000, 1000, 1000));
    }
}
