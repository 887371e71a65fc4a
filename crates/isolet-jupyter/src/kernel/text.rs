//! The output of a cell on its way to front ends: gathered for a moment, cut between characters.

use std::time::Duration;

use isolet::Stream;
use tokio::time::Instant;

/// How long output may wait for more of it.
const MOMENT: Duration = Duration::from_millis(15);
/// The size from which it waits no longer.
const MANY: usize = 64 << 10;

/// What a stream of a cell has written and nobody was told of yet.
#[derive(Default)]
pub(super) struct Text {
    pending: Option<Pending>,
    stdout: u64,
    stderr: u64,
    max_bytes: Option<u64>,
}

struct Pending {
    stream: Stream,
    bytes: Vec<u8>,
    since: Instant,
}

/// A piece of text for front ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) stream: Stream,
    pub(super) text: String,
}

impl Text {
    /// Passes on at most so many bytes of each stream.
    pub(super) fn new(max_bytes: Option<u64>) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Adds output. Returns the piece that has to be told now, if there is one: of the other
    /// stream, or because it is long.
    pub(super) fn add(&mut self, stream: Stream, bytes: &[u8]) -> Option<Piece> {
        let written = if stream == Stream::Stderr { &mut self.stderr } else { &mut self.stdout };
        let room = self.max_bytes.map_or(u64::MAX, |most| most.saturating_sub(*written));
        *written += bytes.len() as u64;
        let bytes = &bytes[..usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len())];
        if bytes.is_empty() {
            return None;
        }
        let is_other = self.pending.as_ref().is_some_and(|pending| pending.stream != stream);
        let before = if is_other { self.take_all() } else { None };
        let new = || Pending { stream, bytes: Vec::new(), since: Instant::now() };
        let pending = self.pending.get_or_insert_with(new);
        pending.bytes.extend_from_slice(bytes);
        if before.is_none() && pending.bytes.len() >= MANY { self.take_whole() } else { before }
    }

    /// Returns when the output has waited long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.since + MOMENT)
    }

    /// Takes the output up to its last whole character.
    pub(super) fn take_whole(&mut self) -> Option<Piece> {
        let mut pending = self.pending.take()?;
        let rest = pending.bytes.split_off(pending.bytes.len() - unfinished(&pending.bytes));
        if !rest.is_empty() {
            // The rest of the character comes with what follows.
            let (stream, since) = (pending.stream, Instant::now());
            self.pending = Some(Pending { stream, bytes: rest, since });
        }
        piece(&pending)
    }

    /// Takes all of the output.
    pub(super) fn take_all(&mut self) -> Option<Piece> {
        piece(&self.pending.take()?)
    }

    /// Returns how much of each stream was left out, by the streams' names.
    pub(super) fn left_out(&self) -> Vec<(&'static str, u64)> {
        let most = self.max_bytes.unwrap_or(u64::MAX);
        [("output", self.stdout), ("error", self.stderr)]
            .into_iter()
            .filter_map(|(name, written)| Some((name, written.checked_sub(most)?)))
            .filter(|(_, dropped)| *dropped > 0)
            .collect()
    }
}

fn piece(pending: &Pending) -> Option<Piece> {
    let text = String::from_utf8_lossy(&pending.bytes).into_owned();
    (!text.is_empty()).then_some(Piece { stream: pending.stream, text })
}

/// Returns how many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=3.min(bytes.len()) {
        let byte = bytes[bytes.len() - back];
        let needed = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if back < needed { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(stream: Stream, text: &str) -> Piece {
        Piece { stream, text: text.to_owned() }
    }

    #[test]
    fn output_is_gathered_until_another_stream_writes() {
        let mut text = Text::new(None);
        assert_eq!(text.due(), None);
        assert_eq!(text.add(Stream::Stdout, b"a"), None);
        assert_eq!(text.add(Stream::Stdout, b"b"), None);
        assert!(text.due().is_some());
        assert_eq!(text.add(Stream::Stderr, b"c"), Some(piece(Stream::Stdout, "ab")));
        assert_eq!(text.take_all(), Some(piece(Stream::Stderr, "c")));
        assert_eq!((text.take_all(), text.due()), (None, None));
    }

    #[test]
    fn a_character_is_told_whole() {
        let mut text = Text::new(None);
        let sun = "\u{1f31e}".as_bytes();
        text.add(Stream::Stdout, b"a");
        text.add(Stream::Stdout, &sun[..3]);
        assert_eq!(text.take_whole(), Some(piece(Stream::Stdout, "a")));
        text.add(Stream::Stdout, &sun[3..]);
        assert_eq!(text.take_whole(), Some(piece(Stream::Stdout, "\u{1f31e}")));
        text.add(Stream::Stdout, &sun[..1]);
        assert_eq!(text.take_all(), Some(piece(Stream::Stdout, "\u{fffd}")));
    }

    #[test]
    fn long_output_does_not_wait_and_what_is_too_long_is_counted() {
        let mut text = Text::new(None);
        let many = vec![b'x'; MANY];
        assert_eq!(text.add(Stream::Stdout, &many).unwrap().text.len(), MANY);
        let mut text = Text::new(Some(3));
        text.add(Stream::Stdout, b"ab");
        text.add(Stream::Stdout, b"cde");
        assert_eq!(text.take_all(), Some(piece(Stream::Stdout, "abc")));
        assert_eq!(text.left_out(), [("output", 2)]);
    }
}
