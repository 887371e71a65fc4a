//! What is written to a worker: at once what its socket takes while the worker reads it, the rest by a thread that
//! waits for the worker to read. Nobody else waits for it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::link::thread;
use crate::look::look;

/// How long the caller writes to a worker that reads, however slowly.
const PATIENCE: Duration = Duration::from_millis(2);

/// What a frame is to the worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has not asked for it.
    Message,
    /// It waits for it.
    Reply,
}

/// Writes frames in the order in which they come.
#[derive(Clone)]
pub(super) struct Writer(Arc<Shared>);

struct Shared {
    socket: UnixStream,
    backlog: Mutex<Backlog>,
    /// Told when a frame of the backlog was written.
    written: Condvar,
}

/// What the socket has not taken.
#[derive(Default)]
struct Backlog {
    frames: VecDeque<(Kind, Vec<u8>)>,
    /// A thread writes them.
    draining: bool,
    /// The worker is gone.
    broken: bool,
}

impl Backlog {
    fn count(&self, kind: Kind) -> usize {
        self.frames.iter().filter(|(of, _)| *of == kind).count()
    }
}

impl Writer {
    pub(super) fn new(socket: UnixStream) -> Self {
        let (backlog, written) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { socket, backlog, written }))
    }

    /// Writes a frame, now or later. That the worker is gone is for who reads from it to say.
    pub(super) fn send(&self, kind: Kind, mut frame: Vec<u8>) -> io::Result<()> {
        let mut backlog = self.0.lock();
        if backlog.broken {
            return Ok(());
        }
        if !backlog.draining {
            match self.0.write_while_read(&frame) {
                Ok(count) if count == frame.len() => return Ok(()),
                Ok(count) => drop(frame.drain(..count)),
                Err(_) => {
                    backlog.broken = true;
                    return Ok(());
                }
            }
            let shared = Arc::clone(&self.0);
            thread("isolet-to-worker", move || shared.drain())?;
            backlog.draining = true;
        }
        backlog.frames.push_back((kind, frame));
        Ok(())
    }

    /// How many messages the worker has still to read.
    pub(super) fn waiting_messages(&self) -> usize {
        self.0.lock().count(Kind::Message)
    }

    /// Waits until the worker has read what it has asked for.
    pub(super) fn wait_for_replies(&self) {
        let backlog = self.0.lock();
        let waiting = |backlog: &mut Backlog| backlog.count(Kind::Reply) > 0;
        drop(self.0.written.wait_while(backlog, waiting));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what the socket takes as long as the worker makes room in it, for a while: a value of a megabyte is
    /// several times what a socket holds, and to start a thread for the rest takes longer than it does.
    fn write_while_read(&self, frame: &[u8]) -> io::Result<usize> {
        let start = Instant::now();
        let mut written = self.write_now(frame)?;
        while written < frame.len() && start.elapsed() < PATIENCE {
            let mut more = Ok(0);
            look(PATIENCE, || {
                more = self.write_now(&frame[written..]);
                !matches!(more, Ok(0))
            });
            match more? {
                0 => break,
                count => written += count,
            }
        }
        Ok(written)
    }

    /// Writes what the socket takes without waiting.
    fn write_now(&self, frame: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < frame.len() {
            match send(&self.socket, &frame[written..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(written)
    }

    /// Writes the backlog until there is none.
    fn drain(&self) {
        let mut backlog = self.lock();
        while let Some((kind, frame)) = backlog.frames.pop_front() {
            // It counts until it is written.
            backlog.frames.push_front((kind, Vec::new()));
            drop(backlog);
            let written = (&self.socket).write_all(&frame);
            backlog = self.lock();
            backlog.frames.pop_front();
            if written.is_err() {
                backlog.broken = true;
                backlog.frames.clear();
            }
            self.written.notify_all();
        }
        backlog.draining = false;
    }
}
