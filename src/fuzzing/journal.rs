//! Journals of recorded sessions: anyone may have written the file.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::memory::measured;
use crate::host::journal::{Until, fuzzing};

/// The requests of a journal that are read: a few bytes may stand for any number of them.
const MOST_REQUESTS: u64 = 1000;
/// How many times its length a journal may take, and what it may take besides: an event of two
/// bytes is a value of its own.
const FACTOR: usize = 64;
const FIXED: usize = 256 << 10;

/// Reads the bytes, by their first one as a file, or as records that follow each other: two bytes
/// with the length of each, and its bytes. Reading ends, and takes memory by the file's length.
pub fn journal(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let file = match kind % 2 {
        0 => data.to_vec(),
        _ => fuzzing::journal(Records(data)),
    };
    let Some(path) = path() else { return };
    let written = std::fs::write(path, &file);
    assert!(written.is_ok(), "{written:?}");
    for until in [Until::End, Until::Call(2), Until::Milliseconds(5)] {
        let (parts, used) = measured(|| fuzzing::read(path, &until, MOST_REQUESTS));
        assert!(used.peak <= FACTOR * file.len() + FIXED, "{} bytes took {used:?}", file.len());
        // A record has a header of eight bytes.
        assert!(parts.unwrap_or_default() <= file.len() as u64 / 8, "{parts:?}");
    }
}

/// Records, each behind its length.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (record, rest) = rest.split_at(length);
        self.0 = rest;
        Some(record)
    }
}

fn path() -> Option<&'static PathBuf> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = || {
        std::fs::create_dir_all("target/fuzz").ok()?;
        Some(PathBuf::from(format!("target/fuzz/journal-{}", std::process::id())))
    };
    let path = PATH.get_or_init(made).as_ref();
    assert!(path.is_some(), "there is no directory for the journal");
    path
}
