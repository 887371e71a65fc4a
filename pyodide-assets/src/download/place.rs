//! Gives a checked file its name: it is synced to disk first and then renamed, so that it is never
//! visible in part.

use std::fs::{self, File};
use std::path::Path;

use crate::{Digest, Error};

/// Syncs `file`, whose path is `from`, and renames it to `to`.
pub(crate) fn persist(file: &File, from: &Path, to: &Path) -> Result<(), Error> {
    file.sync_all().map_err(|cause| Error::write(from, cause))?;
    fs::rename(from, to).map_err(|cause| Error::write(to, cause))?;
    // Makes the new name survive a power failure too. Not every system supports this, and nothing
    // depends on it.
    if let Some(Ok(dir)) = to.parent().map(File::open) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// Returns the message for content that does not have its digest.
pub(crate) fn wrong_digest(what: &str, expected: Digest, got: Digest) -> String {
    format!("{what} has the wrong sha256 (expected {expected}, got {got})")
}
