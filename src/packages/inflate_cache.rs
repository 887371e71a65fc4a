//! A cache of a wheel's most recently inflated files.

use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of files, and the maximum total size in bytes, unless a single file is
/// larger.
const MAX_FILES: usize = 64;
const MAX_BYTES: usize = 32 << 20;

/// A few inflated files, by index. Reading one file in pieces then inflates it only once.
#[derive(Default)]
pub(crate) struct InflateCache {
    /// The newest file is last.
    files: VecDeque<(usize, Arc<[u8]>)>,
    bytes: usize,
}

impl InflateCache {
    /// Returns a file, if it is cached.
    pub(crate) fn get(&self, index: usize) -> Option<Arc<[u8]>> {
        self.files.iter().rev().find(|(at, _)| *at == index).map(|(_, bytes)| Arc::clone(bytes))
    }

    /// Adds a file, and removes old ones to make room.
    pub(crate) fn put(&mut self, index: usize, bytes: &Arc<[u8]>) {
        if self.get(index).is_some() {
            return;
        }
        self.bytes += bytes.len();
        self.files.push_back((index, Arc::clone(bytes)));
        while self.files.len() > MAX_FILES || (self.bytes > MAX_BYTES && self.files.len() > 1) {
            let Some((_, old)) = self.files.pop_front() else {
                break;
            };
            self.bytes -= old.len();
        }
    }
}
