//! The error type of this crate. Its messages are complete sentences with the expected and the
//! actual value.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Digest, LockedFile};

/// Why the assets cannot be used or fetched.
///
/// The message is one sentence that needs no context. If a command repairs the problem, the message
/// names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The list of files cannot be read. A build of isolet with this error is broken.
    #[error("the asset lock is not valid: {reason}")]
    #[non_exhaustive]
    Lock {
        /// What is wrong with the list.
        reason: String,
    },
    /// The list of patches cannot be read. A build of isolet with this error is broken.
    #[error("the patches are not valid: {reason}")]
    #[non_exhaustive]
    Patches {
        /// What is wrong with the patches.
        reason: String,
    },
    /// A file does not exist.
    #[error("asset `{}` is missing; {} fetches it", path.display(), remedy(path))]
    #[non_exhaustive]
    Missing {
        /// The path at which it was expected.
        path: PathBuf,
    },
    /// A file exists but cannot be read.
    #[error("asset `{}` cannot be read: {}", path.display(), plain(cause))]
    #[non_exhaustive]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file is longer or shorter than the one in the lock.
    #[error(
        "asset `{}` has the wrong size (expected {expected} bytes, got {got}); \
         {} replaces it",
        path.display(),
        remedy(path)
    )]
    #[non_exhaustive]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in the lock, in bytes.
        expected: u64,
        /// Its size on disk, in bytes.
        got: u64,
    },
    /// A file's content does not match the lock.
    #[error(
        "asset `{}` has the wrong sha256 (expected {expected}, got {got}); \
         {} replaces it",
        path.display(),
        remedy(path)
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
        /// The system's error.
        cause: io::Error,
    },
    /// A file of certificate authorities cannot be used.
    #[error("the certificate authorities in `{}` cannot be used: {reason}", path.display())]
    #[non_exhaustive]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither npm nor HTTPS delivered the files.
    #[error("cannot fetch Pyodide {version}: {reason}")]
    #[non_exhaustive]
    Fetch {
        /// The version in the lock.
        version: String,
        /// The reason of each attempt.
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

    #[cfg(feature = "download")]
    pub(crate) fn write(path: &Path, cause: io::Error) -> Self {
        Self::Write { path: path.to_owned(), cause }
    }
}

/// Returns the command that fetches a file into its own directory, whichever one the command itself
/// would choose.
fn remedy(path: &Path) -> String {
    let dir = path.parent().unwrap_or(path).display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@".contains(letter);
    let dir =
        if dir.chars().all(is_plain) { dir } else { format!("'{}'", dir.replace('\'', r"'\''")) };
    format!("`isolet --assets {dir} assets fetch`")
}

/// Returns the system's text for an error as the end of a sentence: in lower case, without the
/// error number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => error.kind().to_string(),
    }
}
