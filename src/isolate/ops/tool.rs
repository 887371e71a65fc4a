//! Ops for tool calls. The name of the tool is a separate argument.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use deno_core::{OpState, op2};

use super::{OpError, fill};
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::isolate::order::Answerer;
use crate::isolate::order::recording::InPlace;
use crate::isolate::state::State;
use crate::protocol::codec;
use crate::protocol::{HostReply, HostRequest};

/// The maximum length of a name that is looked up, in bytes.
const MAX_NAME_BYTES: usize = crate::protocol::NAME_BYTES;

/// Calls a tool and returns the number of the call.
#[op2(fast)]
pub(crate) fn op_isolet_tool_call(
    state: &mut OpState,
    #[buffer] tool: &[u8],
    #[buffer] arguments: &[u8],
) -> Result<u32, OpError> {
    if tool.len() > MAX_NAME_BYTES {
        return Err(OpError::TooLarge { got: tool.len(), limit: MAX_NAME_BYTES });
    }
    // No tool has a name that is not UTF-8, so a lossy conversion cannot match one.
    let tool = &*String::from_utf8_lossy(tool);
    let state = state.borrow_mut::<State>();
    let call = state.open_call(Answerer::Host).ok_or(OpError::Phase("another call"))?;
    answer_refusal(state, call, |state| {
        state.host.call(HostRequest::CallTool { call, tool, arguments })
    })?;
    Ok(call)
}

/// Submits a result and returns the number of the call, whose answer is available at once.
#[op2(fast)]
pub(crate) fn op_isolet_submit(
    state: &mut OpState,
    form: u32,
    #[buffer] fields: &[u8],
) -> Result<u32, OpError> {
    let state = state.borrow_mut::<State>();
    let call = state.open_call(Answerer::Host).ok_or(OpError::Phase("another call"))?;
    answer_refusal(state, call, |state| state.host.call(HostRequest::Submit { form, fields }))?;
    state.calls.answer(call, codec::encode_answer(Ok(Value::None), u64::MAX).into());
    Ok(call)
}

/// Requests the package that has a module and returns the number of the call.
#[op2(fast)]
pub(crate) fn op_isolet_import(
    state: &mut OpState,
    #[string] module: String,
) -> Result<u32, OpError> {
    let state = state.borrow_mut::<State>();
    let call = state.open_call(Answerer::Host).ok_or(OpError::Phase("another call"))?;
    answer_refusal(state, call, |state| {
        state.host.call(HostRequest::Import { call, module: &module })
    })?;
    Ok(call)
}

/// Waits for the answer to a call and returns its length in bytes.
#[op2]
pub(crate) async fn op_isolet_tool_wait(
    state: Rc<RefCell<OpState>>,
    #[smi] call: u32,
) -> Result<u32, OpError> {
    let waiting = state.borrow_mut().borrow_mut::<State>().calls.wait(call);
    let cancelled = || OpError::Phase("the answer to a cancelled call");
    let length = match waiting.ok_or_else(cancelled)? {
        Ok(length) => length,
        Err(answer) => answer.await.map_err(|_| cancelled())?,
    };
    // An answer fits into the guest's memory, which has less than 4 GiB.
    Ok(u32::try_from(length).unwrap_or(u32::MAX))
}

/// Waits briefly for the answer to a call, and moves it into the guest's memory if it has arrived
/// and fits.
#[op2(fast)]
pub(crate) fn op_isolet_tool_soon(
    state: &mut OpState,
    #[smi] call: u32,
    #[buffer] target: &mut [u8],
) -> bool {
    let state = state.borrow_mut::<State>();
    if !state.wait_for_answer(call) {
        return false;
    }
    let Some(answer) = state.calls.take_short(call, target.len()) else { return false };
    target[..answer.len()].copy_from_slice(&answer);
    true
}

/// Blocks until the answer to a call arrives, for a guest that cannot be suspended, and returns its
/// length in bytes. Returns -1 after `timeout` milliseconds, unless that is negative, and -2 if the
/// guest must handle an interrupt first.
#[op2(fast)]
pub(crate) fn op_isolet_tool_block(
    state: &mut OpState,
    #[smi] call: u32,
    timeout: f64,
) -> Result<f64, OpError> {
    const EXPIRED: f64 = -1.0;
    const INTERRUPTED: f64 = -2.0;
    let state = state.borrow_mut::<State>();
    // A negative timeout means no limit.
    let limit = Duration::try_from_secs_f64(timeout / 1000.0).unwrap_or(Duration::MAX);
    match state.block_on_answer(call, limit) {
        Some(InPlace::Expired) => Ok(EXPIRED),
        Some(InPlace::Interrupted | InPlace::NotSoon) => Ok(INTERRUPTED),
        None => {
            let length = state.calls.answer_length(call);
            let length = length.ok_or(OpError::Phase("the answer to a cancelled call"))?;
            // An answer fits into the guest's memory, which has less than 4 GiB.
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
            let length = length as f64;
            Ok(length)
        }
    }
}

/// Moves the answer to a call into the guest's memory.
#[op2(fast)]
pub(crate) fn op_isolet_tool_take(
    state: &mut OpState,
    #[smi] call: u32,
    #[buffer] target: &mut [u8],
) -> Result<(), OpError> {
    let answer = state.borrow_mut::<State>().calls.take(call);
    let answer = answer.ok_or(OpError::Phase("the answer to this call"))?;
    fill(target, &answer)
}

/// Records that nobody waits for the answer to a call any more. 0 is the most recent call, whose
/// number the guest has not received.
#[op2(fast)]
pub(crate) fn op_isolet_tool_cancel(state: &mut OpState, #[smi] call: u32) {
    let state = state.borrow_mut::<State>();
    let call = if call == 0 { state.calls.last() } else { call };
    if let Some(order) = &mut state.order {
        order.forget(call);
    }
    if state.calls.cancel(call) {
        state.host.call(HostRequest::CancelCall(call));
    }
}

/// Makes an answer for a call that the host refuses at once.
pub(super) fn answer_refusal(
    state: &mut State,
    call: u32,
    ask: impl FnOnce(&State) -> HostReply,
) -> Result<(), OpError> {
    match ask(state) {
        HostReply::Failed(reason) => {
            state.calls.cancel(call);
            return Err(OpError::Host(reason));
        }
        HostReply::Refused(class, message) => {
            let error = ToolError::new(class, message);
            state.calls.answer(call, codec::encode_answer(Err(error), u64::MAX).into());
        }
        _ => {}
    }
    Ok(())
}
