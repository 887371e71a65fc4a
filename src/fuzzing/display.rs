//! What a guest displays, the files that it says it has written, and a template's records.

use std::path::{Component, Path};

use super::memory::measured;
use crate::data::display::{Display, FORMAT_BYTES, FORMATS};
use crate::data::written_file::is_of_program;
use crate::worker::wire::template_record::{BYTES, Record};

/// How many times its length a display may take, and what it may take besides: lists of a false
/// length.
const FACTOR: usize = 100;
const FIXED: usize = 8 << 20;

/// Reads the bytes as a display, as a path, and as a record. A display has formats with names of
/// MIME types and no more bytes than were sent; a path of a written file is absolute and plain; a
/// record is written as the bytes that it is read from.
pub fn display(data: &[u8]) {
    for max_bytes in [data.len() as u64, 1 << 20] {
        let (display, used) = measured(|| Display::decode(data, max_bytes, 1, 2));
        assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
        if let Some(display) = display {
            check(&display, data.len());
        }
    }
    if let Ok(path) = std::str::from_utf8(data)
        && is_of_program(path)
    {
        let mut parts = Path::new(path).components();
        assert_eq!(parts.next(), Some(Component::RootDir), "{path:?}");
        assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{path:?}");
    }
    if let Some(bytes) = data.first_chunk::<BYTES>()
        && let Some(record) = Record::decode(*bytes)
    {
        assert_eq!(Record::decode(record.encode()), Some(record));
    }
}

fn check(display: &Display, length: usize) {
    assert!((1..=FORMATS).contains(&display.formats().len()));
    assert!(display.size() <= length, "{length} bytes became {}", display.size());
    assert_eq!((display.stdout_bytes_before(), display.stderr_bytes_before()), (1, 2));
    for (name, _) in display.formats() {
        assert!(name.len() <= FORMAT_BYTES && name.is_ascii(), "{name:?}");
        assert_eq!(name.matches('/').count(), 1, "{name:?}");
        assert!(!name.contains(|c: char| c.is_whitespace() || c.is_control()), "{name:?}");
        assert!(display.get(name).is_some());
    }
}
