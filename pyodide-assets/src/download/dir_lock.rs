//! Ensures that only one process at a time fetches into a directory, with an advisory lock on a
//! file in it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Progress};

const NAME: &str = ".lock";

/// How long to wait for another process.
const MAX_WAIT: Duration = Duration::from_hours(1);

/// The lock on a directory. Dropping it, or the death of the process, releases the lock.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the lock, and waits if another process has it.
    pub(crate) fn acquire(dir: &Path, progress: &mut dyn Progress) -> Result<Self, Error> {
        let path = dir.join(NAME);
        let failed = |cause| Error::write(&path, cause);
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress.start("waiting for another fetch", 0);
                wait(&file).map_err(failed)?;
                progress.finish();
            }
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        Ok(Self { _file: file })
    }
}

/// Waits for the lock.
fn wait(file: &File) -> io::Result<()> {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOOK_EVERY),
            Err(TryLockError::WouldBlock) => {
                let minutes = MAX_WAIT.as_secs() / 60;
                let reason = format!("another process has fetched into it for {minutes} minutes");
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
