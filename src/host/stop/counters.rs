//! Counts a run's tool calls and refusals, and stops the run at a limit. Catching an exception in
//! the guest does not reset a count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::stopper::{Cause, RunStopper};
use crate::data::execution::LimitKind;
use crate::data::limits::Limits;

/// The counts of one session's run.
pub(crate) struct RunCounters {
    tool_calls: Count,
    refusals: Count,
    /// Stops the run. Set once the isolate exists.
    stopper: OnceLock<Weak<RunStopper>>,
}

struct Count {
    limit: u64,
    observed: AtomicU64,
}

impl RunCounters {
    pub(crate) fn new(limits: &Limits) -> Self {
        let count = |limit| Count { limit, observed: AtomicU64::new(0) };
        Self {
            tool_calls: count(limits.tool_calls()),
            refusals: count(limits.refusals()),
            stopper: OnceLock::new(),
        }
    }

    /// Sets the stopper of the session's runs.
    pub(crate) fn connect(&self, stopper: &Arc<RunStopper>) {
        // Weak, because the stopper holds the host, which holds the counters. A host has only one
        // stopper, so this cannot fail.
        let _ = self.stopper.set(Arc::downgrade(stopper));
    }

    /// Resets all counts, for a new run.
    pub(crate) fn begin(&self) {
        for count in [&self.tool_calls, &self.refusals] {
            count.observed.store(0, Ordering::Relaxed);
        }
    }

    /// Adds one to a count, and stops the run if the count exceeds its limit. Returns `true` within
    /// the limit.
    pub(crate) fn add(&self, kind: LimitKind) -> bool {
        let count = self.count(kind);
        let observed = count.observed.fetch_add(1, Ordering::Relaxed) + 1;
        if observed <= count.limit {
            return true;
        }
        if let Some(stopper) = self.stopper.get().and_then(Weak::upgrade) {
            stopper.stop(Cause::Limit { kind, limit: count.limit, observed });
        }
        false
    }

    /// Takes back one that should not have been counted.
    pub(crate) fn remove(&self, kind: LimitKind) {
        let one_less = |observed: u64| observed.checked_sub(1);
        let observed = &self.count(kind).observed;
        let _ = observed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }

    /// Returns a count, at most its limit.
    pub(crate) fn observed(&self, kind: LimitKind) -> u64 {
        self.count(kind).observed.load(Ordering::Relaxed).min(self.count(kind).limit)
    }

    fn count(&self, kind: LimitKind) -> &Count {
        match kind {
            LimitKind::ToolCalls => &self.tool_calls,
            LimitKind::Refusals => &self.refusals,
        }
    }
}
