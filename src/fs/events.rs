//! What the owner of a session is told about its files.

use super::error::FileError;

/// Something the guest did with files, or was not allowed to do.
///
/// There is one for each open, create, remove, rename, link and truncation that was carried out,
/// and one for each request of any kind that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEvent {
    /// Whether it was carried out.
    pub(crate) allowed: bool,
    /// What it was.
    pub(crate) operation: &'static str,
    /// The guest's path; what follows the mount point is the guest's own text.
    pub(crate) path: String,
    /// Why it was denied, or where a renamed file went and a link points to.
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
