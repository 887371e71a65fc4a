//! A bounded pipe from a run's output to its reader: while it is full, the guest waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::data::execution::Truncation;
use crate::data::limits::Limits;
use crate::data::output::{OutputChunk, Stream};

/// The maximum length of a chunk, in bytes. Waiting output of one stream is merged into chunks up
/// to this length.
const CHUNK_BYTES: usize = 64 << 10;

/// Makes an empty pipe.
pub(crate) fn pipe() -> (PipeWriter, PipeReader) {
    let shared = Arc::new(Shared::default());
    (PipeWriter(Arc::clone(&shared)), PipeReader(shared))
}

/// The host's end of a pipe.
pub(crate) struct PipeWriter(Arc<Shared>);

/// The reader's end of a pipe. After it is dropped, output is discarded without waiting.
pub(crate) struct PipeReader(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified whenever a writer that waits for room may continue.
    room: Condvar,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<OutputChunk>,
    /// The number of bytes in `chunks`.
    queued: usize,
    /// Set when nothing more will be written.
    is_ended: bool,
    /// Set when there is no reader any more.
    is_closed: bool,
    /// Set while the run is being stopped: writers do not wait until the reader has caught up.
    is_released: bool,
    dropped: Truncation,
    reader: Option<Waker>,
}

impl State {
    fn has_room(&self, count: usize) -> bool {
        self.queued.saturating_add(count) <= Limits::QUEUED_OUTPUT_BYTES
    }

    fn must_wait(&self, count: usize) -> bool {
        !(self.has_room(count) || self.is_ended || self.is_closed || self.is_released)
    }

