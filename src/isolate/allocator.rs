//! Allocates the memory of JavaScript's buffers, counted against the session's budget, and observes
//! V8's heap.
//!
//! This file has unsafe code because V8 requests buffers through a table of C functions, and
//! because V8's callback about its heap does not name the isolate.

#![expect(
    unsafe_code,
    reason = "V8's allocator is a table of C functions, and its callbacks name no isolate"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use deno_core::{JsRuntime, v8};

use super::budget::MemoryBudget;

/// Buffers up to this size, in bytes, are never refused. V8 ends the process if it cannot make one
/// for a small typed array, whose contents are in its heap until the guest asks for the buffer.
/// Each such buffer takes more than its size in V8's heap, which has a limit.
const NEVER_REFUSED: u64 = 64;

/// The alignment of malloc, which is what the contents of any buffer need.
const ALIGNMENT: usize = 16;

/// V8's progress in retrying a refused buffer.
///
/// V8 does not give up at once. It collects garbage and asks again, then reports that its heap is
/// near the limit, collects everything, and asks for the last time.
#[derive(Debug, Default)]
pub(crate) struct Attempts(AtomicU8);

impl Attempts {
    const NONE: u8 = 0;
    /// A buffer was refused, and V8 has not reported since that its heap is near the limit.
    const REFUSED: u8 = 1;
    /// V8 has reported it; the next request is the last attempt.
    const LAST: u8 = 2;

    fn granted(&self) {
        self.0.store(Self::NONE, Ordering::Relaxed);
    }

    fn refused(&self) {
        let was_last = self.0.load(Ordering::Relaxed) == Self::LAST;
        self.0.store(if was_last { Self::NONE } else { Self::REFUSED }, Ordering::Relaxed);
    }

    /// Returns `true` if V8 reports on its heap only because a buffer was refused.
    pub(crate) fn explain_a_call(&self) -> bool {
        let explained = self.0.load(Ordering::Relaxed) == Self::REFUSED;
        self.0.store(if explained { Self::LAST } else { Self::NONE }, Ordering::Relaxed);
        explained
    }
}

/// The data that an allocator's functions use.
struct Counted {
    budget: Arc<MemoryBudget>,
    attempts: Arc<Attempts>,
}

static VTABLE: v8::RustAllocatorVtable<Counted> = v8::RustAllocatorVtable {
    allocate,
    // Zeroed too: recycled memory may be another session's, and the time saved is not worth
    // exposing it.
    allocate_uninitialized: allocate,
    free,
    drop: release,
};

/// Makes the allocator of an isolate's buffers. V8 keeps it until its last buffer is freed.
pub(crate) fn counting_allocator(
    budget: Arc<MemoryBudget>,
    attempts: Arc<Attempts>,
) -> v8::UniqueRef<v8::Allocator> {
    let counted = Arc::into_raw(Arc::new(Counted { budget, attempts }));
    // SAFETY: the functions of the table take a `Counted`, and the pointer is to one. It stays
    // valid until `release`, which V8 calls once, when the last owner of the allocator is gone.
    unsafe { v8::new_rust_allocator(counted, &VTABLE) }
}

/// Returns the layout of a buffer's contents, which depends only on the length.
fn layout(length: usize) -> Option<Layout> {
    Layout::from_size_align(length.max(1), ALIGNMENT).ok()
}

/// Returns zeroed memory, or null, which V8 turns into a `RangeError`.
unsafe extern "C" fn allocate(counted: &Counted, length: usize) -> *mut c_void {
    let bytes = length as u64;
    if bytes <= NEVER_REFUSED {
        counted.budget.take(bytes);
    } else if counted.budget.try_take(bytes).is_err() {
        counted.attempts.refused();
        return std::ptr::null_mut();
    }
    // SAFETY: `layout` never returns a layout with a size of zero.
    let memory =
        layout(length).map_or(std::ptr::null_mut(), |layout| unsafe { alloc_zeroed(layout) });
    if memory.is_null() {
        counted.budget.give_back(bytes);
        counted.attempts.refused();
    } else {
        counted.attempts.granted();
    }
    memory.cast()
}

unsafe extern "C" fn free(counted: &Counted, memory: *mut c_void, length: usize) {
    let Some(layout) = layout(length) else {
        return;
    };
    // SAFETY: V8 passes what `allocate` returned for this length, once.
    unsafe { dealloc(memory.cast(), layout) };
    counted.budget.give_back(length as u64);
}

unsafe extern "C" fn release(counted: *const Counted) {
    // SAFETY: the pointer is that of `Arc::into_raw` in `counting_allocator`, and V8 calls this
    // once.
    drop(unsafe { Arc::from_raw(counted) });
}

/// The state of V8's heap, in bytes.
pub(crate) struct HeapState {
    /// The limit that the heap is near.
    pub(crate) limit: usize,
    /// The initial limit.
    pub(crate) initial_limit: usize,
    /// The memory that V8 has reserved for objects.
    pub(crate) committed: u64,
}

/// Calls `decide` on the isolate's thread when V8's heap is near its limit. `decide` returns the
/// new limit; if it is not higher, V8 ends the process.
pub(crate) fn on_near_heap_limit(
    runtime: &mut JsRuntime,
    mut decide: impl FnMut(&HeapState) -> usize + 'static,
) {
    // SAFETY: the pointer is used only in the callback.
    let isolate = unsafe { runtime.v8_isolate().as_raw_isolate_ptr() };
    runtime.add_near_heap_limit_callback(move |limit, initial_limit| {
        // SAFETY: the callback belongs to this isolate's runtime. V8 calls it on the isolate's
        // thread, during a garbage collection, so the isolate is alive and nothing else uses it
        // meanwhile.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
        let spaces = 0..isolate.number_of_heap_spaces();
        let sizes = spaces.filter_map(|space| isolate.get_heap_space_statistics(space));
        let committed = sizes.map(|space| space.space_size() as u64).sum();
        decide(&HeapState { limit, initial_limit, committed })
    });
}
