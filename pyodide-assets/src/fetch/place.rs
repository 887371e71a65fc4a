//! Writes a file of the lock from a source of its bytes, if they are the right ones.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Failure;
use crate::download::place::{persist, wrong_digest};
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
        return Err(Failure::Remote(wrong_digest(
            &format!("`{}`", file.name()),
            file.sha256(),
            got,
        )));
    }
    persist(&target, &temporary.0, &dir.join(file.name()))?;
    Ok(())
}

/// A file that is removed on drop unless it was renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
