//! The host's side of the guest's file system: the mounts, and every request beneath them.
//!
//! A request names a mount and a path beneath it. The path is text from a hostile guest. It is
//! parsed once ([`path`]) and then walked name by name, from a directory that was opened when the
//! mount was made ([`host_tree`]). No link is followed, and the type of an opened file is checked
//! before it is used. No path is checked before it is used, so a rename cannot invalidate a check,
//! and no path leads out of the mount.
//!
//! Only [`read_write`] changes files of the host, and an overlay's export, which writes only into a
//! directory that it created or found empty.

mod budget;
mod changed;
mod error;
mod events;
mod handles;
mod host_place;
mod host_tree;
mod inodes;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(not(target_os = "linux"))]
#[path = "kernel_unsupported.rs"]
mod kernel;
mod limits;
pub(crate) mod mount;
mod moved;
mod overlap;
mod overlay;
pub(crate) mod path;
mod read_only;
mod read_write;
mod request;
mod root;
mod sensitive_paths;
mod system;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod tree_volume;
mod volume;

pub(crate) use changed::Before;
pub(crate) use error::FileError;
pub(crate) use events::FileEvent;
pub(crate) use host_place::HostPlace;
pub(crate) use limits::FileLimits;
pub use mount::{Mount, MountMode};
pub use overlay::{ChangeKind, ExportDirectory, FileChange};
pub(crate) use overlay::{SavedLimits, SavedOverlay};
#[cfg(any(test, feature = "engine"))]
pub(crate) use request::{FileKind, FileStat, OpenFlags};
pub(crate) use request::{FileReply, FileRequest};
pub(crate) use root::Identity;
pub(crate) use system::{FileSystem, Place, no_overlay};
pub(crate) use table::MountTable;
pub(crate) use tree::{Tree, TreeEntry};
