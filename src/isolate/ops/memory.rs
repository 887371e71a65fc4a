//! Ops with which WebAssembly memories take from the session's budget before they grow.

use std::sync::Arc;

use deno_core::{OpState, op2, v8};

use super::OpError;
use super::boot::booting;
use crate::isolate::budget::{Exceeded, MemoryBudget};
use crate::isolate::state::State;

/// The unit in which memories grow.
const PAGE: u64 = 1 << 16;

/// The largest memory that Emscripten supports, in bytes: 4 GiB less a page.
const LARGEST: u64 = (1 << 32) - PAGE;

/// The interpreter's memory grows by a fifth, so that it does not grow at every allocation. This is
/// the maximum of that extra growth, in bytes.
const MOST_ROOM: u64 = 96 << 20;

/// The part of the budget that the interpreter's memory leaves free, in bytes. Its calls into
/// JavaScript occasionally need a buffer, and without one the interpreter is lost.
const LEFT_FOR_BUFFERS: u64 = 4 << 20;

/// The charge for a memory that JavaScript makes, in addition to its pages, in bytes. V8 reserves 8
/// GiB of address space for each memory, whatever its size, so there must not be thousands.
const NEW_MEMORY: u64 = 16 << 20;

/// The memory of a session's WebAssembly memories, as counted in its budget.
pub(crate) struct WasmMemory {
    budget: Arc<MemoryBudget>,
    /// The interpreter's own memory.
    interpreter: Option<v8::Global<v8::WasmMemoryObject>>,
    /// The bytes taken for the interpreter's own memory.
    taken: u64,
}

impl WasmMemory {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, interpreter: None, taken: 0 }
    }

    /// Takes bytes for something that stays as long as the session.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Exceeded> {
        self.budget.try_take(bytes)
    }

    /// Returns the session's most recent refusal.
    pub(crate) fn last_refusal(&self) -> Option<Exceeded> {
        self.budget.last_refusal()
    }

    /// Counts the interpreter's memory at its present size, and returns the session's peak. Fails
    /// if that memory exceeds the budget, because WebAssembly's own instruction grows it without
    /// asking.
    pub(crate) fn measure(&mut self, scope: &mut v8::PinScope<'_, '_>) -> Result<u64, Exceeded> {
        if let Some(memory) = &self.interpreter {
            let length = v8::Local::new(scope, memory).buffer().byte_length() as u64;
            let (before, limit) = (std::mem::replace(&mut self.taken, length), self.budget.limit());
            self.budget.give_back(before.saturating_sub(length));
            self.budget.take(length.saturating_sub(before));
            if length > before && self.budget.used() > limit {
                return Err(Exceeded { limit, needed: self.budget.used() });
            }
        }
        Ok(self.budget.peak())
    }

    /// Takes the bytes with which the interpreter's memory reaches `needed` bytes and, if
    /// `with_room`, more if the budget allows. Returns the permitted size, in bytes.
    fn grow(&mut self, needed: u64, with_room: bool) -> Result<u64, Exceeded> {
        let needed = needed.next_multiple_of(PAGE);
        let missing = needed.saturating_sub(self.taken);
        let fifth = self.taken / 5;
        self.budget.take_leaving(missing, LEFT_FOR_BUFFERS)?;
        self.taken += missing;
        if with_room {
            let room = fifth.saturating_sub(missing).min(MOST_ROOM);
            let room = room.min(self.budget.left().saturating_sub(LEFT_FOR_BUFFERS));
            let room = room.min(LARGEST.saturating_sub(self.taken)) / PAGE * PAGE;
            // No other code can take from the budget meanwhile: all of it runs on this thread.
            if self.budget.try_take(room).is_ok() {
                self.taken += room;
            }
        }
        Ok(self.taken)
    }
}

/// Counts the memory that the interpreter was instantiated with, and keeps it to read its size
/// later.
#[op2(nofast)]
pub(crate) fn op_isolet_memory_adopt(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    memory: v8::Local<'_, v8::Value>,
) -> Result<(), OpError> {
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let state = booting(state)?;
    let length = memory.buffer().byte_length() as u64;
    state.memory.budget.try_take(length).map_err(|error| OpError::Host(error.to_string()))?;
    state.memory.taken = length;
    state.memory.interpreter = Some(v8::Global::new(scope, memory));
    Ok(())
}

/// Takes the bytes with which the interpreter's memory can grow to `needed` bytes, or somewhat
/// more. Returns the permitted size, or 0 if the budget has too little left.
#[op2(nofast)]
#[number]
pub(crate) fn op_isolet_memory_grow(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[number] needed: u64,
    with_room: bool,
) -> u64 {
    let memory = &mut state.borrow_mut::<State>().memory;
    // The memory is smaller than what was taken for it if growing failed the last time.
    if needed > LARGEST || memory.measure(scope).is_err() {
        return 0;
    }
    memory.grow(needed, with_room).unwrap_or_default()
}

/// Takes bytes for another memory to be made. They are never given back.
#[op2(fast)]
pub(crate) fn op_isolet_memory_make(state: &mut OpState, #[number] bytes: u64) -> bool {
    let memory = &state.borrow::<State>().memory;
    memory.budget.try_take(bytes.saturating_add(NEW_MEMORY)).is_ok()
}

/// Takes bytes for another memory to grow by. They are never given back.
#[op2(fast)]
pub(crate) fn op_isolet_memory_take(state: &mut OpState, #[number] bytes: u64) -> bool {
    state.borrow::<State>().memory.budget.try_take(bytes).is_ok()
}
