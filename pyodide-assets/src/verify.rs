//! The state of a directory of assets, file by file, for people who want to know all of it.

use std::fmt;
use std::path::Path;

use crate::lock::{Lock, lock};
use crate::{Error, assets};

/// What [`verify`] found.
#[derive(Debug)]
pub struct Verification {
    files: Vec<FileReport>,
}

/// What [`verify`] found out about one file.
///
/// Shows as `pyodide-lock.json: ok`, or as the file's problem.
#[derive(Debug)]
pub struct FileReport {
    name: String,
    problem: Option<Error>,
}

/// Checks every locked file in `dir` and goes on where one is wrong.
///
/// # Errors
///
/// [`Error::Lock`] only; what is wrong with the files is in the report.
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
    /// Whether every file is the one in the lock.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.files.iter().all(FileReport::is_ok)
    }

    /// Every locked file, in the order of the lock.
    #[must_use]
    pub fn files(&self) -> &[FileReport] {
        &self.files
    }
}

impl FileReport {
    /// The file's name, without a directory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the file is the one in the lock.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problem.is_none()
    }

    /// What is wrong with it.
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
