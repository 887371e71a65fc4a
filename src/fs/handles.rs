//! The table of a session's open files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::FileError;
use super::volume::OpenFile;

/// An open file, and the access that it was opened for.
pub(crate) struct Handle {
    pub(crate) file: Box<dyn OpenFile>,
    /// The number of the mount.
    pub(crate) mount: u32,
    /// The guest path at the time of opening.
    pub(crate) path: String,
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
}

/// The open files of a session.
pub(crate) struct Handles {
    limit: u64,
    open: Mutex<Open>,
}

struct Open {
    /// The next number to try.
    next: u32,
    files: BTreeMap<u32, Arc<Handle>>,
}

impl Handles {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, open: Mutex::new(Open { next: 0, files: BTreeMap::new() }) }
    }

    /// Makes the table of a copy of the session. `copy` copies a file.
    pub(crate) fn copy(
        &self,
        copy: impl Fn(&Handle) -> Result<Box<dyn OpenFile>, FileError>,
    ) -> Result<Self, FileError> {
        let open = self.lock();
        let copied = open.files.iter().map(|(number, handle)| {
            let Handle { mount, ref path, read, write, append, .. } = **handle;
            let file = copy(handle)?;
            let handle = Handle { file, mount, path: path.clone(), read, write, append };
            Ok((*number, Arc::new(handle)))
        });
        let files = copied.collect::<Result<_, FileError>>()?;
        Ok(Self { limit: self.limit, open: Mutex::new(Open { next: open.next, files }) })
    }

    /// Fails if no more files can be opened.
    pub(crate) fn check_room(&self) -> Result<(), FileError> {
        self.room(&self.lock())
    }

    /// Assigns a number to an open file. Numbers are not reused soon, so that a stale one fails
    /// instead of naming another file.
    pub(crate) fn add(&self, handle: Handle) -> Result<u32, FileError> {
        let mut open = self.lock();
        self.room(&open)?;
        while open.files.contains_key(&open.next) {
            open.next = open.next.wrapping_add(1) & NUMBERS;
        }
        let number = open.next;
        open.next = number.wrapping_add(1) & NUMBERS;
        open.files.insert(number, Arc::new(handle));
        Ok(number)
    }

    /// Puts an open file into the place that it had in a session that is replayed.
    pub(crate) fn put(&self, number: u32, handle: Handle) -> Result<(), FileError> {
        let mut open = self.lock();
        self.room(&open)?;
        if number >= NUMBERS {
            return Err(FileError::BadHandle);
        }
        open.next = number.wrapping_add(1) & NUMBERS;
        open.files.insert(number, Arc::new(handle));
        Ok(())
    }

    pub(crate) fn get(&self, number: u32) -> Result<Arc<Handle>, FileError> {
        self.lock().files.get(&number).cloned().ok_or(FileError::BadHandle)
    }

    pub(crate) fn close(&self, number: u32) -> Result<(), FileError> {
        let closed = self.lock().files.remove(&number);
        // Dropped after the lock is released, because closing may take time.
        closed.map(drop).ok_or(FileError::BadHandle)
    }

    fn room(&self, open: &Open) -> Result<(), FileError> {
        let limit = self.limit.min(u64::from(NUMBERS));
        if open.files.len() as u64 >= limit {
            return Err(FileError::TooManyOpen { limit });
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers are less than this: they cross as signed integers and must be positive.
const NUMBERS: u32 = i32::MAX.unsigned_abs();
