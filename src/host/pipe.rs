//! A bounded pipe from a run's output and displays to their reader: while it is full, the guest
//! waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::data::display::Display;
use crate::data::execution::Truncation;
use crate::data::limits::Limits;
use crate::data::output::{OutputChunk, RunEvent, Stream};

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
    events: VecDeque<RunEvent>,
    /// The number of bytes in `events`.
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
    /// Returns `true` if these bytes may be queued. A display that is larger than the limit has
    /// room when nothing else is queued.
    fn has_room(&self, count: usize) -> bool {
        self.queued == 0 || self.queued.saturating_add(count) <= Limits::QUEUED_OUTPUT_BYTES
    }

    fn must_wait(&self, count: usize) -> bool {
        !(self.has_room(count) || self.is_ended || self.is_closed || self.is_released)
    }

    /// Queues bytes for the reader. Returns the waker of a reader that waits for them.
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Option<Waker> {
        self.queued += bytes.len();
        match self.events.back_mut() {
            Some(RunEvent::Output(last))
                if last.stream == stream && last.bytes.len() + bytes.len() <= CHUNK_BYTES =>
            {
                last.bytes.extend_from_slice(bytes);
            }
            _ => {
                let chunk = OutputChunk { stream, bytes: bytes.to_vec() };
                self.events.push_back(RunEvent::Output(chunk));
            }
        }
        self.reader.take()
    }

    /// Queues a display for the reader. Returns the waker of a reader that waits for it.
    fn push_display(&mut self, display: Display) -> Option<Waker> {
        self.queued += display.size();
        self.events.push_back(RunEvent::Display(display));
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
            let mut state = self.wait_for_room(piece.len());
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

    /// Queues a display, and waits for room.
    pub(crate) fn write_display(&self, display: Display) {
        let mut state = self.wait_for_room(display.size());
        if state.is_ended || state.is_closed {
            return;
        }
        let reader = if state.has_room(display.size()) {
            state.push_display(display)
        } else {
            state.dropped.displays += 1;
            None
        };
        drop(state);
        reader.inspect(Waker::wake_by_ref);
    }

    fn wait_for_room(&self, count: usize) -> MutexGuard<'_, State> {
        let must_wait = |state: &mut State| state.must_wait(count);
        let state = self.0.room.wait_while(self.0.lock(), must_wait);
        state.unwrap_or_else(PoisonError::into_inner)
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
    /// Returns the next event, or registers the task to be woken for it; `None` after the last one.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let mut state = self.0.lock();
        let Some(event) = state.events.pop_front() else {
            if state.is_ended {
                return Poll::Ready(None);
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        state.queued -= match &event {
            RunEvent::Output(chunk) => chunk.bytes.len(),
            RunEvent::Display(display) => display.size(),
        };
        state.is_released &= !state.events.is_empty();
        drop(state);
        self.0.room.notify_all();
        Poll::Ready(Some(event))
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
        state.events.clear();
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
    use crate::data::value::{Value, marshal};
    use crate::support::block_on::block_on;

    fn next_event(reader: &mut PipeReader) -> Option<RunEvent> {
        block_on(std::future::poll_fn(|context| reader.poll_next(context)))
    }

    fn next(reader: &mut PipeReader) -> Option<OutputChunk> {
        next_event(reader).map(|event| match event {
            RunEvent::Output(chunk) => chunk,
            RunEvent::Display(display) => panic!("a display of {} bytes", display.size()),
        })
    }

    fn display(size: usize) -> Display {
        let formats = Value::dict([("text/plain", "x".repeat(size - "text/plain".len()))]);
        let mut bytes = Vec::new();
        marshal::encode(&Value::List(vec![false.into(), formats]), &mut bytes);
        Display::decode(&bytes, u64::MAX, 0, 0).unwrap()
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
    fn displays_come_in_their_place_and_a_large_one_when_all_before_was_read() {
        let (writer, mut reader) = pipe();
        writer.write(Stream::Stdout, b"before");
        writer.write_display(display(20));
        writer.write(Stream::Stdout, b"after");
        let size = Limits::QUEUED_OUTPUT_BYTES + 1;
        assert!(writer.must_wait(size));
        let rest = thread::spawn(move || writer.write_display(display(size)));
        let sizes: Vec<usize> = std::iter::from_fn(|| next_event(&mut reader))
            .map(|event| match event {
                RunEvent::Output(chunk) => chunk.bytes.len(),
                RunEvent::Display(display) => display.size(),
            })
            .collect();
        rest.join().unwrap();
        assert_eq!(sizes, [6, 20, 5, size]);
        assert_eq!(reader.dropped(), Truncation::default());
    }

    #[test]
    fn a_display_that_finds_no_room_when_the_run_is_stopped_is_counted() {
        let (writer, reader) = full();
        writer.release();
        writer.write_display(display(20));
        assert_eq!(reader.dropped().displays, 1);
    }

    #[test]
    fn what_the_host_writes_waits_for_nobody() {
        let (writer, mut reader) = full();
        writer.write_now(Stream::Stderr, b"note");
        drop(writer);
        assert_eq!(std::iter::from_fn(|| next(&mut reader)).last().unwrap().bytes, b"note");
    }
}
