//! Captured output streams: bounded memory, the head and the tail kept.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Which of the guest's output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Keeps the first and the last half of `limit` bytes of whatever is written.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    written: u64,
}

impl Capture {
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            head: Vec::new(),
            head_limit: limit.div_ceil(2),
            tail: VecDeque::new(),
            tail_limit: limit / 2,
            written: 0,
        }
    }

    /// Takes `bytes` and returns those of them that belong to the head.
    pub(crate) fn write<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.written += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
        head
    }

    pub(crate) fn finish(self) -> Captured {
        let tail: Vec<u8> = self.tail.into();
        let dropped = self.written - (self.head.len() + tail.len()) as u64;
        let mut rest = Vec::new();
        if dropped > 0 {
            rest.extend_from_slice(format!("\n[... {dropped} bytes dropped ...]\n").as_bytes());
        }
        rest.extend_from_slice(&tail);
        let head_bytes = self.head.len();
        let mut bytes = self.head;
        bytes.append(&mut rest);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Captured { head_bytes, bytes, text, dropped, written: self.written }
    }
}

/// A finished stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    head_bytes: usize,
    bytes: Vec<u8>,
    text: String,
    dropped: u64,
    written: u64,
}

impl Captured {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What comes after the head, which was streamed already: the dropped bytes' notice and the tail.
    pub(crate) fn after_head(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
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
        let mut capture = Capture::new(10);
        assert_eq!(capture.write(b"0123"), b"0123");
        assert_eq!(capture.write(b"456789"), b"4");
        let kept = capture.finish();
        assert_eq!((kept.text(), kept.dropped()), ("0123456789", 0));
        assert_eq!(kept.after_head(), b"56789");
    }

    #[test]
    fn longer_output_keeps_head_and_tail_and_says_what_was_dropped() {
        let mut capture = Capture::new(4);
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
        let mut capture = Capture::new(0);
        assert_eq!(capture.write(b"abc"), b"");
        assert_eq!(capture.finish().text(), "\n[... 3 bytes dropped ...]\n");
    }
}
