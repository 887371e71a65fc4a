//! The files of an overlay, and their open handles.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::budget::{Budget, Charge};
use super::super::error::FileError;
use super::super::host_tree::read_at;
use super::super::request::{FileKind, FileStat};
use super::super::volume::{FileCopies, OpenFile};
use super::Shared;
use super::attributes::{Attributes, own};
use super::chunks::Chunks;

/// How many bytes are copied at a time when a host file is first written to.
const COPY_BYTES: usize = 64 * 1024;

/// A file of an overlay: a changed one in the tree of changes, or an open one of the host.
pub(super) struct OverlayFile {
    inode: u64,
    body: Mutex<Body>,
}

/// Where a file's bytes are.
pub(super) enum Body {
    /// On the host, until the file is first written to.
    Host(File),
    Memory(Contents),
}

/// A file in memory. It holds its charge on the budget.
pub(super) struct Contents {
    pub(super) bytes: Chunks,
    pub(super) attributes: Attributes,
    pub(super) charge: Charge,
}

/// An open handle to a file of an overlay.
pub(super) struct OverlayHandle {
    pub(super) shared: Arc<Shared>,
    pub(super) file: Arc<OverlayFile>,
}

impl Contents {
    /// Makes an empty file.
    pub(super) fn new(
        attributes: Attributes,
        charge: Charge,
        budget: &Arc<Budget>,
    ) -> Result<Self, FileError> {
        Ok(Self { bytes: Chunks::new(budget)?, attributes, charge })
    }

    /// Appends the first `size` bytes of a host file.
    pub(super) fn copy_from(&mut self, file: &File, size: u64) -> Result<(), FileError> {
        // Charged first, so that a file that is too large is not read at all.
        self.bytes.set_size(size)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut position = 0;
        while position < size {
            let count = read_at(file, position, &mut buffer)?;
            let left = usize::try_from(size - position).unwrap_or(usize::MAX);
            let read = buffer.get(..count.min(left)).unwrap_or_default();
            if read.is_empty() {
                break;
            }
            self.bytes.write(position, read)?;
            position += read.len() as u64;
        }
        self.bytes.set_size(position)
    }

    fn stat(&self, inode: u64) -> FileStat {
        self.attributes.apply(own(FileKind::File, self.bytes.size(), inode))
    }
}

impl OverlayFile {
    pub(super) fn new(inode: u64, body: Body) -> Self {
        Self { inode, body: Mutex::new(body) }
    }

    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Describes the file, if its bytes are in memory.
    pub(super) fn stat_in_memory(&self) -> Option<FileStat> {
        match &*self.lock() {
            Body::Memory(contents) => Some(contents.stat(self.inode)),
            Body::Host(_) => None,
        }
    }

    /// Changes the file's attributes, if its bytes are in memory.
    pub(super) fn change(&self, change: impl FnOnce(&mut Attributes)) {
        if let Body::Memory(contents) = &mut *self.lock() {
            change(&mut contents.attributes);
        }
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        match &*self.lock() {
            Body::Host(file) => read_at(file, offset, into),
            Body::Memory(contents) => Ok(contents.bytes.read(offset, into)),
        }
    }
}

impl OverlayHandle {
    pub(super) fn new(shared: Arc<Shared>, file: Arc<OverlayFile>) -> Self {
        Self { shared, file }
    }

    /// Changes the contents, which are in memory from now on. Of a host file, the first `kept`
    /// bytes are copied.
    fn change<T>(
        &self,
        kept: u64,
        change: impl FnOnce(&mut Contents) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        if matches!(&*self.file.lock(), Body::Host(_)) {
            self.shared.lock().copy_up(&self.shared, &self.file, kept)?;
        }
        match &mut *self.file.lock() {
            Body::Memory(contents) => {
                let result = change(contents)?;
                contents.attributes.touch();
                Ok(result)
            }
            // Contents in memory stay there, so this is unreachable.
            Body::Host(_) => Err(FileError::Io),
        }
    }
}

impl OpenFile for OverlayHandle {
    fn stat(&self) -> Result<FileStat, FileError> {
        match self.file.stat_in_memory() {
            Some(stat) => Ok(stat),
            None => self.shared.lock().stat_open(&self.shared, &self.file),
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        self.file.read(offset, into)
    }

    fn copy(&self, copies: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError> {
        self.copy(copies)
    }

    fn write(&self, offset: Option<u64>, bytes: &[u8]) -> Result<usize, FileError> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.change(u64::MAX, |contents| {
            let offset = offset.unwrap_or_else(|| contents.bytes.size());
            contents.bytes.write(offset, bytes)?;
            Ok(bytes.len())
        })
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.change(size, |contents| contents.bytes.set_size(size))
    }
}
