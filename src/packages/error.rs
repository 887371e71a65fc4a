//! What can go wrong between a requirement and a loaded package.

use std::io;
use std::path::PathBuf;

use isolet_pyodide_assets::Digest;

use crate::data::error::{Error, ErrorKind};

/// A package could not be resolved, fetched or loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    /// A requirement is refused.
    #[error("`{text}` is not a requirement: {reason}")]
    Requirement { text: String, reason: String },
    /// A script's block of metadata is refused.
    #[error("the script's `# /// script` block cannot be used: {0}")]
    Script(String),
    /// Pyodide's lock is not one that this version can use.
    #[error("Pyodide's lock cannot be used: {0}")]
    Lock(String),
    /// A file is not a wheel that can be loaded.
    #[error("`{file}` cannot be used as a wheel: {reason}")]
    Wheel { file: String, reason: String },
    /// A file is not the one that was wanted.
    #[error("`{file}` has sha256 {found}, expected {expected}")]
    Digest { file: String, expected: Digest, found: Digest },
    /// No source has the package.
    #[error("{name} is not available: {reason}")]
    Unavailable { name: String, reason: String, hint: &'static str },
    /// pip did not find packages that fit.
    #[error("pip cannot resolve {wanted}: {reason}")]
    Unresolved { wanted: String, reason: String },
    /// pip could not be used.
    #[error("pip cannot be used: {0}")]
    Pip(String),
    /// Another version of the package is loaded.
    #[error("{name} {wanted} cannot be loaded: {loaded} is loaded")]
    Loaded { name: String, wanted: String, loaded: String },
    /// Two packages have one file.
    #[error("{wanted} cannot be loaded: its `{path}` differs from that of {loaded}")]
    Clash { wanted: String, path: String, loaded: String },
    /// A file could not be read or written.
    #[error("`{path}` cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl PackageError {
    /// Makes the function that says which file an I/O error is about.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Says that a file is not a wheel that can be loaded.
    pub(crate) fn wheel(file: &str, reason: impl Into<String>) -> Self {
        Self::Wheel { file: shown(file), reason: reason.into() }
    }

    /// Returns what a person could do about it, if there is something.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable { hint, .. } => Some(hint),
            Self::Pip(_) => Some("install python3 with pip 23 or later, or give wheels"),
            Self::Digest { .. } => Some("fetch the file again from a source you trust"),
            _ => None,
        }
    }
}

impl From<PackageError> for Error {
    fn from(error: PackageError) -> Self {
        let made = Self::new(ErrorKind::Packages, error.to_string());
        match error.hint() {
            Some(hint) => made.with_hint(hint),
            None => made,
        }
    }
}

/// The beginning of somebody else's text, on one line.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 200;
    text.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}
