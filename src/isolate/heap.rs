//! The limit of V8's own heap, where JavaScript's objects, strings and code are, and what happens
//! at it.
//!
//! V8 ends the process when its heap is full, unless it is given more. So it is given more, once
//! the verdict is recorded and the guest is being stopped: enough to get out of whatever it was
//! doing.

use std::sync::Arc;

use deno_core::{JsRuntime, v8};

use super::allocator::{self, Attempts};
use super::budget::MemoryBudget;
use super::control::IsolateControl;

/// The part of a session's memory that its JavaScript may take in V8's heap, besides.
const SHARE: u64 = 4;
/// The least heap, which is plenty for Pyodide.
const LEAST_BYTES: u64 = 64 << 20;
/// The largest heap. Collecting the garbage of a larger one takes seconds.
const MOST_BYTES: u64 = 512 << 20;

/// What a heap at its limit is given to end the guest in, once. V8 looks whether it should stop
/// between two steps of JavaScript, so that the largest single step has to fit: an array of the
/// greatest length, of 1 GiB, copied to another. Past it V8 ends the process.
const HEADROOM_BYTES: usize = 3 << 30;

/// The memory of one isolate: the budget of its buffers, and the limit of its heap.
pub(crate) struct Memory {
    pub(crate) budget: Arc<MemoryBudget>,
    attempts: Arc<Attempts>,
}

impl Memory {
    /// Memory for a session that may have `max_bytes`.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { budget: Arc::new(MemoryBudget::new(max_bytes)), attempts: Arc::default() }
    }

    fn heap_limit(&self) -> u64 {
        (self.budget.limit() / SHARE).clamp(LEAST_BYTES, MOST_BYTES)
    }

    /// What an isolate is created with.
    pub(crate) fn create_params(&self) -> v8::CreateParams {
        let (budget, attempts) = (Arc::clone(&self.budget), Arc::clone(&self.attempts));
        // No more than 512 MiB, which every size has room for.
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
            // V8 says the same when it was refused a buffer, which is the guest's to deal with.
            let is_low = heap.committed < limit / 4 * 3;
            if is_low && control.exhausted().is_none() && attempts.explain_a_call() {
                return heap.limit;
            }
            control.exhaust(limit, heap.committed.max(limit));
            heap.initial_limit.saturating_add(HEADROOM_BYTES)
        });
    }
}
