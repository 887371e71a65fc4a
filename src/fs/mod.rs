//! The host's side of the guest's file system: what is mounted where, and every request beneath it.
//!
//! A request names a mount and a path beneath it, and the path is text of a hostile guest. It is
//! parsed once ([`path`]) and then walked name by name from a directory that was opened when the
//! mount was made ([`host_tree`]); no link is followed, and what is opened is asked for its type
//! before it is used. So there is no check of a path that a rename could outrun, and no path that
//! leads out.
//!
//! Nothing here changes a file of the host but [`read_write`], and an overlay's export, which only
//! writes into a directory that it made or found empty.

mod budget;
mod error;
mod events;
mod handles;
mod host_tree;
mod inodes;
mod limits;
mod mount;
mod moved;
mod overlap;
mod overlay;
mod path;
mod read_only;
mod read_write;
mod refused;
mod request;
mod root;
mod system;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod tree_volume;
mod volume;

pub(crate) use error::FileError;
pub(crate) use events::FileEvent;
pub(crate) use limits::FileLimits;
pub use mount::{Mount, MountMode};
pub use overlay::{ChangeKind, ExportDirectory, FileChange};
#[cfg(any(test, feature = "engine"))]
pub(crate) use request::{FileKind, FileStat, OpenFlags};
pub(crate) use request::{FileReply, FileRequest};
pub(crate) use system::FileSystem;
pub(crate) use table::MountTable;
pub(crate) use tree::{Tree, TreeEntry};
