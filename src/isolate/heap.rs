//! The limit of V8's own heap, which holds JavaScript's objects, strings and code, and the reaction
//! to reaching it.
//!
//! V8 ends the process when its heap is full, unless the limit is raised. So the limit is raised,
//! once the verdict is recorded and the guest is being stopped: enough to finish the step that it
//! is in.

use std::sync::Arc;

use deno_core::{JsRuntime, v8};

use super::allocator::{self, Attempts};
use super::budget::MemoryBudget;
use super::control::IsolateControl;

/// V8's heap may take this fraction of a session's memory limit, in addition to that limit.
const SHARE: u64 = 4;
/// The smallest heap limit, in bytes. Plenty for Pyodide.
const LEAST_BYTES: u64 = 64 << 20;
/// The largest heap limit, in bytes. Collecting the garbage of a larger heap takes seconds.
const MOST_BYTES: u64 = 512 << 20;

/// How much a heap at its limit may grow, once, to end the guest, in bytes. V8 checks whether it
/// should stop only between two steps of JavaScript, so the largest single step must fit: copying
/// an array of the maximum length, 1 GiB. Beyond this V8 ends the process.
const HEADROOM_BYTES: usize = 3 << 30;

/// The memory of one isolate: the budget of its buffers, and the limit of its heap.
pub(crate) struct Memory {
    pub(crate) budget: Arc<MemoryBudget>,
    attempts: Arc<Attempts>,
}

impl Memory {
    /// Makes the memory of a session that may have `max_bytes`.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { budget: Arc::new(MemoryBudget::new(max_bytes)), attempts: Arc::default() }
    }

    fn heap_limit(&self) -> u64 {
        (self.budget.limit() / SHARE).clamp(LEAST_BYTES, MOST_BYTES)
    }

    /// Returns the parameters with which an isolate is created.
    pub(crate) fn create_params(&self) -> v8::CreateParams {
        let (budget, attempts) = (Arc::clone(&self.budget), Arc::clone(&self.attempts));
        // At most 512 MiB, so this always succeeds.
        let limit = usize::try_from(self.heap_limit()).unwrap_or(usize::MAX);
        v8::Isolate::create_params()
            .heap_limits(0, limit)
            .array_buffer_allocator(allocator::counting_allocator(budget, attempts))
    }

    /// Stops the guest when V8's heap is near its limit.
    pub(crate) fn enforce(&self, runtime: &mut JsRuntime, control: Arc<IsolateControl>) {
        let limit = self.heap_limit();
        let attempts = Arc::clone(&self.attempts);
        allocator::on_near_heap_limit(runtime, move |heap| {
            // V8 makes the same report when a buffer was refused, which the guest must handle
            // itself.
            let is_low = heap.committed < limit / 4 * 3;
            if is_low && control.exhausted().is_none() && attempts.explain_a_call() {
                return heap.limit;
            }
            control.exhaust(limit, heap.committed.max(limit));
            heap.initial_limit.saturating_add(HEADROOM_BYTES)
        });
    }
}
