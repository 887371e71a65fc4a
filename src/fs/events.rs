//! File events: what the owner of a session learns about its files.

use super::error::FileError;

/// A file operation that the guest performed or was denied.
///
/// Each open, create, remove, rename, link and truncation that succeeds is one event, and so is
/// each request of any kind that is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEvent {
    /// `true` if the operation was performed.
    pub(crate) allowed: bool,
    /// The operation.
    pub(crate) operation: &'static str,
    /// The guest path. The part after the mount point is the guest's own text.
    pub(crate) path: String,
    /// Why the operation was denied, or the target of a rename or link.
    pub(crate) reason: String,
}

impl FileEvent {
    pub(crate) fn allowed(operation: &'static str, path: String, reason: String) -> Self {
        Self { allowed: true, operation, path, reason }
    }

    pub(crate) fn denied(operation: &'static str, path: String, error: FileError) -> Self {
        Self { allowed: false, operation, path, reason: error.to_string() }
    }
}
