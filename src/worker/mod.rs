//! Process isolation: an interpreter in a child process that holds nothing else and can do nothing
//! else.
//!
//! The [`parent`] keeps policy, files, sockets, tools and deadlines. The worker ([`child`]) has an
//! isolate, the image as a file that others share ([`crate::support::shared_file`]), one socket
//! over which the messages of [`crate::protocol`] go as frames ([`wire`]), and one for interrupts.

mod child;
mod init;
mod parent;
#[cfg(test)]
mod tests;
mod wire;

pub use self::child::system_calls;
pub use self::init::init;
pub(crate) use self::parent::{Launch, Templates, find_worker, launch};
