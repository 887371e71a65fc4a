//! Stops a session's guest: counts against limits, the stop itself, and the requests that pass
//! afterwards.

mod counters;
mod gate;
mod stopper;

pub(crate) use counters::RunCounters;
pub(crate) use gate::{Gate, Passage};
pub(crate) use stopper::{Cause, RunStopper, Stop, Stoppable, Stopping};
