//! Errors between a requirement and a loaded package.

use std::io;
use std::path::PathBuf;

use isolet_pyodide_assets::{Digest, DownloadError};

use super::report::Unreachable;
use crate::data::error::{Error, ErrorKind};

/// What helps if a server's certificate is not trusted.
pub(super) const NAME_AUTHORITY: &str = "if this network has its own certificate authority, name \
     its file (`Permissions::ca_file`, or the variable `SSL_CERT_FILE`)";
const NAME_INDEX: &str = "if this network needs a proxy, name it with the variable `HTTPS_PROXY`; \
     or name another index with `PIP_INDEX_URL`, or a directory of wheels (`Permissions::wheels`)";

/// A package could not be resolved, fetched or loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    /// A requirement is invalid.
    #[error("`{text}` is not a requirement: {reason}")]
    Requirement { text: String, reason: String },
    /// The metadata block of a script is invalid.
    #[error("the script's `# /// script` block cannot be used: {0}")]
    Script(String),
    /// This version cannot use Pyodide's lock.
    #[error("Pyodide's lock cannot be used: {0}")]
    Lock(String),
    /// A file is not a loadable wheel.
    #[error("`{file}` cannot be used as a wheel: {reason}")]
    Wheel { file: String, reason: String },
    /// A file has an unexpected digest.
    #[error("`{file}` has sha256 {found}, expected {expected}")]
    Digest { file: String, expected: Digest, found: Digest },
    /// A file of a directory of Pyodide's distribution is that of another release.
    #[error(
        "`{file}` is not that of Pyodide {version}: it has sha256 {found}, expected {expected}"
    )]
    Release { file: String, version: &'static str, expected: Digest, found: Digest },
    /// Files could not be downloaded, for a reason on this machine.
    #[error("packages cannot be downloaded: {0}")]
    Download(DownloadError),
    /// No source has the package.
    #[error("{name} is not available: {reason}")]
    Unavailable { name: String, reason: String, hint: &'static str },
    /// pip found no packages that meet the requirements.
    #[error("pip cannot resolve {wanted}: {reason}")]
    Unresolved { wanted: String, reason: String },
    /// The package index cannot be asked.
    #[error("the package index cannot be reached: {0}")]
    Index(Unreachable),
    /// pip did not come to an end: it tries one version after the other of what has no wheel.
    #[error("pip did not resolve {wanted} in time: limit {limit} s, needed more")]
    Slow { wanted: String, limit: u64 },
    /// Nobody waits for the packages any more.
    #[error("the packages were not fetched: nobody waits for them any more")]
    GivenUp,
    /// pip cannot be used.
    #[error("pip cannot be used: {0}")]
    Pip(String),
    /// Another version of the package is loaded.
    #[error("{name} {wanted} cannot be loaded: {loaded} is loaded")]
    Loaded { name: String, wanted: String, loaded: String },
    /// Two packages contain the same file.
    #[error("{wanted} cannot be loaded: its `{path}` differs from that of {loaded}")]
    Clash { wanted: String, path: String, loaded: String },
    /// A file could not be read or written.
    #[error("`{path}` cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl PackageError {
    /// Returns a function that adds the path to an I/O error.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Makes the error for a file that is not a loadable wheel.
    pub(crate) fn wheel(file: &str, reason: impl Into<String>) -> Self {
        Self::Wheel { file: shown(file), reason: reason.into() }
    }

    /// Returns a suggestion of what a person could do about the error, if there is one.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable { hint, .. } => Some(hint),
            Self::Slow { .. } => Some(
                "ask for an exact version, as in `NAME==1.0`: pip then says which package has no \
                 wheel for isolet's Python",
            ),
            Self::Unresolved { reason, .. } if reason.starts_with("no wheel") => {
                Some("docs/concepts/packages.md says which packages work")
            }
            Self::Index(Unreachable::Certificate) => Some(NAME_AUTHORITY),
            Self::Index(_) => Some(NAME_INDEX),
            Self::Pip(_) => Some("install python3 with pip 23 or later, or give wheels"),
            Self::Release { .. } => Some(
                "give the files of exactly that release, or these in a directory of wheels \
                 (`Permissions::wheels`)",
            ),
            Self::Digest { .. } => Some("fetch the file again from a source you trust"),
            _ => None,
        }
    }
}

impl From<PackageError> for Error {
    fn from(error: PackageError) -> Self {
        let mut made = Self::new(ErrorKind::Packages, error.to_string());
        if let Some(hint) = error.hint() {
            made = made.with_hint(hint);
        }
        match error {
            PackageError::Io { source, .. } => made.with_source(source),
            _ => made,
        }
    }
}

/// Returns the beginning of a foreign text, on one line.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 200;
    text.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}
