//! Process isolation: an interpreter in a child process that holds nothing else and can do nothing else.
//!
//! The parent (`launch.rs`, `link.rs`, `reader.rs`, `writer.rs`) keeps policy, files, sockets, tools and deadlines. The worker
//! (`serve.rs`, `mailbox.rs`, `remote.rs`) has an isolate, the image as a file that others share ([`crate::support::shared_file`]), one socket
//! over which the messages of [`crate::waist`] go as frames ([`wire`]), and one for interrupts. Before it gets any code it locks itself
//! down ([`lockdown`]). The parent takes every frame of it for hostile.

mod find;
mod incoming;
mod init;
mod launch;
mod link;
mod lockdown;
mod mailbox;
mod outgoing;
mod process;
mod read_ahead;
mod reader;
mod remote;
mod serve;
mod spawner;
mod template;
mod templates;
#[cfg(test)]
mod tests;
mod watch;
mod wire;
mod writer;

pub(crate) use self::find::find_worker;
pub use self::init::init;
pub(crate) use self::launch::{Launch, launch};
pub(crate) use self::templates::Templates;
