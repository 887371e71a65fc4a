//! Writes to a worker: directly while its socket accepts data, then from a thread that waits for
//! the worker to read. Nothing else waits for it.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::link::thread;
use crate::support::spin::{self, spin};
use crate::worker::wire::outgoing::Outgoing;

/// How long the caller writes to a worker that keeps reading, however slowly.
const PATIENCE: Duration = Duration::from_millis(2);

/// A frame to write.
pub(super) type Frame = Outgoing<Bytes>;

/// The role of a frame for the worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// The worker has not asked for it.
    Message,
    /// The refusal of a call of the worker's, which it has not asked for otherwise.
    Refusal,
    /// The worker waits for it.
    Reply,
}

/// Writes frames in the order of the calls.
#[derive(Clone)]
pub(super) struct Writer(Arc<Shared>);

struct Shared {
    socket: UnixStream,
    backlog: Mutex<Backlog>,
    /// Notified when a frame of the backlog was written.
    written: Condvar,
}

/// A frame of which the first `written` bytes are in the socket.
struct Waiting {
    kind: FrameKind,
    frame: Arc<Frame>,
    written: usize,
}

/// The frames that the socket has not accepted yet.
#[derive(Default)]
struct Backlog {
    frames: VecDeque<Waiting>,
    /// The size of the refusals among them, in bytes.
    refusal_bytes: usize,
    /// Set while a thread writes them.
    draining: bool,
    /// Set when the worker is gone.
    broken: bool,
}

impl Backlog {
    fn count(&self, is_counted: impl Fn(FrameKind) -> bool) -> usize {
        self.frames.iter().filter(|waiting| is_counted(waiting.kind)).count()
    }
}

impl Writer {
    pub(super) fn new(socket: UnixStream) -> Self {
        let (backlog, written) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { socket, backlog, written }))
    }

    /// Writes a frame, now or later. Does not fail if the worker is gone: the reader reports that.
    pub(super) fn send(&self, kind: FrameKind, frame: Frame) -> io::Result<()> {
        let mut backlog = self.0.lock();
        if backlog.broken {
            return Ok(());
        }
        let mut written = 0;
        if !backlog.draining {
            match self.0.write_while_read(&frame) {
                Ok(count) if count == frame.len() => return Ok(()),
                Ok(count) => written = count,
                Err(_) => {
                    backlog.broken = true;
                    return Ok(());
                }
            }
            let shared = Arc::clone(&self.0);
            thread("isolet-to-worker", move || shared.drain())?;
            backlog.draining = true;
        }
        if kind == FrameKind::Refusal {
            backlog.refusal_bytes += frame.len();
        }
        backlog.frames.push_back(Waiting { kind, frame: Arc::new(frame), written });
        Ok(())
    }

    /// Returns how many messages the worker has not read yet.
    pub(super) fn waiting_messages(&self) -> usize {
        self.0.lock().count(|kind| kind != FrameKind::Reply)
    }

    /// Returns the size of the refusals that the worker has not read yet, in bytes.
    pub(super) fn waiting_refusal_bytes(&self) -> usize {
        self.0.lock().refusal_bytes
    }

    /// Returns how many answers to its requests the worker has not read yet.
    pub(super) fn waiting_replies(&self) -> usize {
        self.0.lock().count(|kind| kind == FrameKind::Reply)
    }

    /// Waits until the worker has read all answers to its requests.
    pub(super) fn wait_for_replies(&self) {
        let backlog = self.0.lock();
        let waiting = |backlog: &mut Backlog| backlog.count(|kind| kind == FrameKind::Reply) > 0;
        drop(self.0.written.wait_while(backlog, waiting));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes as long as the worker makes room in the socket, for up to `PATIENCE`. A value of a
    /// megabyte is several times what a socket holds, and starting a thread for the rest would take
    /// longer.
    fn write_while_read(&self, frame: &Frame) -> io::Result<usize> {
        let start = Instant::now();
        let mut written = self.write_now(frame, 0)?;
        while written < frame.len() && start.elapsed() < PATIENCE {
            let mut after = Ok(written);
            spin(spin::budget(), || {
                after = self.write_now(frame, written);
                !matches!(after, Ok(after) if after == written)
            });
            match after? {
                after if after == written => break,
                after => written = after,
            }
        }
        Ok(written)
    }

    /// Writes as much as the socket accepts without waiting. Returns how much of the frame is
    /// written in total.
    fn write_now(&self, frame: &Frame, mut written: usize) -> io::Result<usize> {
        while written < frame.len() {
            match self.write(frame, written, SendFlags::DONTWAIT) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(written)
    }

    /// Writes part of the rest of a frame.
    fn write(&self, frame: &Frame, written: usize, flags: SendFlags) -> rustix::io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        loop {
            let rest = frame.after(written);
            match sendmsg(&self.socket, &rest, &mut nothing, flags | SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                done => return done,
            }
        }
    }

    /// Writes the backlog until it is empty.
    fn drain(&self) {
        let mut backlog = self.lock();
        // A frame stays in the backlog, and counts, until it is written.
        while let Some(Waiting { frame, written, .. }) = backlog.frames.front() {
            let (frame, mut written) = (Arc::clone(frame), *written);
            drop(backlog);
            let mut result = Ok(());
            while written < frame.len() && result.is_ok() {
                match self.write(&frame, written, SendFlags::empty()) {
                    Ok(count) => written += count,
                    Err(error) => result = Err(error),
                }
            }
            backlog = self.lock();
            if let Some(Waiting { kind: FrameKind::Refusal, frame, .. }) =
                backlog.frames.pop_front()
            {
                backlog.refusal_bytes -= frame.len();
            }
            if result.is_err() {
                backlog.broken = true;
                backlog.frames.clear();
                backlog.refusal_bytes = 0;
            }
            self.written.notify_all();
        }
        backlog.draining = false;
    }
}
