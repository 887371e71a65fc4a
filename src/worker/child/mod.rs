//! The child side of workers: one isolate, in a process that locks itself down before it gets any
//! code.

mod fork_server;
mod lockdown;
pub(crate) mod mailbox;
mod read_ahead;
mod remote;
mod serve;

pub use lockdown::system_calls;
pub(crate) use serve::serve;
