//! The interface that every kind of mount implements.

use std::sync::Arc;

use super::budget::Budget;
use super::error::{Denial, FileError};
use super::overlay::{Overlay, OverlayCopy};
use super::path::RelativePath;
use super::request::{FileStat, OpenFlags};

/// A mount. No method follows links.
///
/// Methods that change files deny access by default.
pub(crate) trait Volume: Send + Sync {
    fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError>;
    fn open(&self, path: RelativePath<'_>, flags: OpenFlags) -> Result<Opened, FileError>;
    fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError>;
    /// Returns a link's target unchecked; the caller checks it.
    fn read_link(&self, path: RelativePath<'_>) -> Result<String, FileError>;

    fn set_size(&self, _path: RelativePath<'_>, _size: u64) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn make_directory(&self, _path: RelativePath<'_>, _mode: u32) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn remove_directory(&self, _path: RelativePath<'_>) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn remove(&self, _path: RelativePath<'_>) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn rename(&self, _from: RelativePath<'_>, _to: RelativePath<'_>) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    /// Copies the mount for a copy of the session; `None` if both can use the same.
    fn copy(&self) -> Result<Option<VolumeCopy>, FileError> {
        Ok(None)
    }
    /// Creates a link. The caller has checked the target.
    fn make_link(&self, _path: RelativePath<'_>, _target: &str) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn set_times(&self, _path: RelativePath<'_>, _times: Times) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn set_mode(&self, _path: RelativePath<'_>, _mode: u32) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
}

/// A mount for a copy of a session.
pub(crate) struct VolumeCopy {
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) overlay: Option<Arc<Overlay>>,
    pub(crate) files: FileCopies,
}

/// What the open files of a mount are copied with.
pub(crate) enum FileCopies {
    Budget(Arc<Budget>),
    Overlay(OverlayCopy),
}

/// A file that was opened, and whether opening created it.
pub(crate) struct Opened {
    pub(crate) file: Box<dyn OpenFile>,
    pub(crate) created: bool,
}

/// An open regular file. The caller checks that it was opened for the requested access.
pub(crate) trait OpenFile: Send + Sync {
    fn stat(&self) -> Result<FileStat, FileError>;
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError>;

    /// Copies the file for a copy of the session. `copies` is from its mount, if that was copied.
    fn copy(&self, copies: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError>;

    /// Writes at an offset, or at the end.
    fn write(&self, _offset: Option<u64>, _bytes: &[u8]) -> Result<usize, FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn set_size(&self, _size: u64) -> Result<(), FileError> {
        Err(Denial::ReadOnly.into())
    }
    fn sync(&self) -> Result<(), FileError> {
        Ok(())
    }
}

/// A mount that has nothing.
pub(crate) struct AbsentVolume;

impl Volume for AbsentVolume {
    fn stat(&self, _path: RelativePath<'_>) -> Result<FileStat, FileError> {
        Err(FileError::NotFound)
    }

    fn open(&self, _path: RelativePath<'_>, _flags: OpenFlags) -> Result<Opened, FileError> {
        Err(FileError::NotFound)
    }

    fn list(&self, _path: RelativePath<'_>) -> Result<Vec<String>, FileError> {
        Err(FileError::NotFound)
    }

    fn read_link(&self, _path: RelativePath<'_>) -> Result<String, FileError> {
        Err(FileError::NotFound)
    }
}

/// A file that was open in a session that is replayed, and cannot be opened any more.
pub(crate) struct LostFile;

impl OpenFile for LostFile {
    fn stat(&self) -> Result<FileStat, FileError> {
        Err(FileError::Io)
    }

    fn read(&self, _offset: u64, _into: &mut [u8]) -> Result<usize, FileError> {
        Err(FileError::Io)
    }

    fn copy(&self, _copies: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError> {
        Ok(Box::new(Self))
    }

    fn write(&self, _offset: Option<u64>, _bytes: &[u8]) -> Result<usize, FileError> {
        Err(FileError::Io)
    }

    fn set_size(&self, _size: u64) -> Result<(), FileError> {
        Err(FileError::Io)
    }
}

/// Times to set, in milliseconds since 1970: finite, and within the range of JavaScript's dates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) accessed_ms: f64,
    pub(crate) modified_ms: f64,
}

impl Times {
    /// Validates times from the guest.
    pub(crate) fn new(accessed_ms: f64, modified_ms: f64) -> Result<Self, FileError> {
        const LARGEST: f64 = 8.64e15;
        let within = |time: f64| time.abs() <= LARGEST;
        if within(accessed_ms) && within(modified_ms) {
            Ok(Self { accessed_ms: accessed_ms.floor(), modified_ms: modified_ms.floor() })
        } else {
            Err(FileError::Invalid)
        }
    }
}
