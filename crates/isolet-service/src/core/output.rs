//! Buffers the output of runs, so that not every line becomes a message.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use isolet::Stream;

use super::Listener;
use isolet::internals::lock;

/// Output of this many bytes is sent at once.
const FULL_BYTES: usize = 64 << 10;

/// How long output is buffered.
const PATIENCE: Duration = Duration::from_millis(5);

/// The output of one session's run.
pub(crate) struct Collector {
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// The listener of the run.
    listener: Option<Arc<dyn Listener>>,
    /// In the order of writing.
    pieces: Vec<(Stream, Vec<u8>)>,
    bytes: usize,
    /// The incomplete character at the end of each stream.
    stdout_rest: Vec<u8>,
    stderr_rest: Vec<u8>,
    /// Set while it is in the flusher's queue.
    is_queued: bool,
}

impl Collector {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { pending: Mutex::default() })
    }

    /// Starts buffering for a run.
    pub(crate) fn begin(&self, listener: Arc<dyn Listener>) {
        let mut pending = lock(&self.pending);
        let is_queued = pending.is_queued;
        *pending = Pending { listener: Some(listener), is_queued, ..Pending::default() };
    }

    /// Adds output of the run.
    pub(crate) fn push(self: &Arc<Self>, stream: Stream, bytes: Vec<u8>, flusher: &Flusher) {
        let mut pending = lock(&self.pending);
        pending.bytes += bytes.len();
        match pending.pieces.last_mut() {
            Some((last, piece)) if *last == stream => piece.extend_from_slice(&bytes),
            _ => pending.pieces.push((stream, bytes)),
        }
        if pending.bytes >= FULL_BYTES {
            // Under the lock, so that output stays in order.
            pending.flush(false);
        } else if !mem::replace(&mut pending.is_queued, true) {
            flusher.queue(self);
        }
    }

    /// Sends buffered output. At the end of a run, this includes incomplete characters.
    pub(crate) fn flush(&self, is_end: bool) {
        lock(&self.pending).flush(is_end);
    }
}

impl Pending {
    fn flush(&mut self, is_end: bool) {
        let Some(listener) = self.listener.clone() else { return };
        self.bytes = 0;
        for (stream, piece) in mem::take(&mut self.pieces) {
            let text = self.text(stream, piece);
            if !text.is_empty() {
                listener.output(stream, text);
            }
        }
        for stream in [Stream::Stdout, Stream::Stderr].into_iter().filter(|_| is_end) {
            let rest = mem::take(self.rest(stream));
            if !rest.is_empty() {
                listener.output(stream, String::from_utf8_lossy(&rest).into_owned());
            }
        }
    }

    fn rest(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stderr => &mut self.stderr_rest,
            _ => &mut self.stdout_rest,
        }
    }

    /// Decodes a piece, without an incomplete character at its end.
    fn text(&mut self, stream: Stream, piece: Vec<u8>) -> String {
        let rest = self.rest(stream);
        let mut bytes = mem::take(rest);
        if bytes.is_empty() {
            bytes = piece;
        } else {
            bytes.extend_from_slice(&piece);
        }
        // What is invalid before does not matter: the text is the same however it comes in pieces.
        let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
        let is_incomplete =
            std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
        let end = bytes.len() - if is_incomplete { last.len() } else { 0 };
        *rest = bytes.split_off(end);
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Sends output whose time is over, on a thread that exists while output is buffered.
pub(crate) struct Flusher {
    state: Mutex<FlusherState>,
    changed: Condvar,
    this: Weak<Self>,
}

#[derive(Default)]
struct FlusherState {
    /// In the order of deadlines.
    queue: VecDeque<(Instant, Arc<Collector>)>,
    has_thread: bool,
}

impl Flusher {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            this: Weak::clone(this),
        })
    }

    fn queue(&self, collector: &Arc<Collector>) {
        let mut state = lock(&self.state);
        state.queue.push_back((Instant::now() + PATIENCE, Arc::clone(collector)));
        if !state.has_thread
            && let Some(this) = self.this.upgrade()
        {
            let thread = std::thread::Builder::new().name("isolet-output".to_owned());
            // Without the thread, output is sent at the end of its run.
            state.has_thread = thread.spawn(move || this.run()).is_ok();
        }
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some((due, _)) = state.queue.front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let wait = due.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                let waited = self.changed.wait_timeout(state, wait);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some((_, collector)) = state.queue.pop_front() else { continue };
            drop(state);
            let mut pending = lock(&collector.pending);
            // A client that reads slowly must not delay the output of others.
            pending.is_queued =
                pending.listener.as_ref().is_some_and(|listener| !listener.has_room());
            if !pending.is_queued {
                pending.flush(false);
            }
            let is_queued = pending.is_queued;
            drop(pending);
            state = lock(&self.state);
            if is_queued {
                state.queue.push_back((Instant::now() + PATIENCE, collector));
            }
        }
    }
}
