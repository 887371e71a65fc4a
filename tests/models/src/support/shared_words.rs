//! Words of memory that two processes share: atomics that two threads of a model have.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::sync::AtomicU64;

std::thread_local! {
    /// The memory by its descriptor. All threads of a model are on one thread of the system.
    static FILES: RefCell<HashMap<RawFd, Arc<[AtomicU64]>>> = RefCell::default();
}

pub(crate) struct SharedWords(Arc<[AtomicU64]>);

impl SharedWords {
    pub(crate) fn file(_name: &str, count: usize) -> io::Result<OwnedFd> {
        let file = OwnedFd::from(File::open("/dev/null")?);
        let words = (0..count).map(|_| AtomicU64::new(0)).collect();
        FILES.with_borrow_mut(|files| files.insert(file.as_raw_fd(), words));
        Ok(file)
    }

    pub(crate) fn map(file: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let words = FILES.with_borrow(|files| files.get(&file.as_raw_fd()).cloned());
        let words = words.filter(|words| words.len() == count).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self(words))
    }

    pub(crate) fn replace(&mut self, _file: RawFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}
