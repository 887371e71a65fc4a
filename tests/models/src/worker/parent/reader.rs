//! A reader of a worker's frames, which are few here. It does with them what the library's does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use crate::support::alarm::Alarm;
use crate::support::lock::lock;
use crate::support::sync::{Condvar, Mutex, PoisonError};

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Thread,
    Caller,
}

/// The result of reading.
pub(crate) enum Progress {
    Came,
    Nothing,
    Thread,
}

/// A frame of the worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Output(u32),
    /// A request that only the thread answers.
    Request(u32),
    /// The reply to the command of this number.
    Reply(u32),
    End,
}

/// The socket from the worker.
#[derive(Default)]
pub(crate) struct Socket {
    state: Mutex<SocketState>,
    came: Condvar,
}

#[derive(Default)]
struct SocketState {
    frames: VecDeque<Frame>,
    /// A caller that polls the socket and its alarm.
    polling: Option<Arc<Alarm>>,
}

impl Socket {
    pub(crate) fn send(&self, frame: Frame) {
        let polling = {
            let mut state = lock(&self.state);
            state.frames.push_back(frame);
            state.polling.clone()
        };
        self.came.notify_all();
        if let Some(alarm) = polling {
            alarm.look();
        }
    }

    /// Waits until there is a frame.
    fn wait(&self) {
        let none = |state: &mut SocketState| state.frames.is_empty();
        let waited = self.came.wait_while(lock(&self.state), none);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// What the frames came to.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) frames: Vec<(Frame, By)>,
    /// The command whose reply came last.
    pub(crate) replied: u32,
    /// Woken by a reply.
    pub(crate) waker: Option<Waker>,
}

pub(crate) struct Reader {
    socket: Arc<Socket>,
    seen: Arc<Mutex<Seen>>,
    has_replied: bool,
    has_ended: bool,
}

impl Reader {
    pub(crate) fn new(socket: Arc<Socket>, seen: Arc<Mutex<Seen>>) -> Self {
        Self { socket, seen, has_replied: false, has_ended: false }
    }

    /// Waits for a frame and reads it, as the thread.
    pub(crate) fn wait_and_read(&mut self) {
        self.socket.wait();
        self.read(By::Thread);
    }

    pub(super) fn read(&mut self, by: By) -> Progress {
        let frame = {
            let mut state = lock(&self.socket.state);
            match state.frames.front() {
                None => return Progress::Nothing,
                Some(Frame::Request(_)) if by == By::Caller => return Progress::Thread,
                Some(_) => {}
            }
            state.frames.pop_front().expect("it is there")
        };
        self.has_replied = matches!(frame, Frame::Reply(_));
        self.has_ended = frame == Frame::End;
        let waker = {
            let mut seen = lock(&self.seen);
            seen.frames.push((frame, by));
            match frame {
                Frame::Reply(command) => {
                    seen.replied = command;
                    seen.waker.take()
                }
                _ => None,
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        if self.has_ended { Progress::Thread } else { Progress::Came }
    }

    /// Waits for a frame, as a caller, until the alarm rings.
    pub(super) fn wait(&mut self, alarm: &Alarm) -> bool {
        let own = Alarm::of_this_thread();
        lock(&self.socket.state).polling = own;
        alarm.wait_or(|| !lock(&self.socket.state).frames.is_empty());
        lock(&self.socket.state).polling = None;
        alarm.silence();
        true
    }

    pub(super) fn is_worker_here(&self) -> bool {
        false
    }

    pub(crate) fn has_replied(&self) -> bool {
        self.has_replied
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }
}
