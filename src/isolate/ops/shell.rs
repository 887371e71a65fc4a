//! Ops of the shell, a WebAssembly module that a session loads with its first command.

use deno_core::{OpState, op2, v8};

use super::OpError;
use super::wasm::compile;
use crate::isolate::order::Order;
use crate::isolate::signal;
use crate::isolate::state::State;

/// The shell. `shell/README.md` says how it is built.
static MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/isolet_shell.wasm"));

/// Returns the compiled shell.
#[op2]
pub(crate) fn op_isolet_shell_module<'s>(
    scope: &mut v8::PinScope<'s, '_>,
) -> Result<v8::Local<'s, v8::WasmModuleObject>, OpError> {
    compile(scope, MODULE)
}

/// Sets the address of the byte that makes the shell end its run. Returns `false` in a recorded
/// session: an interrupt has its place there, so the shell looks for it.
#[op2(nofast)]
pub(crate) fn op_isolet_watch_shell(
    state: &mut OpState,
    memory: v8::Local<'_, v8::Value>,
    #[number] at: u64,
) -> Result<bool, OpError> {
    if state.borrow_mut::<State>().order.as_mut().is_some_and(|order| order.recording().is_some()) {
        return Ok(false);
    }
    let memory = v8::Local::<v8::WasmMemoryObject>::try_from(memory)
        .map_err(|_| OpError::Argument("a memory"))?;
    let at = usize::try_from(at).map_err(|_| OpError::Argument("an address"))?;
    signal::watch_shell(memory, at);
    Ok(true)
}

/// Returns `true` if an interrupt ends the shell's run in a recorded session. Python takes it then.
#[op2(fast)]
pub(crate) fn op_isolet_shell_interrupted(state: &mut OpState) -> bool {
    let State { order, control, .. } = state.borrow_mut::<State>();
    let recording = order.as_mut().and_then(Order::recording);
    recording.is_some_and(|recording| recording.look_in_shell(control))
}
