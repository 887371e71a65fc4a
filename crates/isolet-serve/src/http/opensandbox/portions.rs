//! Portions of files: bytes by the header `Range`, and lines.

use std::ops::Range;

/// What a client has asked for of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Portion {
    Whole,
    /// From this byte on, to the other one and with it, if there is one.
    From(u64, Option<u64>),
    /// So many bytes at the end.
    Last(u64),
    /// From this line on, which is 1 for the first one, so many.
    Lines(usize, usize),
}

impl Portion {
    /// Reads the header. One of another form, or with several ranges, is ignored, as HTTP wants it.
    pub(super) fn of_header(range: Option<&str>) -> Self {
        let bytes = range.and_then(|range| range.trim().strip_prefix("bytes="));
        let Some((first, last)) = bytes.and_then(|bytes| bytes.split_once('-')) else {
            return Self::Whole;
        };
        let last = if last.is_empty() { Ok(None) } else { last.parse().map(Some) };
        match (first.parse(), last) {
            (Ok(first), Ok(last)) if last.is_none_or(|last| first <= last) => {
                Self::From(first, last)
            }
            (Err(_), Ok(Some(count))) if first.is_empty() => Self::Last(count),
            _ => Self::Whole,
        }
    }

    /// Returns the bytes of a file. `None` if it has none of them.
    pub(super) fn of(self, file: &[u8]) -> Option<Range<usize>> {
        let length = file.len() as u64;
        let place = |byte: u64| usize::try_from(byte.min(length)).unwrap_or(file.len());
        match self {
            Self::Whole => Some(0..file.len()),
            Self::From(first, _) if first >= length => None,
            Self::From(first, last) => {
                let end = last.map_or(length, |last| last.saturating_add(1));
                Some(place(first)..place(end))
            }
            Self::Last(0) => None,
            Self::Last(count) => Some(place(length.saturating_sub(count))..file.len()),
            Self::Lines(first, count) => {
                let mut ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                let mut after = |lines: usize| match lines.checked_sub(1) {
                    None => Some(0),
                    Some(more) => ends.nth(more).map(|(at, _)| at + 1),
                };
                let start = after(first.saturating_sub(1)).unwrap_or(file.len());
                let end = if count == 0 { start } else { after(count).unwrap_or(file.len()) };
                Some(start..end.max(start))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(range: &str) -> Option<&'static str> {
        Portion::of_header(Some(range)).of(b"0123456789").map(|range| &"0123456789"[range])
    }

    #[test]
    fn a_range_is_its_bytes_as_far_as_there_are_some() {
        for (range, expected) in [
            ("bytes=0-3", Some("0123")),
            ("bytes=8-99", Some("89")),
            ("bytes=4-", Some("456789")),
            ("bytes=-3", Some("789")),
            ("bytes=-99", Some("0123456789")),
            ("bytes=10-", None),
            ("bytes=-0", None),
            ("bytes=18446744073709551615-", None),
            ("bytes=0-18446744073709551615", Some("0123456789")),
        ] {
            assert_eq!(bytes(range), expected, "{range}");
        }
        for ignored in ["", "bytes=", "bytes=-", "bytes=3-1", "bytes=0-1,3-4", "lines=1-2", "x"] {
            assert_eq!(Portion::of_header(Some(ignored)), Portion::Whole, "{ignored}");
        }
        assert_eq!(Portion::of_header(None), Portion::Whole);
    }

    #[test]
    fn lines_are_counted_from_1() {
        let text = "a\nb\n\nd";
        let lines = |first, count| {
            let range = Portion::Lines(first, count).of(text.as_bytes()).unwrap();
            &text[range]
        };
        assert_eq!(lines(1, 1), "a\n");
        assert_eq!(lines(2, 2), "b\n\n");
        assert_eq!(lines(4, 9), "d");
        assert_eq!(lines(0, usize::MAX), text);
        assert_eq!((lines(9, 1), lines(2, 0)), ("", ""));
    }
}
