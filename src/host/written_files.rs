//! Keeps which files a run has written, up to the limit in number.

use std::collections::BTreeMap;

use crate::data::limits::Limits;
use crate::data::written_file::{self, WrittenFile};

/// The files of one run, by path.
#[derive(Debug)]
pub(super) struct WrittenFiles {
    kept: BTreeMap<String, u64>,
    dropped: u64,
    max: u64,
}

impl WrittenFiles {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { kept: BTreeMap::new(), dropped: 0, max: limits.files() }
    }

    /// Keeps a file that the guest names. One beyond the limit is counted only, and what is no file
    /// of a program is left out.
    pub(super) fn add(&mut self, path: &str, size: u64) {
        if !written_file::is_of_program(path) {
            return;
        }
        if let Some(known) = self.kept.get_mut(path) {
            *known = size;
        } else if (self.kept.len() as u64) < self.max {
            self.kept.insert(path.to_owned(), size);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Returns the files that were kept, and the number of the others.
    pub(super) fn finish(self) -> (Vec<WrittenFile>, u64) {
        let files = self.kept.into_iter().map(|(path, size)| WrittenFile { path, size });
        (files.collect(), self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beyond_the_limit_are_counted_only() {
        let mut files = WrittenFiles::new(&Limits::default().max_files(2));
        for path in ["/b", "/dev/null", "/a", "/b", "/c", "/d", ""] {
            files.add(path, path.len() as u64);
        }
        let (kept, dropped) = files.finish();
        let kept: Vec<_> = kept.iter().map(|file| (file.path.as_str(), file.size)).collect();
        assert_eq!((kept, dropped), (vec![("/a", 2), ("/b", 2)], 2));
    }
}
