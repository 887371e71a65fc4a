//! Removes what was selected, but nothing that another process is writing.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::scan::{Entry, Kind};

/// The file that whoever fetches into a directory of assets has locked.
const FETCH_LOCK: &str = ".lock";

/// What was removed.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// Directories of assets that a fetch is going on in.
    pub(super) busy: Vec<PathBuf>,
}

/// Removes the files of these entries, and directories that are empty then. Programs that have a
/// file open keep it until they end.
///
/// # Errors
///
/// A file that is there cannot be removed.
pub(super) fn remove(root: &Path, entries: &[Entry]) -> Result<Removed> {
    let mut removed = Removed::default();
    for entry in entries {
        let turn = match entry.kind {
            Kind::Assets => fetch_turn(&entry.path),
            Kind::Image | Kind::Wheel | Kind::Resolutions => Ok(None),
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
            // One that has other files stays.
            let _ = fs::remove_dir(directory);
        }
    }
    Ok(removed)
}

/// Keeps others from fetching into a directory until the file is dropped; an error if one does now.
/// `None` where nobody ever fetched into it.
fn fetch_turn(directory: &Path) -> Result<Option<File>, ()> {
    let Ok(file) = File::options().append(true).open(directory.join(FETCH_LOCK)) else {
        return Ok(None);
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(()),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}
