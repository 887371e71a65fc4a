//! Ops for clocks and immediate scheduling.

use deno_core::{OpState, op2};

use super::OpError;
use crate::data::limits::Limits;
use crate::isolate::state::State;
use crate::protocol::{HostReply, HostRequest};

/// Returns the milliseconds since the session started.
#[op2(fast)]
pub(crate) fn op_isolet_now(state: &OpState) -> f64 {
    time(state, HostRequest::Now) + state.borrow::<State>().clock_ahead
}

/// Returns the milliseconds since 1970.
#[op2(fast)]
pub(crate) fn op_isolet_wall_clock(state: &OpState) -> f64 {
    time(state, HostRequest::WallClock)
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

fn time(state: &OpState, request: HostRequest<'_>) -> f64 {
    match state.borrow::<State>().host.call(request) {
        HostReply::Time(milliseconds) => milliseconds,
        _ => 0.0,
    }
}
