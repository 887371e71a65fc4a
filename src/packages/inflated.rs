//! The files of a wheel that were inflated last.

use std::collections::VecDeque;
use std::sync::Arc;

/// The most files, and the most bytes unless one file alone has more.
const MAX_FILES: usize = 64;
const MAX_BYTES: usize = 8 << 20;

/// A few inflated files, by their index. Reading one file piece by piece inflates it once.
#[derive(Default)]
pub(crate) struct Inflated {
    /// The newest is the last.
    files: VecDeque<(usize, Arc<[u8]>)>,
    bytes: usize,
}

impl Inflated {
    /// Returns a file, if it is here.
    pub(crate) fn get(&self, index: usize) -> Option<Arc<[u8]>> {
        self.files.iter().rev().find(|(at, _)| *at == index).map(|(_, bytes)| Arc::clone(bytes))
    }

    /// Keeps a file, and forgets old ones to have room for it.
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
