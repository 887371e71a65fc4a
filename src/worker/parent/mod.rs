//! The parent side of workers: starts them, answers their frames, and stops them. Every frame is
//! treated as hostile.

mod event_loop;
mod find;
mod forks;
mod head_start;
mod launch;
pub(crate) mod link;
mod memory_kills;
pub(crate) mod process;
mod reader;
mod reader_lease;
mod readers;
mod spawner;
pub(crate) mod strays;
pub(crate) mod supervision;
mod template;
mod templates;
pub(crate) mod watch;
mod writer;

pub(crate) use event_loop::check_event_loop;
pub(crate) use find::find_worker;
#[cfg(feature = "engine")]
pub(crate) use find::this_program_can_be_a_worker;
#[cfg(feature = "engine")]
pub(crate) use head_start::start_ahead;
#[cfg(test)]
pub(crate) use launch::START_TIME;
pub(crate) use launch::{Launch, Launched, launch};
pub(crate) use templates::Templates;
