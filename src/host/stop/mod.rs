//! Stopping a session's guest: what a run may do how often, who ends it, and what it reaches
//! afterwards.

mod counters;
mod gate;
mod stopper;

pub(crate) use counters::RunCounters;
pub(crate) use gate::{Gate, Passage};
pub(crate) use stopper::{Cause, RunStopper, Stop, Stoppable, Stopping};
