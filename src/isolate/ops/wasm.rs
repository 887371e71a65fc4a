//! The op that compiles WebAssembly, and V8's refusal to compile any other way.

use deno_core::{OpState, op2, v8};

use super::OpError;
use crate::isolate::state::State;
use crate::isolate::trampoline::is_trampoline;
use crate::protocol::{HostReply, HostRequest};

/// The largest module that is looked at, in bytes: a few times the largest of Pyodide's packages.
const MAX_MODULE_BYTES: usize = 128 << 20;

/// Makes every way to compile WebAssembly from JavaScript throw, also before there is a guest.
pub(crate) fn refuse_compilation(isolate: &mut v8::Isolate) {
    extern "C" fn refuse(_context: v8::Local<v8::Context>, _source: v8::Local<v8::String>) -> bool {
        false
    }
    isolate.set_allow_wasm_code_generation_callback(refuse);
}

/// Compiles a module: Pyodide's own while it boots, then trampolines and what the host has
/// verified.
#[op2]
pub(crate) fn op_isolet_wasm_compile<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &OpState,
    source: v8::Local<'s, v8::Value>,
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    // What is compiled are the bytes that were checked; the guest keeps no hand on this copy.
    let bytes = copy(source)?;
    let state = state.borrow::<State>();
    if state.booted && !is_trampoline(&bytes) {
        match state.host.call(HostRequest::VerifyModule(&bytes)) {
            HostReply::Done => {}
            HostReply::Refused(_, message) => return Err(OpError::Host(message)),
            _ => return Err(OpError::Phase("compiling WebAssembly")),
        }
    }
    v8::tc_scope!(let attempt, scope);
    if let Some(module) = v8::WasmModuleObject::compile(attempt, &bytes) {
        return Ok(module);
    }
    // The message, since to make text of the exception would run the guest's `toString`.
    let message =
        attempt.message().map(|message| message.get(attempt).to_rust_string_lossy(attempt));
    Err(OpError::Host(message.unwrap_or_else(|| "the module does not compile".to_owned())))
}

/// Copies the bytes of an `ArrayBuffer`, or of the part of one that a view shows.
fn copy(source: v8::Local<'_, v8::Value>) -> Result<Vec<u8>, OpError> {
    if let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(source) {
        let mut bytes = vec![0; bounded(view.byte_length())?];
        let copied = view.copy_contents(&mut bytes);
        bytes.truncate(copied);
        return Ok(bytes);
    }
    if let Ok(buffer) = v8::Local::<v8::ArrayBuffer>::try_from(source) {
        bounded(buffer.byte_length())?;
        return Ok(buffer.get_backing_store().iter().map(std::cell::Cell::get).collect());
    }
    Err(OpError::Argument("a buffer"))
}

fn bounded(length: usize) -> Result<usize, OpError> {
    if length <= MAX_MODULE_BYTES {
        Ok(length)
    } else {
        Err(OpError::TooLarge { got: length, limit: MAX_MODULE_BYTES })
    }
}
