//! A worker's output, in memory that it shares with its parent. Writing takes no system call, and
//! what a killed worker has written is still there.
//!
//! The ring has records: a word with a length in bytes and a stream, and that many bytes in words,
//! little-endian. Positions count words and never wrap. The worker owns the position of the end,
//! the parent that of the start; the parent also says when it sleeps and has to be woken by a
//! frame. Both say which processor they run on: who waits for the other on the same one must not
//! spin. To the parent all of it is hostile: it copies words once, and checks the copies.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::{OUTPUT_WORDS, RING};
use crate::data::output::Stream;
use crate::support::processor;
use crate::support::shared_words::SharedWords;
use crate::support::sync::AtomicU64;

/// The number of words for records.
pub(crate) const CAPACITY: u64 = OUTPUT_WORDS as u64;

/// How many words the worker writes before it tells the parent, which may not have looked.
const MUCH: u64 = CAPACITY / 2;

/// Where the words are; those of one side are on a cache line of their own.
pub(crate) const END: usize = 0;
const START: usize = 8;
const ASLEEP: usize = 16;
const WORKER_PROCESSOR: usize = 24;
const PARENT_PROCESSOR: usize = 32;
pub(crate) const RECORDS: usize = 64;

/// The size of the shared memory, in words.
pub(crate) const WORDS: usize = RECORDS + OUTPUT_WORDS;

const WORD: usize = size_of::<u64>();

/// Makes the memory of a ring.
pub(crate) fn file() -> io::Result<OwnedFd> {
    SharedWords::file("isolet-output", WORDS)
}

/// Returns where the word at a position is.
fn index(position: u64) -> usize {
    // A remainder by `CAPACITY` fits into any integer.
    RECORDS + usize::try_from(position % CAPACITY).unwrap_or_default()
}

/// The worker's end of a ring.
pub(crate) struct Producer {
    words: SharedWords,
    end: u64,
    announced: u64,
}

impl Producer {
    /// Maps the memory of a ring. The worker keeps no descriptor of it.
    pub(crate) fn map(file: OwnedFd) -> io::Result<Self> {
        let words = SharedWords::map(file.as_fd(), WORDS)?;
        drop(file);
        Ok(Self { words, end: 0, announced: 0 })
    }

    /// Begins anew in a copy of the worker, with the memory at descriptor [`RING`].
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        self.words.replace(RING)?;
        (self.end, self.announced) = (0, 0);
        Ok(())
    }

    /// Writes a record. Returns `false` if there is no room for it.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &[u8]) -> bool {
        let needed = 1 + bytes.len().div_ceil(WORD) as u64;
        let used = self.end - self.words[START].load(Ordering::Acquire);
        if needed > CAPACITY.saturating_sub(used) {
            return false;
        }
        let header = bytes.len() as u64 | u64::from(stream == Stream::Stderr) << 32;
        let (whole, rest) = bytes.as_chunks::<WORD>();
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&last);
        let words = whole.iter().chain(last).map(|word| u64::from_le_bytes(*word));
        for (position, word) in (self.end..).zip(std::iter::once(header).chain(words)) {
            self.words[index(position)].store(word, Ordering::Relaxed);
        }
        self.end += needed;
        self.words[END].store(self.end, Ordering::SeqCst);
        true
    }

    /// Returns `true` if the parent has to be told of the output.
    pub(crate) fn must_announce(&self) -> bool {
        let asleep = &self.words[ASLEEP];
        self.end - self.announced >= MUCH
            || asleep.load(Ordering::SeqCst) != 0 && asleep.swap(0, Ordering::SeqCst) != 0
    }

    /// Says where this side runs.
    pub(crate) fn tell_processor(&self) {
        tell(&self.words[WORKER_PROCESSOR]);
    }

    /// Returns `true` if the parent was last seen on this thread's processor.
    pub(crate) fn is_parent_here(&self) -> bool {
        is_here(&self.words[PARENT_PROCESSOR])
    }

    /// Returns the end of the output, if the parent was not told of it.
    pub(crate) fn announce(&mut self) -> Option<u64> {
        let before = std::mem::replace(&mut self.announced, self.end);
        (before != self.end).then_some(self.end)
    }
}

/// The parent's end of a ring.
pub(crate) struct Consumer {
    words: SharedWords,
    start: u64,
}

/// Output taken from a ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: Stream,
    pub(crate) bytes: Vec<u8>,
}

