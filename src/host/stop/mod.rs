//! Stops a session's guest: times and counts against limits, the stop itself, and the requests that
//! pass afterwards.

mod clock;
mod counters;
mod gate;
mod stopper;

pub use clock::ClockPause;
pub(crate) use clock::{CallClock, RunClock};
pub(crate) use counters::RunCounters;
pub(crate) use gate::{Gate, Passage};
pub(crate) use stopper::{Cause, RunStopper, Stop, Stoppable, Stopping};
