//! What every kind of mount can do.

use super::error::{Denial, FileError};
use super::path::RelativePath;
use super::request::{FileStat, OpenFlags};

/// What is mounted. Nothing follows a link.
///
/// Changes are denied unless a kind of mount says otherwise.
pub(crate) trait Volume: Send + Sync {
    fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError>;
    fn open(&self, path: RelativePath<'_>, flags: OpenFlags) -> Result<Opened, FileError>;
    fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError>;
    /// Returns a link's target as it is; the caller checks it.
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
    /// Makes a link whose target the caller has checked.
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

/// A file that was opened, and whether that made it.
pub(crate) struct Opened {
    pub(crate) file: Box<dyn OpenFile>,
    pub(crate) created: bool,
}

/// An open regular file. Whether it was opened for what is asked is checked by the caller.
pub(crate) trait OpenFile: Send + Sync {
    fn stat(&self) -> Result<FileStat, FileError>;
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError>;

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

/// Times to be set, in milliseconds since 1970: finite, and within what JavaScript has as dates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) accessed_ms: f64,
    pub(crate) modified_ms: f64,
}

impl Times {
    /// Takes times of the guest's.
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