impl Consumer {
    pub(crate) fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self { words: SharedWords::map(file, WORDS)?, start: 0 })
    }

    /// Returns where the output ends at present, as the worker says.
    pub(crate) fn end(&self) -> u64 {
        self.words[END].load(Ordering::SeqCst)
    }

    /// Returns `true` if the worker says that there is output.
    pub(crate) fn has_output(&self) -> bool {
        self.end() != self.start
    }

    /// Appends the output up to this position to `pieces`, unless it was taken before.
    pub(crate) fn take(&mut self, to: u64, pieces: &mut VecDeque<Piece>) -> io::Result<()> {
        let (there, wanted) = (self.end().wrapping_sub(self.start), to.wrapping_sub(self.start));
        if there > CAPACITY {
            return Err(violation(format!("{there} words of output, the limit is {CAPACITY}")));
        }
        if wanted > there {
            // Before the start: the output was taken since.
            let is_past = wanted.wrapping_neg() <= self.start;
            let error = || violation(format!("{there} words of output, and said {wanted}"));
            return if is_past { Ok(()) } else { Err(error()) };
        }
        let words = (self.start..to).map(|at| self.words[index(at)].load(Ordering::Relaxed));
        let words: Vec<u64> = words.collect();
        self.start = to;
        self.words[START].store(to, Ordering::Release);
        split(&words, pieces)
    }

    /// Has the worker wake this side for its next output. Returns `false` if there is output
    /// already.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.words[ASLEEP].store(1, Ordering::SeqCst);
        !self.has_output()
    }

    /// Undoes [`fall_asleep`](Self::fall_asleep).
    pub(crate) fn wake_up(&self) {
        self.words[ASLEEP].store(0, Ordering::SeqCst);
    }

    /// Says where this side runs.
    pub(crate) fn tell_processor(&self) {
        tell(&self.words[PARENT_PROCESSOR]);
    }

    /// Returns `true` if the worker says that it was last on this thread's processor.
    pub(crate) fn is_worker_here(&self) -> bool {
        is_here(&self.words[WORKER_PROCESSOR])
    }
}

/// Writes the current processor to a word. A write that changes nothing would take the cache line
/// away from the other side.
fn tell(word: &AtomicU64) {
    let here = processor::current();
    if word.load(Ordering::Relaxed) != here {
        word.store(here, Ordering::Relaxed);
    }
}

fn is_here(word: &AtomicU64) -> bool {
    let there = word.load(Ordering::Relaxed);
    there != 0 && there == processor::current()
}

/// Appends the output of these records, which nobody else can change.
fn split(mut words: &[u64], pieces: &mut VecDeque<Piece>) -> io::Result<()> {
    while let [header, after @ ..] = words {
        let stream = match header >> 32 {
            0 => Stream::Stdout,
            1 => Stream::Stderr,
            other => return Err(violation(format!("output for stream {other}"))),
        };
        let length = usize::try_from(header & u64::from(u32::MAX)).unwrap_or(usize::MAX);
        let Some((record, rest)) = after.split_at_checked(length.div_ceil(WORD)) else {
            let left = after.len() * WORD;
            return Err(violation(format!("output of {length} bytes in {left}")));
        };
        words = rest;
        let target = match pieces.back_mut() {
            Some(last) if last.stream == stream => &mut last.bytes,
            _ => {
                pieces.push_back(Piece { stream, bytes: Vec::new() });
                let Some(last) = pieces.back_mut() else { return Ok(()) };
                &mut last.bytes
            }
        };
        let end = target.len() + length;
        target.extend(record.iter().flat_map(|word| word.to_le_bytes()));
        target.truncate(end);
    }
    Ok(())
}

