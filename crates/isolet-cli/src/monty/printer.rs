//! Output of a feed on its way to the client: collected, so that a line does not cost a message.

use std::time::Duration;

use isolet::Stream;
use tokio::time::Instant;

use super::messages::events::{Event, Print, PrintSegment};

/// From how many bytes on output is passed on at once.
const FULL_BYTES: usize = 64 << 10;

/// The time for which output is collected, unless the client sets another one.
const PATIENCE: Duration = Duration::from_millis(5);

const STDOUT: i32 = 1;
const STDERR: i32 = 2;

/// The output that was written and not passed on yet.
pub(super) struct Printer {
    patience: Duration,
    segments: Vec<(i32, Vec<u8>)>,
    bytes: usize,
    /// When the output has waited long enough.
    due: Option<Instant>,
}

impl Printer {
    pub(super) fn new(interval_ms: Option<u32>) -> Self {
        let patience = interval_ms.map_or(PATIENCE, |ms| Duration::from_millis(ms.into()));
        Self { patience, segments: Vec::new(), bytes: 0, due: None }
    }

    pub(super) fn push(&mut self, stream: Stream, written: Vec<u8>) {
        let stream = if stream == Stream::Stderr { STDERR } else { STDOUT };
        self.bytes += written.len();
        match self.segments.last_mut() {
            Some((last, bytes)) if *last == stream => bytes.extend_from_slice(&written),
            _ => self.segments.push((stream, written)),
        }
        let now = Instant::now();
        let due = if self.bytes >= FULL_BYTES { now } else { now + self.patience };
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Returns when output is to be passed on, if there is any.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the collected output; before the end of a feed, leaves an incomplete character at its
    /// end.
    pub(super) fn take(&mut self, is_end: bool) -> Option<Event> {
        self.due = None;
        self.bytes = 0;
        let mut segments = std::mem::take(&mut self.segments);
        if !is_end && let Some((stream, bytes)) = segments.last_mut() {
            let whole = match std::str::from_utf8(bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => bytes.len(),
            };
            let rest = bytes.split_off(whole);
            if !rest.is_empty() {
                self.bytes = rest.len();
                self.segments.push((*stream, rest));
            }
        }
        let segments: Vec<PrintSegment> = segments
            .into_iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(stream, bytes)| {
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                PrintSegment { stream, text }
            })
            .collect();
        (!segments.is_empty()).then_some(Event::Print(Print { segments }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(event: Option<Event>) -> Vec<(i32, String)> {
        let Some(Event::Print(print)) = event else { return Vec::new() };
        print.segments.into_iter().map(|one| (one.stream, one.text)).collect()
    }

    #[test]
    fn output_keeps_its_order_and_whole_characters() {
        let mut printer = Printer::new(None);
        printer.push(Stream::Stdout, b"a".to_vec());
        printer.push(Stream::Stdout, b"b\n".to_vec());
        printer.push(Stream::Stderr, b"c".to_vec());
        printer.push(Stream::Stdout, b"d\xc3".to_vec());
        let expected = [(STDOUT, "ab\n"), (STDERR, "c"), (STDOUT, "d")];
        assert_eq!(texts(printer.take(false)), expected.map(|(to, text)| (to, text.to_owned())));
        assert_eq!(printer.due(), None);
        printer.push(Stream::Stdout, b"\xa4".to_vec());
        assert_eq!(texts(printer.take(false)), [(STDOUT, "\u{e4}".to_owned())]);
        printer.push(Stream::Stdout, b"\xc3".to_vec());
        assert_eq!(texts(printer.take(true)), [(STDOUT, "\u{fffd}".to_owned())]);
    }
}
