//! Giving a checked file its name: flushed to disk first, then renamed, so that it is never seen
//! half.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Failure;
use crate::error::plain;
use crate::{Digest, Error, LockedFile, Progress};

/// Writes what `source` delivers as `file` in `dir`, if it is that file.
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
    // One byte more than expected is enough to see that the digest cannot match.
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

/// Flushes `file`, which lies at `from`, and renames it to `to`.
pub(super) fn persist(file: &File, from: &Path, to: &Path) -> Result<(), Error> {
    file.sync_all().map_err(|cause| Error::write(from, cause))?;
    fs::rename(from, to).map_err(|cause| Error::write(to, cause))?;
    // So that the new name, too, survives a power cut; not every system can, and none needs to.
    if let Some(Ok(dir)) = to.parent().map(File::open) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// The words for content that is not what the lock says.
pub(super) fn wrong_digest(what: &str, expected: Digest, got: Digest) -> String {
    format!("`{what}` has the wrong sha256 (expected {expected}, got {got})")
}

/// A file that is removed when it was not renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