fn violation(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Makes both ends of a ring.
#[cfg(test)]
pub(crate) fn ring() -> (Producer, Consumer) {
    let file = file().unwrap();
    let consumer = Consumer::map(file.as_fd()).unwrap();
    (Producer::map(file).unwrap(), consumer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(consumer: &mut Consumer, to: u64) -> Result<VecDeque<Piece>, String> {
        let mut pieces = VecDeque::new();
        consumer.take(to, &mut pieces).map_err(|error| error.to_string())?;
        Ok(pieces)
    }

    fn piece(stream: Stream, bytes: &[u8]) -> Piece {
        Piece { stream, bytes: bytes.to_vec() }
    }

    #[test]
    fn what_is_written_is_taken_in_its_order() {
        let (mut producer, mut consumer) = ring();
        for (stream, text) in [
            (Stream::Stdout, "a"),
            (Stream::Stdout, "exactly!"),
            (Stream::Stderr, "more than one word"),
            (Stream::Stdout, ""),
        ] {
            assert!(producer.write(stream, text.as_bytes()));
        }
        let expected = [
            piece(Stream::Stdout, b"aexactly!"),
            piece(Stream::Stderr, b"more than one word"),
            piece(Stream::Stdout, b""),
        ];
        let end = consumer.end();
        assert_eq!(taken(&mut consumer, end).unwrap(), expected);
        assert_eq!(taken(&mut consumer, end).unwrap(), []);
        assert!(!consumer.has_output());
    }

    #[test]
    fn only_what_is_before_a_position_is_taken_and_only_once() {
        let (mut producer, mut consumer) = ring();
        assert!(producer.write(Stream::Stdout, b"before"));
        let to = producer.announce().unwrap();
        assert!(producer.write(Stream::Stdout, b"after"));
        assert_eq!(taken(&mut consumer, to).unwrap(), [piece(Stream::Stdout, b"before")]);
        let end = consumer.end();
        assert_eq!(taken(&mut consumer, end).unwrap(), [piece(Stream::Stdout, b"after")]);
        assert_eq!(taken(&mut consumer, to).unwrap(), []);
    }

    #[test]
    fn a_ring_takes_no_more_than_it_has_room_for_and_goes_round() {
        let (mut producer, mut consumer) = ring();
        let line: Vec<u8> = (0..=u8::MAX).cycle().take(999).collect();
        let mut lines = 0;
        for _ in 0..5 {
            while producer.write(Stream::Stderr, &line) {
                lines += 1;
            }
            let end = consumer.end();
            let pieces = taken(&mut consumer, end).unwrap();
            let all = pieces.into_iter().map(|piece| piece.bytes).collect::<Vec<_>>().concat();
            assert_eq!(all, line.repeat(all.len() / line.len()));
        }
        // A record of 999 bytes takes 126 words.
        assert_eq!(lines, 5 * (CAPACITY / 126));
        assert!(!producer.write(Stream::Stdout, &vec![0; 256 << 10]));
        assert!(producer.write(Stream::Stdout, &vec![0; (256 << 10) - WORD]));
    }

    #[test]
    fn a_parent_that_sleeps_is_told_once_and_one_that_does_not_of_much() {
        let (mut producer, consumer) = ring();
        assert!(producer.write(Stream::Stdout, b"line"));
        assert!(!producer.must_announce());
        assert!(!consumer.fall_asleep());
        assert!(producer.must_announce());
        assert!(!producer.must_announce());
        assert_eq!(producer.announce(), Some(2));
        assert_eq!(producer.announce(), None);
        consumer.wake_up();
        assert!(producer.write(Stream::Stdout, &vec![0; 128 << 10]));
        assert!(producer.must_announce());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_side_sees_the_other_one_on_its_own_processor_only() {
        let (producer, consumer) = ring();
        assert!(!producer.is_parent_here() && !consumer.is_worker_here());
        // A thread may change its processor between two steps, so it tries again.
        let seen = |tell: &dyn Fn(), is_here: &dyn Fn() -> bool| {
            (0..1000).any(|_| {
                tell();
                is_here()
            })
        };
        assert!(seen(&|| producer.tell_processor(), &|| consumer.is_worker_here()));
        assert!(seen(&|| consumer.tell_processor(), &|| producer.is_parent_here()));
        producer.words[WORKER_PROCESSOR].store(u64::MAX, Ordering::Relaxed);
        assert!(!consumer.is_worker_here());
    }

    #[test]
    fn a_ring_that_no_worker_would_write_is_refused() {
        let said = |end: u64, to: u64, header: u64| {
            let (producer, mut consumer) = ring();
            producer.words[END].store(end, Ordering::SeqCst);
            producer.words[RECORDS].store(header, Ordering::SeqCst);
            taken(&mut consumer, to).unwrap_err()
        };
        let more = CAPACITY + 1;
        assert_eq!(said(more, 1, 0), format!("{more} words of output, the limit is {CAPACITY}"));
        assert!(said(u64::MAX, u64::MAX, 0).contains("the limit is"));
        assert_eq!(said(2, 3, 0), "2 words of output, and said 3");
        assert_eq!(said(2, u64::MAX, 0), format!("2 words of output, and said {}", u64::MAX));
        assert_eq!(said(2, 2, 9), "output of 9 bytes in 8");
        assert_eq!(said(2, 2, u64::from(u32::MAX)), "output of 4294967295 bytes in 8");
        assert_eq!(said(2, 2, 2 << 32), "output for stream 2");
    }
}
