//! The one error type, whose messages are complete sentences: what is wrong, with both values.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Digest, LockedFile};

/// Why the assets cannot be used or fetched.
///
/// The message is one sentence that needs no context; where a command repairs the problem, the
/// message names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The list of files itself cannot be read; a build of isolet with this error is broken.
    #[error("the asset lock is not valid: {reason}")]
    #[non_exhaustive]
    Lock {
        /// What is wrong with it.
        reason: String,
    },
    /// The list of patches itself cannot be read; a build of isolet with this error is broken.
    #[error("the patches are not valid: {reason}")]
    #[non_exhaustive]
    Patches {
        /// What is wrong with it.
        reason: String,
    },
    /// A file is not there.
    #[error("asset `{}` is missing; `isolet assets fetch` replaces it", path.display())]
    #[non_exhaustive]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A file is there and cannot be read.
    #[error("asset `{}` cannot be read: {}", path.display(), plain(cause))]
    #[non_exhaustive]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file is longer or shorter than the one in the lock.
    #[error(
        "asset `{}` has the wrong size (expected {expected} bytes, got {got}); \
         `isolet assets fetch` replaces it",
        path.display()
    )]
    #[non_exhaustive]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in the lock.
        expected: u64,
        /// Its size on disk.
        got: u64,
    },
    /// A file's content is not the one in the lock.
    #[error(
        "asset `{}` has the wrong sha256 (expected {expected}, got {got}); \
         `isolet assets fetch` replaces it",
        path.display()
    )]
    #[non_exhaustive]
    Digest {
        /// The file.
        path: PathBuf,
        /// Its digest in the lock.
        expected: Digest,
        /// The digest of the bytes on disk.
        got: Digest,
    },
    /// The directory of the assets, or a file in it, cannot be written.
    #[error("cannot write `{}`: {}", path.display(), plain(cause))]
    #[non_exhaustive]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Neither npm nor HTTPS brought the files.
    #[error("cannot fetch Pyodide {version}: {reason}")]
    #[non_exhaustive]
    Fetch {
        /// The version in the lock.
        version: String,
        /// What each way that was tried said.
        reason: String,
    },
}

impl Error {
    pub(crate) fn lock(reason: impl Into<String>) -> Self {
        Self::Lock { reason: reason.into() }
    }

    pub(crate) fn read(path: &Path, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::Missing { path: path.to_owned() }
            }
            _ => Self::Read { path: path.to_owned(), cause },
        }
    }

    pub(crate) fn size(path: &Path, file: &LockedFile, got: u64) -> Self {
        Self::Size { path: path.to_owned(), expected: file.size(), got }
    }

    #[cfg(feature = "fetch")]
    pub(crate) fn write(path: &Path, cause: io::Error) -> Self {
        Self::Write { path: path.to_owned(), cause }
    }
}

/// The system's words for an error as the end of a sentence of ours: lower case, no error number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => error.kind().to_string(),
    }
}
