//! Errors of file requests as the guest sees them: an error number, and never a host path.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a file request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub(crate) enum FileError {
    #[error("{0}")]
    Access(Denial),
    #[error("no such open file, or it was not opened for this")]
    BadHandle,
    #[error("the file or directory is in use")]
    Busy,
    #[error("the mount's quota is used up: limit {limit} bytes, needed {needed}")]
    ByteQuota { limit: u64, needed: u64 },
    #[error("the mount's quota is used up: limit {limit} new files, needed {needed}")]
    FileQuota { limit: u64, needed: u64 },
    #[error("the overlay is used up: limit {limit} entries hidden or moved, needed {needed}")]
    MarkQuota { limit: u64, needed: u64 },
    #[error("the file exists")]
    Exists,
    #[error("the file is too large")]
    TooLarge,
    #[error("the directory has too many entries: limit {limit}")]
    TooManyEntries { limit: u64 },
    #[error("the argument or path is malformed")]
    Invalid,
    #[error("the host could not read or write")]
    Io,
    #[error("it is a directory")]
    IsDirectory,
    #[error("a link is not followed here")]
    Link,
    #[error("too many open files: limit {limit}")]
    TooManyOpen { limit: u64 },
    #[error("the host has too many open files")]
    TooManyOpenOnHost,
    #[error("the name is too long: limit {limit} bytes, needed {needed}")]
    NameTooLong { limit: u64, needed: u64 },
    #[error("the name is too long for the host")]
    NameTooLongOnHost,
    #[error("the path is too deep: limit {limit} names, needed {needed}")]
    TooDeep { limit: u64, needed: u64 },
    #[error("no such file or directory")]
    NotFound,
    #[error("no space left on the host's device")]
    NoSpace,
    #[error("it is not a directory")]
    NotDirectory,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("it is on another device of the host")]
    CrossDevice,
    #[error("the host does not support this")]
    NotSupported,
}

/// Why access is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub(crate) enum Denial {
    #[error("the mount is read-only")]
    ReadOnly,
    #[error("it is neither a regular file nor a directory nor a link")]
    SpecialFile,
    #[error("the link's target is absolute or may leave the mount")]
    LinkTarget,
    #[error("it holds a link that is absolute or leads out of it, and is not moved")]
    HoldsLink,
    #[error("files of the kernel and of devices are never shown")]
    KernelFiles,
    #[error("the host denies it")]
    Host,
    #[error("the audit log does not take it")]
    Unlogged,
}

impl FileError {
    /// Returns the WASI error number, which Emscripten uses too.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::Access(_) => 2,
            Self::BadHandle => 8,
            Self::Busy => 10,
            Self::ByteQuota { .. } | Self::FileQuota { .. } | Self::MarkQuota { .. } => 19,
            Self::Exists => 20,
            Self::TooLarge | Self::TooManyEntries { .. } => 22,
            Self::Invalid => 28,
            Self::Io => 29,
            Self::IsDirectory => 31,
            Self::Link => 32,
            Self::TooManyOpen { .. } | Self::TooManyOpenOnHost => 33,
            Self::NameTooLong { .. } | Self::NameTooLongOnHost | Self::TooDeep { .. } => 37,
            Self::NotFound => 44,
            Self::NoSpace => 51,
            Self::NotDirectory => 54,
            Self::NotEmpty => 55,
            Self::CrossDevice => 75,
            Self::NotSupported => 138,
        }
    }

    /// Returns `true` if a rule of the sandbox or the host caused the error, not the state of the
    /// files.
    pub(crate) fn is_denial(&self) -> bool {
        match self {
            Self::Access(_)
            | Self::ByteQuota { .. }
            | Self::FileQuota { .. }
            | Self::MarkQuota { .. }
            | Self::TooManyEntries { .. }
            | Self::TooManyOpen { .. }
            | Self::TooManyOpenOnHost
            | Self::NameTooLong { .. }
            | Self::NameTooLongOnHost
            | Self::TooDeep { .. }
            | Self::Invalid
            | Self::Link => true,
            Self::BadHandle
            | Self::Busy
            | Self::Exists
            | Self::TooLarge
            | Self::Io
            | Self::IsDirectory
            | Self::NotFound
            | Self::NoSpace
            | Self::NotDirectory
            | Self::NotEmpty
            | Self::CrossDevice
            | Self::NotSupported => false,
        }
    }
}

impl From<Denial> for FileError {
    fn from(denial: Denial) -> Self {
        Self::Access(denial)
    }
}

impl From<io::Error> for FileError {
    /// Keeps the kind and drops the text, which may contain a host path.
    fn from(error: io::Error) -> Self {
        if let Some(errno) = Errno::from_io_error(&error) {
            return errno.into();
        }
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Denial::Host.into(),
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::NotADirectory => Self::NotDirectory,
            io::ErrorKind::IsADirectory => Self::IsDirectory,
            io::ErrorKind::InvalidInput => Self::Invalid,
            _ => Self::Io,
        }
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Denial::Host.into(),
            // Returned for opening a socket, a FIFO without a reader or a missing device.
            Errno::NXIO | Errno::NODEV => Denial::SpecialFile.into(),
            Errno::BUSY | Errno::AGAIN | Errno::TXTBSY => Self::Busy,
            Errno::DQUOT | Errno::NOSPC => Self::NoSpace,
            Errno::EXIST => Self::Exists,
            Errno::FBIG => Self::TooLarge,
            Errno::INVAL => Self::Invalid,
            Errno::ISDIR => Self::IsDirectory,
            Errno::LOOP => Self::Link,
            Errno::MFILE | Errno::NFILE => Self::TooManyOpenOnHost,
            Errno::NAMETOOLONG => Self::NameTooLongOnHost,
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::XDEV => Self::CrossDevice,
            Errno::NOTSUP | Errno::NOSYS => Self::NotSupported,
            _ => Self::Io,
        }
    }
}
