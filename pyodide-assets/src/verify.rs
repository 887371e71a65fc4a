//! Verifies a directory of assets, file by file, for a complete report.

use std::fmt;
use std::path::Path;

use crate::lock::{Lock, lock};
use crate::{Error, assets};

/// The result of [`verify`].
#[derive(Debug)]
pub struct Verification {
    files: Vec<FileReport>,
}

/// The result of verifying one file.
///
/// Displays as `pyodide-lock.json: ok`, or as the file's problem.
#[derive(Debug)]
pub struct FileReport {
    name: String,
    problem: Option<Error>,
}

/// Checks every locked file in `dir`, and continues after a failure.
///
/// # Errors
///
/// Only [`Error::Lock`]. Problems of the files are part of the report.
pub fn verify(dir: &Path) -> Result<Verification, Error> {
    Ok(verify_locked(lock()?, dir))
}

pub(crate) fn verify_locked(lock: &Lock, dir: &Path) -> Verification {
    let check = |file: &crate::LockedFile| FileReport {
        name: file.name().to_owned(),
        problem: assets::read(dir, file).err(),
    };
    Verification { files: lock.files().iter().map(check).collect() }
}

impl Verification {
    /// Returns `true` if every file matches the lock.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.files.iter().all(FileReport::is_ok)
    }

    /// Returns the reports of all locked files, in the order of the lock.
    #[must_use]
    pub fn files(&self) -> &[FileReport] {
        &self.files
    }
}

impl FileReport {
    /// Returns the file's name, without a directory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the file matches the lock.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problem.is_none()
    }

    /// Returns the file's problem, if there is one.
    #[must_use]
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            None => write!(f, "{}: ok", self.name),
            Some(problem) => problem.fmt(f),
        }
    }
}
