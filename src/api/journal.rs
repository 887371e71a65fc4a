//! Where a session is recorded.

use std::path::{Path, PathBuf};

use crate::host::journal::{JournalFull, JournalOptions, JournalSync};

/// The file that a session is recorded to, and how.
///
/// ```
/// use isolet::{Journal, JournalSync};
///
/// let journal = Journal::at("run.journal").sync(JournalSync::Always).max_bytes(64 << 20);
/// # let _ = journal;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Journal {
    path: PathBuf,
    sync: JournalSync,
    max_bytes: u64,
    when_full: JournalFull,
}

impl Journal {
    /// The default of [`max_bytes`](Self::max_bytes).
    pub const DEFAULT_BYTES: u64 = 1 << 30;

    /// Makes the journal of this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            sync: JournalSync::default(),
            max_bytes: Self::DEFAULT_BYTES,
            when_full: JournalFull::default(),
        }
    }

    /// Sets when what is recorded reaches the device.
    ///
    /// Default: [`JournalSync::Never`].
    pub fn sync(mut self, sync: JournalSync) -> Self {
        self.sync = sync;
        self
    }

    /// Sets the maximum size of the file, in bytes. [`when_full`](Self::when_full) says what
    /// happens past it.
    ///
    /// Default: 1 GiB.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets what happens to a run that would exceed the maximum size.
    ///
    /// Default: it ends with [`ErrorKind::Journal`](crate::ErrorKind::Journal), and the session
    /// with it.
    pub fn when_full(mut self, when_full: JournalFull) -> Self {
        self.when_full = when_full;
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn options(&self) -> JournalOptions {
        let Self { sync, max_bytes, when_full, .. } = *self;
        JournalOptions { sync, max_bytes, when_full }
    }
}

impl From<PathBuf> for Journal {
    fn from(path: PathBuf) -> Self {
        Self::at(path)
    }
}

impl From<&Path> for Journal {
    fn from(path: &Path) -> Self {
        Self::at(path)
    }
}

impl From<&PathBuf> for Journal {
    fn from(path: &PathBuf) -> Self {
        Self::at(path)
    }
}

impl From<&str> for Journal {
    fn from(path: &str) -> Self {
        Self::at(path)
    }
}

impl From<String> for Journal {
    fn from(path: String) -> Self {
        Self::at(path)
    }
}
