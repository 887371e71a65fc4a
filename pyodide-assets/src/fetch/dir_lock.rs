//! Ensures that only one process at a time fetches into a directory, with an advisory lock on a
//! file in it.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::{Error, Progress};

const NAME: &str = ".lock";

/// The lock on a directory. Dropping it, or the death of the process, releases the lock.
#[derive(Debug)]
pub(super) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the lock, and waits if another process has it.
    pub(super) fn acquire(dir: &Path, progress: &mut dyn Progress) -> Result<Self, Error> {
        let path = dir.join(NAME);
        let failed = |cause| Error::write(&path, cause);
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress.start("waiting for another fetch", 0);
                file.lock().map_err(failed)?;
                progress.finish();
            }
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        Ok(Self { _file: file })
    }
}
