//! Ops that boot an interpreter. All but one work only during the boot and fail afterwards.

use std::sync::Arc;

use bytes::Bytes;
use deno_core::{OpState, op2, v8};

use super::OpError;
use crate::image::PYTHON;
use crate::isolate::image::{Library, SavedMemory};
use crate::isolate::restore::copy_over;
use crate::isolate::signal;
use crate::isolate::state::{EntryPoints, State};

/// Stores our JavaScript's entry points.
#[op2]
pub(crate) fn op_isolet_entry_points(
    state: &mut OpState,
    #[scoped] start: v8::Global<v8::Function>,
    #[scoped] handle: v8::Global<v8::Function>,
    #[scoped] interrupt: v8::Global<v8::Function>,
    #[scoped] stalled: v8::Global<v8::Function>,
    #[scoped] peek: v8::Global<v8::Function>,
    #[scoped] turn: v8::Global<v8::Function>,
    #[scoped] restore: v8::Global<v8::Function>,
) -> Result<(), OpError> {
    let state = booting(state)?;
    let functions = EntryPoints { start, handle, interrupt, stalled, peek, turn, restore };
    state.entry_points = Some(functions);
    Ok(())
}

/// Returns the compiled CPython.
#[op2]
pub(crate) fn op_isolet_wasm_module<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &mut OpState,
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    let module = booting(state)?.module.take().ok_or(OpError::Phase("the interpreter's module"))?;
    let broken = || OpError::Host("the interpreter's WebAssembly does not compile".to_owned());
    module.module(scope).ok_or_else(broken)
}

/// Returns the symbols that packages link to. Also works after the boot.
#[op2]
#[string]
pub(crate) fn op_isolet_exports(state: &OpState) -> String {
    String::from_utf8_lossy(&state.borrow::<State>().files.exports).into_owned()
}

/// Returns the standard library. All of its pages count as the guest's memory, because the guest
/// may write to them.
#[op2]
pub(crate) fn op_isolet_stdlib<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &mut OpState,
) -> Result<v8::Local<'s, v8::ArrayBuffer>, OpError> {
    let state = booting(state)?;
    let bytes = &state.files.stdlib_zip;
    state.memory.take(bytes.len() as u64).map_err(|error| OpError::Host(error.to_string()))?;
    let contents = match &state.image {
        Some(image) => image.stdlib(),
        None => Ok(v8::ArrayBuffer::new_backing_store_from_vec(bytes.to_vec())),
    };
    let failed = |error| OpError::Host(format!("there is no standard library: {error}"));
    let contents = contents.map_err(failed)?.make_shared();
    Ok(v8::ArrayBuffer::with_backing_store(scope, &contents))
}

/// Returns our Python modules: names and sources.
#[op2]
#[serde]
pub(crate) fn op_isolet_python_sources() -> Vec<(String, String)> {
    PYTHON.iter().map(|(name, source)| (String::from(*name), String::from(*source))).collect()
}

/// Returns the modules that an interpreter must import before its image is taken.
#[op2]
#[serde]
pub(crate) fn op_isolet_preloaded(state: &OpState) -> Vec<String> {
    state.borrow::<State>().preload.clone()
}

/// Confines the process, if it is told to. Called before anything of a package is used: its code,
/// or what the image has of it.
#[op2(fast)]
pub(crate) fn op_isolet_confine(state: &mut OpState) -> Result<(), OpError> {
    let state = booting(state)?;
    let Some(confine) = state.confine.take() else { return Ok(()) };
    let control = Arc::clone(&state.control);
    let confined = state.inbox.attach().and_then(|()| confine(control));
    state.is_confined = true;
    confined.map_err(|error| OpError::Host(format!("the process cannot be confined: {error}")))
}

/// Stores a dynamic library for the image.
#[op2(fast)]
pub(crate) fn op_isolet_library_keep(
    state: &mut OpState,
    #[string] name: String,
    #[buffer] wasm: &[u8],
) -> Result<(), OpError> {
    let library = Library { name, wasm: Bytes::copy_from_slice(wasm) };
    booting(state)?.libraries.push(library);
    Ok(())
}

/// Returns a dynamic library of the image.
#[op2]
pub(crate) fn op_isolet_library<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &mut OpState,
    #[string] name: String,
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    let state = booting(state)?;
    let image = state.image.as_ref().ok_or(OpError::Phase("the memory image"))?;
    let unknown = || OpError::Host(format!("the library `{name}` is not in the image"));
    let (library, code) = image.library(&name).ok_or_else(unknown)?;
    let module = state.modules.library(scope, &library, code);
    module.ok_or_else(|| OpError::Host(format!("the library `{name}` does not compile")))
}

/// Returns the length of the memory from which the image was taken, in bytes.
#[op2(fast)]
#[number]
pub(crate) fn op_isolet_image_length(state: &mut OpState) -> Result<u64, OpError> {
    let image = booting(state)?.image.as_ref().ok_or(OpError::Phase("the memory image"))?;
    Ok(image.memory_bytes() as u64)
}

#[op2]
#[string]
pub(crate) fn op_isolet_image_config(state: &mut OpState) -> Result<String, OpError> {
    let image = booting(state)?.image.as_ref().ok_or(OpError::Phase("the memory image"))?;
    Ok(String::from_utf8_lossy(&image.config()).into_owned())
}

/// Fills the interpreter's memory with its initial contents.
#[op2(nofast)]
pub(crate) fn op_isolet_memory_begin(
    state: &mut OpState,
    memory: v8::Local<'_, v8::Value>,
) -> Result<(), OpError> {
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let state = booting(state)?;
    let begun = if let Some(image) = &state.image {
        image.begin(memory)
    } else {
        let data = &state.files.data;
        copy_over(memory, data.len(), data, &[(0, 0..data.len())])
    };
    begun.map_err(|error| OpError::Host(format!("the memory has no data: {error}")))
}

/// Fills the interpreter's memory with the contents of the image.
#[op2(nofast)]
pub(crate) fn op_isolet_image_restore(
    state: &mut OpState,
    memory: v8::Local<'_, v8::Value>,
) -> Result<(), OpError> {
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let state = booting(state)?;
    let image = state.image.as_ref().ok_or(OpError::Phase("the memory image"))?;
    let failed = |error| OpError::Host(format!("the memory image cannot be restored: {error}"));
    image.restore(memory, !state.is_confined).map_err(failed)
}

/// Sets the address of the byte that makes CPython check for an interrupt.
#[op2(nofast)]
pub(crate) fn op_isolet_watch_signals(
    state: &mut OpState,
    memory: v8::Local<'_, v8::Value>,
    #[number] at: u64,
) -> Result<(), OpError> {
    booting(state)?;
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let at = usize::try_from(at).map_err(|_| OpError::Argument("an address"))?;
    signal::watch(memory, at);
    Ok(())
}

/// Takes the memory of an interpreter that was booted to make the image.
#[op2(fast)]
pub(crate) fn op_isolet_image_save(
    state: &mut OpState,
    #[buffer] memory: &[u8],
    #[string] config: String,
) -> Result<(), OpError> {
    let state = booting(state)?;
    let libraries = std::mem::take(&mut state.libraries);
    state.saved = Some(SavedMemory::new(memory, &config, libraries));
    Ok(())
}

/// Returns the state while the isolate boots, and fails afterwards.
pub(super) fn booting(state: &mut OpState) -> Result<&mut State, OpError> {
    let state = state.borrow_mut::<State>();
    if state.booted { Err(OpError::Phase("what serves the boot")) } else { Ok(state) }
}
