//! The child side of workers: one isolate, in a process that locks itself down before it gets any
//! code.

mod copying;
mod fork_server;
mod guardian;
pub(crate) mod lockdown;
pub(crate) mod mailbox;
mod read_ahead;
mod readable;
mod remote;
mod serve;
mod session_fork;
mod socket_watch;
mod template_memory;

pub use lockdown::system_calls;
pub(crate) use serve::serve;
