//! Process isolation: an interpreter in a child process that has no resources of the host.
//!
//! The [`parent`] keeps policy, files, sockets, tools and deadlines. The worker ([`child`]) has an
//! isolate, the image as a shared file ([`crate::support::shared_file`]), a socket that carries the
//! messages of [`crate::protocol`] as frames ([`wire`]), and a socket for interrupts.

mod child;
mod init;
mod parent;
#[cfg(test)]
mod tests;
mod wire;

pub use self::init::init;
pub(crate) use self::parent::{Launch, Templates, find_worker, launch};
