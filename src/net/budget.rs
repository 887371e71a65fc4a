//! Counts what a run has used of its network limits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::NetError;
use super::limits::NetLimits;

/// The counters of the current run.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    requests: u64,
    connections: u64,
    request_bytes: u64,
    response_bytes: u64,
}

impl Budget {
    pub(super) fn begin_run(&self) {
        *self.used() = Used::default();
    }

    pub(super) fn charge_request(&self, limits: &NetLimits) -> Result<(), NetError> {
        charge(&mut self.used().requests, 1, limits.requests, "requests of a run")
    }

    pub(super) fn charge_connection(&self, limits: &NetLimits) -> Result<(), NetError> {
        let what = "connections of a run";
        charge(&mut self.used().connections, 1, limits.requests, what)
    }

    pub(super) fn charge_sent(&self, bytes: usize, limits: &NetLimits) -> Result<(), NetError> {
        let what = "bytes of the requests of a run";
        charge(&mut self.used().request_bytes, bytes as u64, limits.request_bytes, what)
    }

    pub(super) fn charge_received(&self, bytes: u64, limits: &NetLimits) -> Result<(), NetError> {
        let what = "bytes of the responses of a run";
        charge(&mut self.used().response_bytes, bytes, limits.response_bytes, what)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds to a counter, unless the result would exceed the limit.
fn charge(used: &mut u64, more: u64, limit: u64, what: &str) -> Result<(), NetError> {
    let needed = used.saturating_add(more);
    if needed > limit {
        return Err(NetError::limit(what, limit, needed));
    }
    *used = needed;
    Ok(())
}
