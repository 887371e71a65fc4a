//! Ops that carry command frames in and reports out.

use deno_core::{OpState, op2};

use super::{OpError, fill};
use crate::engine::isolate::State;
use crate::frame;

/// Moves the pending command frame into the guest's memory.
#[op2(fast)]
pub(crate) fn op_isolet_frame_take(
    state: &mut OpState,
    #[buffer] target: &mut [u8],
) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    let frame = state.frame.take().ok_or(OpError::Phase("a command frame"))?;
    fill(target, &frame)
}

/// Takes the guest's report on the command.
#[op2(fast)]
pub(crate) fn op_isolet_reply(state: &mut OpState, #[buffer] report: &[u8]) {
    let state = state.borrow_mut::<State>();
    let limit = frame::max_report_bytes(state.max_value_bytes);
    let report = if report.len() as u64 > limit {
        Err(format!("it has {} bytes, the limit is {limit}", report.len()))
    } else {
        frame::decode(report)
    };
    state.reply = Some(report);
}

/// Takes the status that the guest ended its interpreter with.
#[op2(fast)]
pub(crate) fn op_isolet_exited(state: &mut OpState, #[smi] status: i32) {
    state.borrow_mut::<State>().exited = Some(status);
}

/// Takes the interrupt that the host asked for, if it did. Called by every signal check of CPython.
#[op2(fast)]
pub(crate) fn op_isolet_interrupted(state: &OpState) -> bool {
    state.borrow::<State>().control.take_interrupt()
}
