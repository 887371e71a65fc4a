//! The public API: engines make sandboxes, sandboxes make sessions, sessions run code.

pub(crate) mod assets;
mod auto_traits;
pub mod blocking;
#[cfg(test)]
mod blocking_methods;
mod bundling;
pub mod copied_files;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod documented_limits;
pub(crate) mod engine;
pub mod host_path;
pub(crate) mod init;
pub(crate) mod journal;
pub(crate) mod permissions;
mod policy;
pub(crate) mod replay;
pub(crate) mod sandbox;
pub(crate) mod session;
pub(crate) mod stream;
