//! Archives by description: what random bytes hardly ever are, with checksums that are right.
//!
//! A recipe is text. A line `METHOD MODE TIMES PATH CONTENT` makes an entry: `store`, `deflate` or
//! another method by its number, its mode in octal, and so many times the content, in which `\n` is
//! the end of a line. A line `lie FIELD VALUE` makes the directory say something else of the entry
//! before it, `lie local.FIELD VALUE` what stands before its bytes, and `end FIELD VALUE` is about
//! the end of the archive.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// The first line of a recipe.
const TITLE: &str = "recipe\n";
/// The most entries, and the most bytes of all their content.
const MAX_ENTRIES: usize = 64;
const MAX_CONTENT: usize = 64 << 10;

/// What an archive says of an entry, once before its bytes and once in its directory.
#[derive(Clone, Default)]
struct Header {
    flags: u16,
    method: u16,
    crc: u32,
    compressed: u32,
    size: u32,
    name: String,
}

#[derive(Default)]
struct Entry {
    local: Header,
    listed: Header,
    mode: u32,
    /// What is added to where the entry begins.
    shift: u32,
    bytes: Vec<u8>,
}

/// The end of the archive: what is added to its numbers.
#[derive(Default)]
struct End {
    entries: u16,
    size: u32,
    start: u32,
    comment: String,
}

/// Makes the archive, if these bytes are a recipe.
pub(super) fn archive(data: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?.strip_prefix(TITLE)?;
    let (mut entries, mut end, mut left) = (Vec::<Entry>::new(), End::default(), MAX_CONTENT);
    for line in text.lines().take(4 * MAX_ENTRIES) {
        let mut words = line.splitn(3, ' ');
        match [words.next(), words.next(), words.next()].map(Option::unwrap_or_default) {
            ["lie", field, value] => {
                if let Some(entry) = entries.last_mut() {
                    entry.lie(field, value);
                }
            }
            ["end", field, value] => end.lie(field, value),
            _ if entries.len() < MAX_ENTRIES => entries.extend(Entry::new(line, &mut left)),
            _ => {}
        }
    }
    Some(zip(&entries, &end))
}

impl Entry {
    fn new(line: &str, left: &mut usize) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        let method = match words.next()? {
            "store" => 0,
            "deflate" => 8,
            number => number.parse().ok()?,
        };
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let times: usize = words.next()?.parse().ok()?;
        let name = words.next()?.to_owned();
        let piece = words.next().unwrap_or_default().replace("\\n", "\n");
        let times = times.min(*left / piece.len().max(1));
        let content = piece.repeat(times);
        *left -= content.len();
        let mut crc = Crc::new();
        crc.update(content.as_bytes());
        let (size, crc) = (number(content.len()), crc.sum());
        let bytes = if method == 8 { deflated(&content) } else { content.into_bytes() };
        let compressed = number(bytes.len());
        // Names are UTF-8.
        let header = Header { flags: 0x800, method, crc, compressed, size, name };
        Some(Self { local: header.clone(), listed: header, mode, shift: 0, bytes })
    }

    fn lie(&mut self, field: &str, value: &str) {
        let number = value.parse::<u32>().unwrap_or_default();
        match field.strip_prefix("local.") {
            Some(field) => self.local.lie(field, value),
            None if field == "mode" => self.mode = number,
            None if field == "start" => self.shift = number,
            None => self.listed.lie(field, value),
        }
    }
}

impl Header {
    fn lie(&mut self, field: &str, value: &str) {
        let number = value.parse::<u32>().unwrap_or_default();
        match field {
            "flags" => self.flags = low(number),
            "method" => self.method = low(number),
            "crc" => self.crc = number,
            "compressed" => self.compressed = number,
            "size" => self.size = number,
            "name" => value.clone_into(&mut self.name),
            _ => {}
        }
    }

    /// The part that both headers have in common, from the flags to the lengths of name and extras.
    fn write(&self, out: &mut Vec<u8>) {
        let (time, date) = (0_u16, 33_u16);
        for short in [self.flags, self.method, time, date] {
            out.extend(short.to_le_bytes());
        }
        for long in [self.crc, self.compressed, self.size] {
            out.extend(long.to_le_bytes());
        }
        out.extend(low(number(self.name.len())).to_le_bytes());
        out.extend(0_u16.to_le_bytes());
    }
}

impl End {
    fn lie(&mut self, field: &str, value: &str) {
        let number = value.parse::<u32>().unwrap_or_default();
        match field {
            "entries" => self.entries = low(number),
            "size" => self.size = number,
            "start" => self.start = number,
            "comment" => value.clone_into(&mut self.comment),
            _ => {}
        }
    }
}

fn zip(entries: &[Entry], end: &End) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let start = number(out.len()).wrapping_add(entry.shift);
        out.extend(b"PK\x03\x04\x14\0");
        entry.local.write(&mut out);
        out.extend(entry.local.name.as_bytes());
        out.extend(&entry.bytes);
        // Made on Unix, so that the mode counts.
        directory.extend(b"PK\x01\x02\x14\x03\x14\0");
        entry.listed.write(&mut directory);
        // No comment, the first disk, no internal attributes.
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(start.to_le_bytes());
        directory.extend(entry.listed.name.as_bytes());
    }
    let count = low(number(entries.len())).wrapping_add(end.entries);
    let size = number(directory.len()).wrapping_add(end.size);
    let start = number(out.len()).wrapping_add(end.start);
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend(low(number(end.comment.len())).to_le_bytes());
    out.extend(end.comment.as_bytes());
    out
}

fn deflated(content: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    // Nothing fails in memory.
    let written = encoder.write_all(content.as_bytes());
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The low half of a number.
fn low(number: u32) -> u16 {
    let [one, two, ..] = number.to_le_bytes();
    u16::from_le_bytes([one, two])
}
