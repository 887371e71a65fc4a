//! Reads and writes whole files, with size limits and never partially.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::error::PackageError;

/// The age after which a working directory is considered to belong to a dead process.
const ABANDONED: Duration = Duration::from_hours(24);

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a regular file or is larger.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Arc<[u8]>> {
    // Checked before opening, because opening a FIFO would wait.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or_default());
    let read = file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > max {
        let message = format!("limit {max} bytes, needed {}", size.max(read as u64));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes.into())
}

/// Creates a directory and its parents. Only their owner may enter the directories that it creates.
///
/// # Errors
///
/// Fails if it cannot be created.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a file with these bytes, readable only by its owner, and syncs it to disk.
///
/// # Errors
///
/// Fails if the file exists or cannot be written.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A directory for this process alone, removed on drop.
#[derive(Debug)]
pub(crate) struct WorkDirectory(PathBuf);

impl WorkDirectory {
    /// Creates a working directory in `parent`, and removes abandoned ones.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created.
    pub(crate) fn new(parent: &Path) -> Result<Self, PackageError> {
        let mut bytes = [0; 8];
        let no_entropy = |error: getrandom::Error| io::Error::other(error.to_string());
        getrandom::fill(&mut bytes).map_err(no_entropy).map_err(PackageError::io(parent))?;
        let path = parent.join(format!("{:016x}", u64::from_ne_bytes(bytes)));
        make_directory(&path).map_err(PackageError::io(&path))?;
        remove_abandoned(parent);
        Ok(Self(path))
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // Anything left is removed later, as abandoned.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn remove_abandoned(parent: &Path) {
    let Ok(entries) = parent.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let age = changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age > ABANDONED) {
            // Another process may be removing it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
