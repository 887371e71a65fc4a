//! Process isolation: an interpreter in a child process that holds nothing else and can do nothing
//! else.
//!
//! The [`parent`] keeps policy, files, sockets, tools and deadlines. The worker ([`child`]) has an
//! isolate, the image as a file that others share ([`crate::support::shared_file`]), one socket
//! over which the messages of [`crate::protocol`] go as frames ([`wire`]), and one for interrupts.

#[cfg(feature = "engine")]
mod child;
mod parent;
#[cfg(all(test, feature = "engine"))]
mod tests;
mod wire;

#[cfg(feature = "engine")]
pub(crate) use self::child::serve;
#[cfg(feature = "engine")]
pub(crate) use self::parent::this_program_can_be_a_worker;
pub(crate) use self::parent::{Launch, Templates, find_worker, launch};
#[cfg(feature = "engine")]
pub(crate) use self::wire::WORKER;
