//! Gives a checked file its name: it is synced to disk first and then renamed, so that it is never
//! visible in part.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Failure;
use crate::error::plain;
use crate::{Digest, Error, LockedFile, Progress};

/// Writes the data of `source` as `file` in `dir`, if it matches the lock.
pub(super) fn write(
    source: &mut dyn Read,
    dir: &Path,
    file: &LockedFile,
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let temporary = Temporary(dir.join(format!("{}.tmp", file.name())));
    let failed = |cause| Error::write(&temporary.0, cause);
    let mut target = File::create(&temporary.0).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    // One byte more than expected is enough to make the digest differ.
    let mut source = source.take(file.size() + 1);
    loop {
        let count = source.read(&mut buffer).map_err(|cause| Failure::Remote(plain(&cause)))?;
        let bytes = &buffer[..count];
        if bytes.is_empty() {
            break;
        }
        target.write_all(bytes).map_err(failed)?;
        hasher.update(bytes);
        progress.advance(bytes.len() as u64);
    }
    let got = Digest::finish(hasher);
    if got != file.sha256() {
        return Err(Failure::Remote(wrong_digest(file.name(), file.sha256(), got)));
    }
    persist(&target, &temporary.0, &dir.join(file.name()))?;
    Ok(())
}

/// Syncs `file`, whose path is `from`, and renames it to `to`.
pub(super) fn persist(file: &File, from: &Path, to: &Path) -> Result<(), Error> {
    file.sync_all().map_err(|cause| Error::write(from, cause))?;
    fs::rename(from, to).map_err(|cause| Error::write(to, cause))?;
    // Makes the new name survive a power failure too. Not every system supports this, and nothing
    // depends on it.
    if let Some(Ok(dir)) = to.parent().map(File::open) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// Returns the message for content that does not match the lock.
pub(super) fn wrong_digest(what: &str, expected: Digest, got: Digest) -> String {
    format!("`{what}` has the wrong sha256 (expected {expected}, got {got})")
}

/// A file that is removed on drop unless it was renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
