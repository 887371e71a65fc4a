//! Counts what a run does, and stops it when it does too much of something. Neither an exception nor a guest
//! that catches it resets a count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::execution::LimitKind;
use crate::limits::Limits;
use crate::session::brake::{Brake, Cause};

/// The counts of one session's run.
pub(crate) struct Tally {
    tool_calls: Count,
    refusals: Count,
    /// What stops the run, once there is an isolate.
    brake: OnceLock<Weak<Brake>>,
}

struct Count {
    limit: u64,
    observed: AtomicU64,
}

impl Tally {
    pub(crate) fn new(limits: &Limits) -> Self {
        let count = |limit| Count { limit, observed: AtomicU64::new(0) };
        Self {
            tool_calls: count(limits.tool_calls()),
            refusals: count(limits.refusals()),
            brake: OnceLock::new(),
        }
    }

    /// Connects the counts to what stops the session's runs.
    pub(crate) fn connect(&self, brake: &Arc<Brake>) {
        // Weak, since the brake has the host that has the counts; a host has one brake.
        let _ = self.brake.set(Arc::downgrade(brake));
    }

    /// A run begins: nothing of it is counted yet.
    pub(crate) fn begin(&self) {
        for count in [&self.tool_calls, &self.refusals] {
            count.observed.store(0, Ordering::Relaxed);
        }
    }

    /// Counts one more; past the limit the run is stopped. Returns whether it is within the limit.
    pub(crate) fn add(&self, kind: LimitKind) -> bool {
        let count = self.count(kind);
        let observed = count.observed.fetch_add(1, Ordering::Relaxed) + 1;
        if observed <= count.limit {
            return true;
        }
        if let Some(brake) = self.brake.get().and_then(Weak::upgrade) {
            brake.stop(Cause::Limit { kind, limit: count.limit, observed });
        }
        false
    }

    /// One that was counted was none.
    pub(crate) fn remove(&self, kind: LimitKind) {
        let one_less = |observed: u64| observed.checked_sub(1);
        let observed = &self.count(kind).observed;
        let _ = observed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }

    /// How many there were.
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
