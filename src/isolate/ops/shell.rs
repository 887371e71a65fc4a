//! Ops of the shell, a WebAssembly module that a session loads with its first command.

use deno_core::{op2, v8};

use super::OpError;
use super::wasm::compile;
use crate::isolate::signal;

/// The shell. `shell/README.md` says how it is built.
static MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/isolet_shell.wasm"));

/// Returns the compiled shell.
#[op2]
pub(crate) fn op_isolet_shell_module<'s>(
    scope: &mut v8::PinScope<'s, '_>,
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    compile(scope, MODULE)
}

/// Sets the address of the byte that makes the shell end its run.
#[op2(nofast)]
pub(crate) fn op_isolet_watch_shell(
    memory: v8::Local<'_, v8::Value>,
    #[number] at: u64,
) -> Result<(), OpError> {
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let at = usize::try_from(at).map_err(|_| OpError::Argument("an address"))?;
    signal::watch_shell(memory, at);
    Ok(())
}
