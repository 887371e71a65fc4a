//! Ops that pass command frames to the guest and take its reports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deno_core::{OpState, op2};

use super::OpError;
use crate::isolate::order::Order;
use crate::isolate::state::State;
use crate::protocol::codec::CommandFrame;
use crate::protocol::{HostReply, HostRequest};
use crate::support::watchdog;

/// Reports of this many bytes go to the host at once. A shorter one costs less as a part of the
/// reply: one frame instead of two.
const LONG_REPORT_BYTES: usize = 64 << 10;

/// Moves the next part of the pending command frame into the guest's memory.
#[op2(fast)]
pub(crate) fn op_isolet_frame_take(
    state: &mut OpState,
    #[buffer] target: &mut [u8],
) -> Result<(), OpError> {
    let frame = &mut state.borrow_mut::<State>().frame;
    let (got, needed) = (target.len(), frame.left());
    let part = frame.take(got).ok_or(OpError::Size { got, needed })?;
    target.copy_from_slice(part);
    if frame.left() == 0 {
        *frame = CommandFrame::default();
    }
    Ok(())
}

/// Takes the guest's report on the current command or peek, in two parts. If there are several, the
/// last one counts.
#[op2(fast)]
pub(crate) fn op_isolet_report(
    state: &mut OpState,
    #[buffer] report: &[u8],
    #[buffer] text: &[u8],
) {
    let state = state.borrow_mut::<State>();
    let length = report.len() + text.len();
    let (observed, limit) = (length as u64, state.max_report_bytes);
    state.report = Some(if observed > limit {
        Err(format!("it has {observed} bytes, the limit is {limit}"))
    } else if length >= LONG_REPORT_BYTES && state.host.takes_report(report, text, state.peeks) {
        Ok(Vec::new())
    } else {
        Ok([report, text].concat())
    });
}

/// Takes the status with which the guest ended its interpreter.
#[op2(fast)]
pub(crate) fn op_isolet_exited(state: &mut OpState, #[smi] status: i32) {
    let state = state.borrow_mut::<State>();
    state.exited = Some(status);
    state.control.wake();
}

/// Takes the reason why the interpreter cannot continue.
#[op2(fast)]
pub(crate) fn op_isolet_died(state: &mut OpState, #[string] reason: String) {
    let state = state.borrow_mut::<State>();
    state.died.get_or_insert(reason);
    state.control.wake();
}

/// Takes the interrupt that the host requested. Returns `true` if there was one.
#[op2(fast)]
pub(crate) fn op_isolet_interrupted(state: &mut OpState) -> bool {
    let State { order, control, .. } = state.borrow_mut::<State>();
    match order.as_mut().and_then(Order::recording) {
        Some(recording) => recording.take_interrupt(control),
        None => control.take_interrupt(),
    }
}

/// Returns `true` if the session is only looked back at, so that nothing is to come after a run
/// that was stopped.
#[op2(fast)]
pub(crate) fn op_isolet_looked_back(state: &OpState) -> bool {
    matches!(state.borrow::<State>().host.call(HostRequest::IsLookedBack), HostReply::Done)
}

/// Returns the line at which a session that is looked back at stops, as `LINE FILE`; empty if it
/// does not.
#[op2]
#[string]
pub(crate) fn op_isolet_stop_line(state: &OpState) -> String {
    match state.borrow::<State>().host.call(HostRequest::StopLine) {
        HostReply::Bytes(line) => String::from_utf8(line).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Ends the replay of a session that is looked back at, which has come to its line.
#[op2(fast)]
pub(crate) fn op_isolet_end_look_back(state: &mut OpState) {
    let state = state.borrow_mut::<State>();
    state.host.call(HostRequest::EndLookBack);
    if let Some(recording) = state.recording() {
        recording.abandon();
    }
}

/// The longest time until an alarm.
const LONGEST_ALARM: Duration = Duration::from_secs(i32::MAX as u64 / 1000);

/// Sets the guest's only alarm, which is due in this many milliseconds, in place of the last one; 0
/// is none. When it is due, the guest looks for it at the next point where it can.
#[op2(fast)]
pub(crate) fn op_isolet_alarm_set(state: &mut OpState, milliseconds: f64) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    if let Some(order) = &mut state.order {
        order.set_alarm((milliseconds > 0.0).then_some(milliseconds));
        return Ok(());
    }
    state.alarm = None;
    state.control.set_alarm(milliseconds > 0.0);
    if milliseconds > 0.0 {
        let delay = Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(LONGEST_ALARM);
        let control = Arc::clone(&state.control);
        let ring = move || {
            control.ring();
            None
        };
        let armed = watchdog::arm(Instant::now() + delay.min(LONGEST_ALARM), Box::new(ring));
        state.alarm = Some(armed.map_err(|_| OpError::Argument("a time that the host can wait"))?);
    }
    Ok(())
}

/// Takes the alarm if it is due, or even before if `is_early`. Returns `true` if there was one.
#[op2(fast)]
pub(crate) fn op_isolet_alarm_take(state: &mut OpState, is_early: bool) -> bool {
    let state = state.borrow_mut::<State>();
    match &mut state.order {
        Some(order) => order.take_alarm(is_early),
        None => state.control.take_alarm(is_early),
    }
}
