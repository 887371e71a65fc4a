//! The guest's file requests and their replies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A file request. `mount` is the number of the mount, in the order in which they were added.
/// `path` is relative to its root, with `/` between names, and empty for the root. No link is
/// followed. All of it is hostile. Reading is a separate function,
/// [`FileSystem::read`](super::FileSystem::read).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum FileRequest<'a> {
    /// Describes the file at a path.
    Stat { mount: u32, path: &'a str },
    /// Opens a regular file.
    Open { mount: u32, path: &'a str, flags: OpenFlags },
    /// Describes an open file.
    StatFile { file: u32 },
    /// Writes at an offset. A file opened for appending ignores the offset.
    Write {
        file: u32,
        offset: u64,
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// Truncates or extends an open file.
    SetFileSize { file: u32, size: u64 },
    /// Truncates or extends the file at a path.
    SetSize { mount: u32, path: &'a str, size: u64 },
    /// Waits until all writes have reached the host's device.
    Sync { file: u32 },
    /// Closes an open file.
    Close { file: u32 },
    /// Lists a directory, sorted. Omits names that are not UTF-8, and everything except files,
    /// directories and links.
    List { mount: u32, path: &'a str },
    /// Creates a directory with these permission bits, as far as the mount allows them.
    MakeDirectory { mount: u32, path: &'a str, mode: u32 },
    /// Removes an empty directory.
    RemoveDirectory { mount: u32, path: &'a str },
    /// Removes a file or a link.
    Remove { mount: u32, path: &'a str },
    /// Renames a file, directory or link, replacing the target as POSIX does.
    Rename { mount: u32, from: &'a str, to: &'a str },
    /// Creates a symbolic link.
    MakeLink { mount: u32, path: &'a str, target: &'a str },
    /// Reads a symbolic link.
    ReadLink { mount: u32, path: &'a str },
    /// Sets the times of a file or directory, in milliseconds since 1970.
    SetTimes { mount: u32, path: &'a str, accessed_ms: f64, modified_ms: f64 },
    /// Sets the permission bits of a file or directory.
    SetMode { mount: u32, path: &'a str, mode: u32 },
}

impl FileRequest<'_> {
    /// Returns `true` if it may change files.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            Self::Open { flags, .. } => flags.create || flags.truncate,
            Self::Write { .. }
            | Self::SetFileSize { .. }
            | Self::SetSize { .. }
            | Self::MakeDirectory { .. }
            | Self::RemoveDirectory { .. }
            | Self::Remove { .. }
            | Self::Rename { .. }
            | Self::MakeLink { .. }
            | Self::SetTimes { .. }
            | Self::SetMode { .. } => true,
            Self::Stat { .. }
            | Self::StatFile { .. }
            | Self::Sync { .. }
            | Self::Close { .. }
            | Self::List { .. }
            | Self::ReadLink { .. } => false,
        }
    }

    /// Returns the mount that it is about, or the open file.
    pub(crate) fn subject(&self) -> Subject {
        match *self {
            Self::Stat { mount, .. }
            | Self::Open { mount, .. }
            | Self::SetSize { mount, .. }
            | Self::List { mount, .. }
            | Self::MakeDirectory { mount, .. }
            | Self::RemoveDirectory { mount, .. }
            | Self::Remove { mount, .. }
            | Self::Rename { mount, .. }
            | Self::MakeLink { mount, .. }
            | Self::ReadLink { mount, .. }
            | Self::SetTimes { mount, .. }
            | Self::SetMode { mount, .. } => Subject::Mount(mount),
            Self::StatFile { file }
            | Self::Write { file, .. }
            | Self::SetFileSize { file, .. }
            | Self::Sync { file }
            | Self::Close { file } => Subject::File(file),
        }
    }

    /// Returns the path that it is about, if it has one.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::Stat { path, .. }
            | Self::Open { path, .. }
            | Self::SetSize { path, .. }
            | Self::List { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::RemoveDirectory { path, .. }
            | Self::Remove { path, .. }
            | Self::MakeLink { path, .. }
            | Self::ReadLink { path, .. }
            | Self::SetTimes { path, .. }
            | Self::SetMode { path, .. }
            | Self::Rename { from: path, .. } => Some(path),
            Self::StatFile { .. }
            | Self::Write { .. }
            | Self::SetFileSize { .. }
            | Self::Sync { .. }
            | Self::Close { .. } => None,
        }
    }
}

impl fmt::Display for FileRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self {
            Self::Stat { .. } | Self::StatFile { .. } => "stat",
            Self::Open { .. } => "open",
            Self::Write { offset, bytes, .. } => {
                return write!(f, "write {} bytes at {offset}", bytes.len());
            }
            Self::SetFileSize { .. } | Self::SetSize { .. } => "truncate",
            Self::Sync { .. } => "sync",
            Self::Close { .. } => "close",
            Self::List { .. } => "list",
            Self::MakeDirectory { .. } => "create directory",
            Self::RemoveDirectory { .. } | Self::Remove { .. } => "remove",
            Self::Rename { to, from, .. } => return write!(f, "rename {from} to {to}"),
            Self::MakeLink { .. } => "link",
            Self::ReadLink { .. } => "read link",
            Self::SetTimes { .. } => "set times",
            Self::SetMode { .. } => "set mode",
        };
        match self.path() {
            Some(path) => write!(f, "{operation} {path}"),
            None => f.write_str(operation),
        }
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A path beneath a mount of this number.
    Mount(u32),
    /// An open file of this number.
    File(u32),
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "these are the flags of POSIX")]
pub(crate) struct OpenFlags {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Creates the file if it does not exist.
    pub(crate) create: bool,
    /// With `create`: fails if the file exists.
    pub(crate) exclusive: bool,
    /// With `write`: truncates the file.
    pub(crate) truncate: bool,
    /// With `write`: writes only at the end.
    pub(crate) append: bool,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FileReply {
    /// The request succeeded and has no result.
    Done,
    /// The number of the open file.
    File(u32),
    /// The number of bytes written.
    Count(u32),
    /// The description of a file.
    Stat(FileStat),
    /// The names in a directory.
    Names(Vec<String>),
    /// The target of a link.
    Target(String),
}

/// The description of a file. Times are in whole milliseconds since 1970, so that they are no finer
/// than the guest's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileStat {
    pub(crate) kind: FileKind,
    /// The size in bytes.
    pub(crate) size: u64,
    /// The permission bits.
    pub(crate) mode: u32,
    pub(crate) modified_ms: f64,
    pub(crate) accessed_ms: f64,
    pub(crate) changed_ms: f64,
    /// A number that identifies the file within the session; below 2^53.
    pub(crate) inode: u64,
}

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileKind {
    File,
    Directory,
    Link,
}