    /// Queues bytes for the reader. Returns the waker of a reader that waits for them.
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Option<Waker> {
        self.queued += bytes.len();
        match self.chunks.back_mut() {
            Some(last)
                if last.stream == stream && last.bytes.len() + bytes.len() <= CHUNK_BYTES =>
            {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.chunks.push_back(OutputChunk { stream, bytes: bytes.to_vec() }),
        }
        self.reader.take()
    }

    fn drop_bytes(&mut self, stream: Stream, count: usize) {
        let dropped = match stream {
            Stream::Stdout => &mut self.dropped.stdout_bytes,
            Stream::Stderr => &mut self.dropped.stderr_bytes,
        };
        *dropped += count as u64;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PipeWriter {
    /// Queues bytes, and waits for room.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) {
        for piece in bytes.chunks(CHUNK_BYTES) {
            let must_wait = |state: &mut State| state.must_wait(piece.len());
            let state = self.0.room.wait_while(self.0.lock(), must_wait);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            if state.is_ended || state.is_closed {
                return;
            }
            let reader = if state.has_room(piece.len()) {
                state.push(stream, piece)
            } else {
                state.drop_bytes(stream, piece.len());
                None
            };
            drop(state);
            reader.inspect(Waker::wake_by_ref);
        }
    }

    /// Queues bytes from the host itself, without waiting.
    pub(crate) fn write_now(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.0.lock();
        if !(state.is_ended || state.is_closed) {
            let reader = state.push(stream, bytes);
            drop(state);
            reader.inspect(Waker::wake_by_ref);
        }
    }

    /// Returns `true` if writing `count` bytes would have to wait.
    pub(crate) fn must_wait(&self, count: usize) -> bool {
        self.0.lock().must_wait(count)
    }

    /// Ends all waits for the reader until it has caught up. Output that finds no room meanwhile is
    /// dropped.
    pub(crate) fn release(&self) {
        self.0.lock().is_released = true;
        self.0.room.notify_all();
    }

    /// Marks the output as complete.
    pub(crate) fn end(&self) {
        let reader = {
            let mut state = self.0.lock();
            state.is_ended = true;
            state.reader.take()
        };
        self.0.room.notify_all();
        reader.inspect(Waker::wake_by_ref);
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.end();
    }
}

impl PipeReader {
    /// Returns the next chunk, or registers the task to be woken for it; `None` after the last one.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<OutputChunk>> {
        let mut state = self.0.lock();
        let Some(chunk) = state.chunks.pop_front() else {
            if state.is_ended {
                return Poll::Ready(None);
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        state.queued -= chunk.bytes.len();
        state.is_released &= !state.chunks.is_empty();
        drop(state);
        self.0.room.notify_all();
        Poll::Ready(Some(chunk))
    }

    /// Returns how much output was dropped because the run was stopped while the reader lagged
    /// behind.
    pub(crate) fn dropped(&self) -> Truncation {
        self.0.lock().dropped
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        state.chunks.clear();
        state.queued = 0;
        drop(state);
        self.0.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::support::block_on::block_on;

    fn next(reader: &mut PipeReader) -> Option<OutputChunk> {
        block_on(std::future::poll_fn(|context| reader.poll_next(context)))
    }

    /// Makes a pipe and fills it completely.
    fn full() -> (PipeWriter, PipeReader) {
        let (writer, reader) = pipe();
        writer.write(Stream::Stdout, &vec![b'x'; Limits::QUEUED_OUTPUT_BYTES]);
        assert!(writer.must_wait(1));
        (writer, reader)
    }

    /// Starts a write on another thread. The write has to wait until something else happens.
    fn write_later(writer: &Arc<PipeWriter>, bytes: Vec<u8>) -> mpsc::Receiver<()> {
        let (done, is_done) = mpsc::channel();
        let writer = Arc::clone(writer);
        thread::spawn(move || {
            writer.write(Stream::Stdout, &bytes);
            let _ = done.send(());
        });
        is_done
    }

    #[test]
    fn all_that_is_written_is_read_in_its_order_and_no_more_than_fits_ever_waits() {
        let (writer, mut reader) = pipe();
        let written: Vec<u8> = (0..=u8::MAX).cycle().take(5_000_001).collect();
        let expected = written.clone();
        thread::spawn(move || {
            let (mut rest, mut size) = (&written[..], 1);
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                writer.write(Stream::Stdout, piece);
                (rest, size) = (after, size * 3 % 1_000_003);
            }
        });
        let mut read = Vec::new();
        loop {
            let queued = reader.0.lock().queued;
            assert!(queued <= Limits::QUEUED_OUTPUT_BYTES, "{queued}");
            let Some(chunk) = next(&mut reader) else { break };
            assert!((1..=CHUNK_BYTES).contains(&chunk.bytes.len()));
            read.extend(chunk.bytes);
        }
        assert!(read == expected);
        assert_eq!(reader.dropped(), Truncation::default());
    }

    #[test]
    fn streams_keep_their_order_and_pieces_of_one_come_together() {
        let (writer, mut reader) = pipe();
        for (stream, bytes) in [
            (Stream::Stdout, "a"),
            (Stream::Stdout, "b"),
            (Stream::Stderr, "c"),
            (Stream::Stdout, "d"),
        ] {
            writer.write(stream, bytes.as_bytes());
        }
        drop(writer);
        let chunks = std::iter::from_fn(|| next(&mut reader)).map(|chunk| chunk.bytes);
        assert_eq!(chunks.collect::<Vec<_>>(), [&b"ab"[..], b"c", b"d"]);
    }

    #[test]
    fn a_run_that_is_stopped_waits_for_no_reader_and_what_is_dropped_is_counted() {
        let (writer, mut reader) = full();
        let writer = Arc::new(writer);
        let written = write_later(&writer, vec![b'y'; CHUNK_BYTES + 1]);
        writer.release();
        written.recv().unwrap();
        assert_eq!(reader.dropped().stdout_bytes, CHUNK_BYTES as u64 + 1);
        // The reader catches up, after which writers wait for it again.
        while reader.0.lock().queued > 0 {
            assert!(next(&mut reader).unwrap().bytes.iter().all(|byte| *byte == b'x'));
        }
        writer.write(Stream::Stdout, &vec![b'z'; Limits::QUEUED_OUTPUT_BYTES]);
        assert!(writer.must_wait(1));
    }

    #[test]
    fn a_writer_goes_on_when_the_reader_goes_or_the_run_ends() {
        let (writer, reader) = full();
        let writer = Arc::new(writer);
        let written = write_later(&writer, vec![b'y'; 1 << 20]);
        drop(reader);
        written.recv().unwrap();
        let (writer, _reader) = full();
        let writer = Arc::new(writer);
        let written = write_later(&writer, vec![b'y'; 1 << 20]);
        writer.end();
        written.recv().unwrap();
    }

    #[test]
    fn what_the_host_writes_waits_for_nobody() {
        let (writer, mut reader) = full();
        writer.write_now(Stream::Stderr, b"note");
        drop(writer);
        assert_eq!(std::iter::from_fn(|| next(&mut reader)).last().unwrap().bytes, b"note");
    }
}
