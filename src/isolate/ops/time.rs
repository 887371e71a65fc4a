//! Ops for clocks and immediate scheduling.

use std::sync::Arc;

use deno_core::{OpState, op2};

use super::OpError;
use crate::data::determinism::Clocks;
use crate::data::limits::Limits;
use crate::isolate::order::Order;
use crate::isolate::state::State;
use crate::protocol::{HostReply, HostRequest};

/// Returns the milliseconds since the session started.
#[op2(fast)]
pub(crate) fn op_isolet_now(state: &mut OpState) -> f64 {
    let state = state.borrow_mut::<State>();
    match &mut state.order {
        Some(order) => order.now(),
        None => time(state, HostRequest::Now) + state.clock.ahead,
    }
}

/// Returns the milliseconds since 1970.
#[op2(fast)]
pub(crate) fn op_isolet_wall_clock(state: &mut OpState) -> f64 {
    let state = state.borrow_mut::<State>();
    match &mut state.order {
        Some(order) => order.wall_clock(),
        None => time(state, HostRequest::WallClock),
    }
}

/// Makes the session deterministic, with the two halves of a seed and the time of day at which it
/// starts, in milliseconds since 1970. One that is deterministic keeps its time. `clocks` is the
/// [number](Clocks::number) of what its clocks go by. Returns `true` unless it has this seed
/// already.
#[op2(fast)]
pub(crate) fn op_isolet_order(
    state: &mut OpState,
    high: u32,
    low: u32,
    started: f64,
    clocks: u32,
) -> bool {
    let seed = u64::from(high) << 32 | u64::from(low);
    let state = state.borrow_mut::<State>();
    let is_recorded = clocks != Clocks::Virtual.number();
    // A session that was saved has told a time before. A recorded one goes on from just that, so
    // that it does each time that it is replayed.
    let now = match state.clock.saved_at {
        None => 0.0,
        Some(saved_at) if is_recorded => saved_at,
        Some(_) => time(state, HostRequest::Now) + state.clock.ahead,
    };
    let is_other = match &mut state.order {
        Some(order) => order.reseed(seed),
        order => {
            *order = Some(Order::new(seed, started, now));
            true
        }
    };
    let State { host, log, order, .. } = state;
    if let (true, Some(order)) = (is_recorded, order) {
        if clocks == Clocks::RecordedReal.number() {
            order.go_by_real_time(started);
        }
        order.record(Arc::clone(host), Arc::clone(log));
    }
    is_other
}

/// Returns what a deterministic session goes on from; nothing for another one.
#[op2]
#[string]
pub(crate) fn op_isolet_order_state(state: &OpState) -> String {
    state.borrow::<State>().order.as_ref().map(Order::state).unwrap_or_default()
}

/// Goes on from what another session was told.
#[op2(fast)]
pub(crate) fn op_isolet_order_resume(
    state: &mut OpState,
    #[string] saved: String,
) -> Result<(), OpError> {
    let saved = Order::resume(&saved).ok_or(OpError::Argument("the state of an order"))?;
    match &mut state.borrow_mut::<State>().order {
        Some(order) => order.go_on_from(saved),
        order => *order = Some(saved),
    }
    Ok(())
}

/// The interpreter of a deterministic session has made the steps between two checks for signals.
/// Returns `true` if the alarm is due.
#[op2(fast)]
pub(crate) fn op_isolet_order_steps(state: &mut OpState) -> bool {
    state.borrow_mut::<State>().order.as_mut().is_some_and(Order::steps)
}

/// The guest of a deterministic session waits for the answer to a call.
#[op2(fast)]
pub(crate) fn op_isolet_order_expect(state: &mut OpState, #[smi] call: u32) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    let answerer = state.calls.answerer(call);
    let answerer = answerer.ok_or(OpError::Phase("the answer to a cancelled call"))?;
    if let Some(order) = &mut state.order {
        order.expect(call, answerer);
    }
    Ok(())
}

/// Permits one more timer, if `pending` timers are below the limit.
#[op2(fast)]
pub(crate) fn op_isolet_timer(pending: u32) -> Result<(), OpError> {
    let limit = Limits::PENDING_TIMERS;
    if pending < limit { Ok(()) } else { Err(OpError::Timers { limit, needed: pending + 1 }) }
}

/// Resolves on the next turn of the event loop: the intended cost of a timer of 0 ms.
#[op2(async(deferred), fast)]
pub(crate) fn op_isolet_tick() -> impl Future<Output = ()> {
    std::future::ready(())
}

fn time(state: &State, request: HostRequest<'_>) -> f64 {
    match state.host.call(request) {
        HostReply::Time(milliseconds) => milliseconds,
        _ => 0.0,
    }
}
