//! Process isolation: an interpreter in a child process that has no resources of the host.
//!
//! The [`parent`] keeps policy, files, sockets, tools and deadlines. The worker ([`child`]) has an
//! isolate, the image as a shared file ([`crate::support::shared_file`]), a socket that carries the
//! messages of [`crate::protocol`] as frames ([`wire`]), a socket for interrupts, and memory for
//! output that both share ([`wire::output_ring`]).

#[cfg(feature = "engine")]
mod child;
mod parent;
#[cfg(feature = "engine")]
#[cfg(test)]
mod tests;
pub(crate) mod wire;

#[cfg(feature = "engine")]
pub(crate) use self::child::serve;
#[cfg(feature = "engine")]
pub use self::child::system_calls;
#[cfg(test)]
pub(crate) use self::parent::START_TIME;
pub(crate) use self::parent::{Launch, Launched, Templates, check_event_loop, find_worker, launch};
#[cfg(feature = "engine")]
pub(crate) use self::parent::{start_ahead, this_program_can_be_a_worker};
pub(crate) use self::wire::Purpose;
#[cfg(feature = "engine")]
pub(crate) use self::wire::{FORKABLE, WORKER};
