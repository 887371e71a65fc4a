//! The op that compiles WebAssembly; V8 refuses every other way of compiling it.

use deno_core::{OpState, op2, v8};

use super::OpError;
use crate::isolate::native_code::is_deserializing;
use crate::isolate::state::State;
use crate::isolate::trampoline::is_trampoline;
use crate::protocol::{HostReply, HostRequest};

/// The maximum size of a module, in bytes: a few times the largest in Pyodide's packages.
const MAX_MODULE_BYTES: usize = 128 << 20;

/// Makes every other way of compiling WebAssembly from JavaScript throw, even before there is a
/// guest.
pub(crate) fn refuse_compilation(isolate: &mut v8::Isolate) {
    extern "C" fn decide(_context: v8::Local<v8::Context>, _source: v8::Local<v8::String>) -> bool {
        is_deserializing()
    }
    isolate.set_allow_wasm_code_generation_callback(decide);
}

/// Compiles a module: Pyodide's own during the boot, later trampolines and modules that the host
/// has verified.
#[op2]
pub(crate) fn op_isolet_wasm_compile<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &OpState,
    source: v8::Local<'s, v8::Value>,
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    // The bytes that were checked are the bytes that are compiled: the guest cannot change this
    // copy.
    let bytes = copy(source)?;
    let state = state.borrow::<State>();
    if state.booted && !is_trampoline(&bytes) {
        match state.host.call(HostRequest::VerifyModule(&bytes)) {
            HostReply::Done => {}
            HostReply::Refused(_, message) => return Err(OpError::Host(message)),
            _ => return Err(OpError::Phase("compiling WebAssembly")),
        }
    }
    compile(scope, &bytes)
}

/// Compiles a module that the guest may have.
pub(super) fn compile<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    bytes: &[u8],
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    v8::tc_scope!(let attempt, scope);
    if let Some(module) = v8::WasmModuleObject::compile(attempt, bytes) {
        return Ok(module);
    }
    // Takes the message, because converting the exception to text would run the guest's `toString`.
    let message =
        attempt.message().map(|message| message.get(attempt).to_rust_string_lossy(attempt));
    Err(OpError::Host(message.unwrap_or_else(|| "the module does not compile".to_owned())))
}

/// Copies the bytes of an `ArrayBuffer`, or of the part that a view covers.
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
