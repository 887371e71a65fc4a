//! An overlay: a directory of the host with changes that stay in memory.
//!
//! The changes are a tree of nodes over the host's directory. A directory node names the host
//! directory that is visible through it, if any, so moving a directory copies nothing. A host file
//! is copied when it is first written to. Until then it is read from the host, and its open handles
//! share one [`OverlayFile`](file::OverlayFile), so that each handle sees writes through the
//! others.

mod attributes;
mod changes;
mod chunks;
mod copy;
mod edit;
mod export;
mod file;
mod node;
mod rename;
mod saved;
mod state;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use changes::{ChangeKind, FileChange};
pub(crate) use copy::OverlayCopy;
pub use export::ExportDirectory;
pub(crate) use saved::{SavedLimits, SavedOverlay};

use super::budget::Budget;
use super::error::FileError;
use super::host_tree::HostTree;
use super::inodes::Inodes;
use super::path::RelativePath;
use super::request::{FileStat, OpenFlags};
use super::volume::{OpenFile, Opened, Times, Volume, VolumeCopy};
use crate::data::error::Error;
use file::OverlayHandle;
use state::State;

/// A directory mounted as an overlay, in one session.
pub(crate) struct Overlay(Arc<Shared>);

/// State shared by an overlay and its open files. Lock order: the state, then a file's body.
struct Shared {
    lower: HostTree,
    budget: Arc<Budget>,
    inodes: Arc<Inodes>,
    mount: u64,
    made: AtomicU64,
    state: Mutex<State>,
}

impl Overlay {
    /// Makes the overlay of the `mount`th mount, without changes.
    pub(crate) fn new(
        lower: HostTree,
        budget: Arc<Budget>,
        inodes: Arc<Inodes>,
        mount: u64,
    ) -> Self {
        let (made, state) = (AtomicU64::new(0), Mutex::new(State::default()));
        Self(Arc::new(Shared { lower, budget, inodes, mount, made, state }))
    }

    /// Returns the changes, sorted by path. `guest` is the overlay's mount point.
    pub(crate) fn changes(&self, guest: &str) -> Vec<FileChange> {
        self.0.changes(guest)
    }

    /// Opens a directory to export to. It is created, or must be empty.
    pub(crate) fn open_export(&self, target: &Path) -> Result<ExportDirectory, Error> {
        ExportDirectory::open(&self.0, target)
    }

    /// Writes the changed files to a directory, which must be empty. Returns how many.
    pub(crate) fn export(&self, target: &ExportDirectory) -> Result<u64, Error> {
        export::export(&self.0, target)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an inode number for a new file.
    fn new_inode(&self) -> u64 {
        self.inodes.of_count(self.mount, self.made.fetch_add(1, Ordering::Relaxed))
    }
}

impl Volume for Overlay {
    fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError> {
        self.0.lock().stat(&self.0, path)
    }

    fn open(&self, path: RelativePath<'_>, flags: OpenFlags) -> Result<Opened, FileError> {
        let (file, created) = self.0.lock().open(&self.0, path, flags)?;
        let handle = OverlayHandle::new(Arc::clone(&self.0), file);
        if flags.truncate {
            handle.set_size(0)?;
        }
        Ok(Opened { file: Box::new(handle), created })
    }

    fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError> {
        self.0.lock().list(&self.0, path)
    }

    fn read_link(&self, path: RelativePath<'_>) -> Result<String, FileError> {
        self.0.lock().read_link(&self.0, path)
    }

    fn set_size(&self, path: RelativePath<'_>, size: u64) -> Result<(), FileError> {
        let (file, _) = self.0.lock().open(&self.0, path, OpenFlags::default())?;
        OverlayHandle::new(Arc::clone(&self.0), file).set_size(size)
    }

    fn copy(&self) -> Result<Option<VolumeCopy>, FileError> {
        self.0.copy().map(Some)
    }

    fn make_directory(&self, path: RelativePath<'_>, _mode: u32) -> Result<(), FileError> {
        self.0.lock().make_directory(&self.0, path)
    }

    fn remove_directory(&self, path: RelativePath<'_>) -> Result<(), FileError> {
        self.0.lock().remove_directory(&self.0, path)
    }

    fn remove(&self, path: RelativePath<'_>) -> Result<(), FileError> {
        self.0.lock().remove(&self.0, path)
    }

    fn rename(&self, from: RelativePath<'_>, to: RelativePath<'_>) -> Result<(), FileError> {
        self.0.lock().rename(&self.0, from, to)
    }

    fn make_link(&self, path: RelativePath<'_>, target: &str) -> Result<(), FileError> {
        self.0.lock().make_link(&self.0, path, target)
    }

    fn set_times(&self, path: RelativePath<'_>, times: Times) -> Result<(), FileError> {
        self.0.lock().set_times(&self.0, path, times)
    }

    fn set_mode(&self, path: RelativePath<'_>, mode: u32) -> Result<(), FileError> {
        self.0.lock().set_mode(&self.0, path, mode)
    }
}
