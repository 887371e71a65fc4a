//! Captures output streams in bounded memory: keeps the head and the tail.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::data::display::Display;

/// One of the guest's output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a run's output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputChunk {
    /// The stream that it was written to.
    pub stream: Stream,
    /// The bytes written. A chunk may end inside a UTF-8 sequence.
    pub bytes: Vec<u8>,
}

/// What a run writes or displays, in order.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// Output.
    Output(OutputChunk),
    /// An object that the guest displays.
    Display(Display),
}

/// Keeps the first and last halves of a limit in bytes, and of a limit in lines.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    /// The space left in the head. Zero once it is full.
    head_room: Room,
    tail: VecDeque<u8>,
    tail_lines: usize,
    tail_limit: Room,
    written: u64,
}

/// A number of bytes and a number of lines.
#[derive(Clone, Copy, Debug)]
struct Room {
    bytes: usize,
    lines: usize,
}

impl Capture {
    pub(crate) fn new(max_bytes: u64, max_lines: u64) -> Self {
        let bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let lines = usize::try_from(max_lines).unwrap_or(usize::MAX);
        Self {
            head: Vec::new(),
            head_room: Room { bytes: bytes.div_ceil(2), lines: lines.div_ceil(2) },
            tail: VecDeque::new(),
            tail_lines: 0,
            tail_limit: Room { bytes: bytes / 2, lines: lines / 2 },
            written: 0,
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        let (head, rest) = bytes.split_at(self.head_room.fitting(bytes));
        self.head.extend_from_slice(head);
        if rest.is_empty() {
            self.head_room.bytes -= head.len();
            self.head_room.lines -= lines(head);
        } else {
            self.head_room = Room { bytes: 0, lines: 0 };
            self.write_tail(rest);
        }
    }

    fn write_tail(&mut self, bytes: &[u8]) {
        let limit = self.tail_limit;
        let bytes = &bytes[bytes.len().saturating_sub(limit.bytes)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(limit.bytes);
        self.drop_from_tail(excess.min(self.tail.len()));
        self.tail.extend(bytes);
        self.tail_lines += lines(bytes);
        let mut excess = self.tail_lines.saturating_sub(limit.lines);
        if excess > 0 {
            let is_last = |byte: &u8| {
                excess -= usize::from(*byte == b'\n');
                excess == 0
            };
            let end = self.tail.iter().position(is_last).map_or(0, |last| last + 1);
            self.drop_from_tail(end);
        }
    }

    fn drop_from_tail(&mut self, count: usize) {
        self.tail_lines -= self.tail.drain(..count).filter(|byte| *byte == b'\n').count();
    }

    /// Returns how many bytes were written so far, kept or not.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn finish(self) -> Captured {
        let dropped = self.written - (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head;
        if dropped > 0 {
            bytes.extend_from_slice(format!("\n[... {dropped} bytes dropped ...]\n").as_bytes());
        }
        let (first, second) = self.tail.as_slices();
        bytes.extend_from_slice(first);
        bytes.extend_from_slice(second);
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        Captured { text, dropped, written: self.written }
    }
}

impl Room {
    /// Returns how many of these bytes fit.
    fn fitting(self, bytes: &[u8]) -> usize {
        let bytes = &bytes[..self.bytes.min(bytes.len())];
        if self.lines == 0 {
            return 0;
        }
        if self.lines >= bytes.len() {
            return bytes.len();
        }
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        ends.map(|(end, _)| end + 1).nth(self.lines - 1).unwrap_or(bytes.len())
    }
}

/// Returns how many lines end in these bytes.
fn lines(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(*byte == b'\n')).sum()
}

/// The kept output of a finished stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    text: String,
    dropped: u64,
    written: u64,
}

impl Captured {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_up_to_the_limit_is_kept_whole() {
        let mut capture = Capture::new(10, 10);
        capture.write(b"0123");
        capture.write(b"456789");
        let kept = capture.finish();
        assert_eq!((kept.text(), kept.dropped()), ("0123456789", 0));
    }

    #[test]
    fn longer_output_keeps_head_and_tail_and_says_what_was_dropped() {
        let mut capture = Capture::new(4, 10);
        for digit in b'0'..=b'9' {
            capture.write(&[digit]);
        }
        capture.write(b"abcdef");
        let kept = capture.finish();
        assert_eq!(kept.text(), "01\n[... 12 bytes dropped ...]\nef");
        assert_eq!((kept.dropped(), kept.written()), (12, 16));
    }

    #[test]
    fn a_limit_of_zero_keeps_nothing() {
        let mut capture = Capture::new(0, 10);
        capture.write(b"abc");
        assert_eq!(capture.finish().text(), "\n[... 3 bytes dropped ...]\n");
    }

    #[test]
    fn more_lines_than_the_limit_keep_the_first_and_the_last_of_them() {
        let mut capture = Capture::new(1000, 5);
        for number in 0..10 {
            capture.write(format!("{number}a\n{number}b\n").as_bytes());
        }
        capture.write(b"the rest");
        let kept = capture.finish();
        assert_eq!(kept.text(), "0a\n0b\n1a\n\n[... 45 bytes dropped ...]\n9a\n9b\nthe rest");
        assert_eq!(kept.dropped(), 45);
        // The same output in a single write.
        let mut capture = Capture::new(1000, 2);
        capture.write(b"1\n2\n3\n4\n");
        assert_eq!(capture.finish().text(), "1\n\n[... 4 bytes dropped ...]\n4\n");
        let mut capture = Capture::new(1000, 3);
        capture.write(b"1\n2\n3\n");
        assert_eq!(capture.finish().text(), "1\n2\n3\n");
    }
}
