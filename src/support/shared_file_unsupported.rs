//! Replaces `shared_file` on systems without workers: no such file can exist.

use std::io;

/// Bytes that workers would share. Has no values.
pub(crate) enum SharedFile {}

impl SharedFile {
    pub(crate) fn new(_name: &str, _bytes: &[u8]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn of_file(_file: &std::fs::File) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn map(&self) -> io::Result<bytes::Bytes> {
        match *self {}
    }
}
