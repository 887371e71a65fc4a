//! Ops that write and read a saved session. They work only while the host has a session saved or
//! restored.

use deno_core::{OpState, op2, v8};

use super::OpError;
use super::wasm::compile;
use crate::image::saved::{Reader, Writer};
use crate::isolate::image::Image;
use crate::isolate::restore::populate;
use crate::isolate::state::{SessionClock, State};
use crate::protocol::{HostReply, HostRequest};

/// The maximum size of a piece that the host hands out, in bytes.
const PIECE_BYTES: u32 = 1 << 20;

/// How many bytes of a saved memory are compared at a time.
const WORD: usize = 16;

/// Begins to write the session, with the description of what is in JavaScript.
#[op2(fast)]
pub(crate) fn op_isolet_save_begin(
    state: &mut OpState,
    #[string] description: String,
) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    let now = now(state) + state.clock.ahead;
    let writer =
        Writer::new(image(state)?.identity(), now, &description, |block| send(state, block));
    state.writer = Some(writer.map_err(OpError::Host)?);
    Ok(())
}

/// Writes the contents of a file.
#[op2(fast)]
pub(crate) fn op_isolet_save_bytes(
    state: &mut OpState,
    #[buffer] bytes: &[u8],
) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    let mut writer = state.writer.take().ok_or(OpError::Phase("saving"))?;
    writer.write(bytes, |block| send(state, block)).map_err(OpError::Host)?;
    state.writer = Some(writer);
    Ok(())
}

/// Writes the memory, which is the last part.
#[op2(fast)]
pub(crate) fn op_isolet_save_memory(
    state: &mut OpState,
    #[buffer] memory: &[u8],
) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    let writer = state.writer.take().ok_or(OpError::Phase("saving"))?;
    let written = writer.finish(image(state)?.memory(), memory, |block| send(state, block));
    written.map_err(OpError::Host)
}

/// Tells the host why the session cannot be saved.
#[op2(fast)]
pub(crate) fn op_isolet_save_refused(state: &mut OpState, #[string] reason: String) {
    let state = state.borrow_mut::<State>();
    state.writer = None;
    state.host.call(HostRequest::SaveRefused(&reason));
}

/// Returns `true` if these bytes are the standard library.
#[op2(fast)]
pub(crate) fn op_isolet_is_stdlib(state: &OpState, #[buffer] bytes: &[u8]) -> bool {
    state.borrow::<State>().files.stdlib_zip == bytes
}

/// Begins to read a saved session. Returns its description.
#[op2]
#[string]
pub(crate) fn op_isolet_saved_description(state: &mut OpState) -> Result<String, OpError> {
    let mut reader = Reader::new();
    let state = state.borrow_mut::<State>();
    let description =
        reader.description(image(state)?.identity(), &|offset| receive(state, offset));
    let (then, description) = description.map_err(unreadable)?;
    state.clock = SessionClock { saved_at: Some(then), ahead: then - now(state) };
    state.reader = Some(reader);
    Ok(description)
}

/// Reads the contents of the next file.
#[op2(fast)]
pub(crate) fn op_isolet_saved_bytes(
    state: &mut OpState,
    #[buffer] into: &mut [u8],
) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    let mut reader = state.reader.take().ok_or(OpError::Phase("a saved session"))?;
    reader.read(into, &|offset| receive(state, offset)).map_err(unreadable)?;
    state.reader = Some(reader);
    Ok(())
}

/// Returns a library of the saved session as a module, if it is part of a package. Otherwise
/// returns undefined.
#[op2]
pub(crate) fn op_isolet_saved_library<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &OpState,
    #[string] path: String,
) -> Result<v8::Local<'s, v8::Value>, OpError> {
    let state = state.borrow::<State>();
    if state.reader.is_none() {
        return Err(OpError::Phase("a saved session"));
    }
    match state.host.call(HostRequest::Library(&path)) {
        HostReply::Bytes(code) => Ok(compile(scope, &code)?.into()),
        HostReply::Failed(reason) => Err(OpError::Host(reason)),
        _ => Ok(v8::undefined(scope).into()),
    }
}

/// Makes this memory the saved one, and ends reading. Without a memory, returns the length of the
/// saved one, in bytes.
#[op2(nofast)]
#[number]
pub(crate) fn op_isolet_saved_memory(
    state: &mut OpState,
    memory: v8::Local<'_, v8::Value>,
) -> Result<u64, OpError> {
    let state = state.borrow_mut::<State>();
    let mut reader = state.reader.take().ok_or(OpError::Phase("a saved session"))?;
    // Only if there is a memory to put them into.
    let aside = if memory.is_null() { None } else { state.pages_aside.take() };
    let source = |offset| receive(state, offset);
    let length = reader.memory_bytes(&source).map_err(unreadable)?;
    if memory.is_null() {
        state.reader = Some(reader);
        return Ok(length);
    }
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let failed = |error| OpError::Host(format!("the memory cannot be reset: {error}"));
    image(state)?.reset(memory, !state.is_confined, aside).map_err(failed)?;
    let store = memory.buffer().get_backing_store();
    let target = store.get(..usize::try_from(length).unwrap_or(usize::MAX));
    let target = target.ok_or(OpError::Phase("memory for the saved session"))?;
    let change = |at, part: &[u8]| {
        for (cells, differences) in target[at..].chunks(WORD).zip(part.chunks(WORD)) {
            // Most words of a changed page are as before.
            if differences != [0; WORD] {
                for (cell, difference) in cells.iter().zip(differences) {
                    cell.set(cell.get() ^ difference);
                }
            }
        }
    };
    let populate = |pages| populate(memory, pages);
    reader.memory(&source, populate, change).map_err(unreadable)?;
    Ok(length)
}

/// Returns the time of the host's monotonic clock, in milliseconds.
fn now(state: &State) -> f64 {
    match state.host.call(HostRequest::Now) {
        HostReply::Time(now) => now,
        _ => 0.0,
    }
}

fn image(state: &State) -> Result<&Image, OpError> {
    state.image.as_ref().ok_or(OpError::Phase("the memory image"))
}

fn send(state: &State, block: &[u8]) -> Result<(), String> {
    match state.host.call(HostRequest::Saved(block)) {
        HostReply::Failed(reason) => Err(reason),
        _ => Ok(()),
    }
}

fn receive(state: &State, offset: u64) -> Result<Vec<u8>, String> {
    match state.host.call(HostRequest::SavedPart { offset, max: PIECE_BYTES }) {
        HostReply::Bytes(bytes) => Ok(bytes),
        HostReply::Failed(reason) => Err(reason),
        _ => Err("the host has none".to_owned()),
    }
}

fn unreadable(reason: String) -> OpError {
    OpError::Host(format!("the saved session cannot be read: {reason}"))
}
