//! What the guest asks of its file system, and the answers.

use serde::{Deserialize, Serialize};

/// Something to be done with files. `mount` is the number of the mount, in the order in which they
/// were added; `path` is relative to its root, with `/` between names and empty for the root. No
/// link is followed. All of it is hostile. Reading has a function of its own,
/// [`FileSystem::read`](super::FileSystem::read).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileRequest<'a> {
    /// Describe what is at a path.
    Stat { mount: u32, path: &'a str },
    /// Open a regular file.
    Open { mount: u32, path: &'a str, flags: OpenFlags },
    /// Describe an open file.
    StatFile { file: u32 },
    /// Write at an offset; a file opened to append ignores it.
    Write {
        file: u32,
        offset: u64,
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// Cut or extend an open file.
    SetFileSize { file: u32, size: u64 },
    /// Cut or extend the file at a path.
    SetSize { mount: u32, path: &'a str, size: u64 },
    /// Wait until what was written is on the host's device.
    Sync { file: u32 },
    /// Close an open file.
    Close { file: u32 },
    /// Name what is in a directory, sorted. Names that are not UTF-8, and what is neither a file
    /// nor a directory nor a link, are left out.
    List { mount: u32, path: &'a str },
    /// Make a directory with these permission bits, as far as the mount allows them.
    MakeDirectory { mount: u32, path: &'a str, mode: u32 },
    /// Remove an empty directory.
    RemoveDirectory { mount: u32, path: &'a str },
    /// Remove a file or a link.
    Remove { mount: u32, path: &'a str },
    /// Rename, replacing what is there as POSIX does.
    Rename { mount: u32, from: &'a str, to: &'a str },
    /// Make a symbolic link.
    MakeLink { mount: u32, path: &'a str, target: &'a str },
    /// Read a symbolic link.
    ReadLink { mount: u32, path: &'a str },
    /// Set the times of a file or directory, in milliseconds since 1970.
    SetTimes { mount: u32, path: &'a str, accessed_ms: f64, modified_ms: f64 },
    /// Set the permission bits of a file or directory.
    SetMode { mount: u32, path: &'a str, mode: u32 },
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "these are the flags of POSIX")]
pub(crate) struct OpenFlags {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Make the file if there is none.
    pub(crate) create: bool,
    /// With `create`: fail if there is one.
    pub(crate) exclusive: bool,
    /// With `write`: empty it.
    pub(crate) truncate: bool,
    /// With `write`: write at the end only.
    pub(crate) append: bool,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FileReply {
    /// It is done.
    Done,
    /// The open file has this number.
    File(u32),
    /// So many bytes were written.
    Count(u32),
    /// This is there.
    Stat(FileStat),
    /// These are in the directory.
    Names(Vec<String>),
    /// The link points here.
    Target(String),
}

/// What is known about a file. Times are in whole milliseconds since 1970, so that they are no
/// finer clock than the guest has.
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
    /// A number of the session's own, the same for the same file; below 2^53.
    pub(crate) inode: u64,
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileKind {
    File,
    Directory,
    Link,
}
