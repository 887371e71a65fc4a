//! Removes selected cache entries, except those that another process is writing.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::scan::{Entry, Kind};

/// The file that a process locks while it fetches into a directory of assets.
const FETCH_LOCK: &str = ".lock";

/// The result of a removal.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// Directories of assets in which a fetch is in progress.
    pub(super) busy: Vec<PathBuf>,
}

/// Removes the files of these entries, and directories that are empty afterwards. Programs that
/// have a file open keep it until they end.
///
/// # Errors
///
/// Fails if an existing file cannot be removed.
pub(super) fn remove(root: &Path, entries: &[Entry]) -> Result<Removed> {
    let mut removed = Removed::default();
    for entry in entries {
        let turn = match entry.kind {
            Kind::Assets => fetch_turn(&entry.path),
            Kind::Image | Kind::Wheel | Kind::Resolutions | Kind::Mcp => Ok(None),
        };
        let Ok(_turn) = turn else {
            removed.busy.push(entry.path.clone());
            continue;
        };
        for path in &entry.members {
            match fs::remove_file(path) {
                Ok(()) => removed.files += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("`{}` cannot be removed", path.display()));
                }
            }
        }
        removed.bytes = removed.bytes.saturating_add(entry.bytes);
        if entry.kind == Kind::Wheel
            && let Some(directory) = entry.path.parent()
            && directory.starts_with(root)
        {
            // A directory with other files stays.
            let _ = fs::remove_dir(directory);
        }
    }
    Ok(removed)
}

/// Prevents other processes from fetching into a directory until the returned file is dropped.
/// Fails if one is fetching now. Returns `None` if nothing was ever fetched into it.
fn fetch_turn(directory: &Path) -> Result<Option<File>, ()> {
    let Ok(file) = File::options().append(true).open(directory.join(FETCH_LOCK)) else {
        return Ok(None);
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(()),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}
