//! Reads a worker's frames and has them answered, one frame after another: for a thread
//! ([`super::readers`]), or for a caller ([`super::reader_lease`]).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::reader_lease::ReaderLease;
use crate::protocol::Reply;
use crate::support::alarm::Alarm;
use crate::worker::wire::incoming::Incoming;
use crate::worker::wire::output_ring::{Consumer, Piece};
use crate::worker::wire::{self, FromWorker};

/// How long a reader waits for more output before it looks again.
pub(super) const OUTPUT_PAUSE: Duration = Duration::from_millis(1);

/// The same for a caller that reads.
const CALLER_PAUSE: Duration = Duration::from_micros(200);

/// Answers a worker's frames.
pub(super) trait Answer: Send {
    /// Returns `true` if this reader must leave the frame to the thread, because answering it may
    /// take time.
    fn is_for_thread(&self, by: By, frame: &FromWorker<'_>, body: &[u8]) -> bool;
    /// Carries out a frame. An error ends the worker.
    fn answer(&mut self, frame: FromWorker<'_>, body: &[u8]) -> io::Result<()>;
    /// Takes a report ahead of its reply.
    fn report(&mut self, is_peek: bool, report: Vec<u8>) -> io::Result<()>;
    /// Takes the reply to a command or a peek.
    fn reply(&mut self, reply: Reply) -> io::Result<()>;
    /// Called when no more frames will arrive, with the error that ended them.
    fn end(&mut self, reason: io::Result<()>);
}

/// Reads a worker's frames and has them answered.
pub(super) struct Reader {
    socket: UnixStream,
    incoming: Incoming,
    answers: Box<dyn Answer>,
    ring: Consumer,
    /// What was taken from the ring and was not passed on yet.
    output: VecDeque<Piece>,
    /// When output was last taken from the ring without a frame that announces it.
    looked: Option<Instant>,
    /// Set if output was the last thing that came. Guests usually print several lines in a row, and
    /// looking again after a while is cheaper than a wake-up per line.
    more_is_likely: bool,
    /// Set if a reply was the last thing that came: the worker now has nothing to do.
    has_replied: bool,
    /// Set when no more frames will arrive, with the reason.
    ended: Option<io::Result<()>>,
}

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Thread,
    Caller,
    EventLoop,
}

/// How long a thread waits for a frame before it leaves the worker.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// If the last frame was a reply.
    pub(super) after_reply: Duration,
    pub(super) otherwise: Duration,
}

/// What a reader waits for before it reads.
pub(super) enum Wait {
    /// There is something to read.
    Not,
    /// More output, which the worker does not announce: for [`OUTPUT_PAUSE`], or until the socket
    /// is readable.
    Briefly,
    /// The socket. The worker announces its next output.
    UntilReadable,
}

/// The result of reading.
pub(super) enum Progress {
    /// Data was read.
    Came,
    /// There was no data.
    Nothing,
    /// The next step is for the thread: it may take time, or the worker has ended.
    Thread,
}

impl AsRawFd for Reader {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Reader {
    pub(super) fn new(
        socket: UnixStream,
        ring: Consumer,
        max_frame_bytes: u64,
        answers: Box<dyn Answer>,
    ) -> Self {
        Self {
            socket,
            incoming: Incoming::new(max_frame_bytes),
            answers,
            ring,
            output: VecDeque::new(),
            looked: None,
            more_is_likely: false,
            has_replied: false,
            ended: None,
        }
    }

    /// Returns the socket, which is readable when there is something to read: of a reader that
    /// [`serve`](Self::serve) has returned, also for output.
    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Reads, as the thread, until no more frames arrive. Returns the reader if none has arrived
    /// for as long as `patience` says. Pauses while a caller reads.
    pub(super) fn serve(mut self, lease: &ReaderLease, patience: Patience) -> Option<Self> {
        while self.ended.is_none() {
            if !self.wait_and_read(patience) {
                return Some(self);
            }
            self = lease.offer(self);
        }
        if let Some(reason) = self.ended.take() {
            self.answers.end(reason);
        }
        None
    }

    /// Waits for data, as the thread, and has it answered. Returns `false` if none has come; the
    /// worker then announces its next output.
    fn wait_and_read(&mut self, patience: Patience) -> bool {
        match self.before_wait() {
            Wait::Not => {}
            // Whatever it returns, the next step looks.
            Wait::Briefly => _ = self.is_readable_within(OUTPUT_PAUSE),
            Wait::UntilReadable => {
                let limit =
                    if self.has_replied { patience.after_reply } else { patience.otherwise };
                if !self.is_readable_within(limit) {
                    return false;
                }
            }
        }
        self.read(By::Thread);
        true
    }

    /// Returns `true` if the worker runs on this thread's processor, so that a spinning thread
    /// would hold it up. Tells it where this thread runs.
    pub(super) fn is_worker_here(&self) -> bool {
        self.ring.tell_processor();
        self.ring.is_worker_here()
    }

    /// Waits for data, as a caller, until the alarm rings. Returns `false` if it cannot wait.
    pub(super) fn wait(&mut self, alarm: &Alarm) -> bool {
        let limit = match self.before_wait() {
            Wait::Not => Some(Duration::ZERO),
            Wait::Briefly => Some(OUTPUT_PAUSE),
            Wait::UntilReadable => None,
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let sources = [self.socket.as_fd(), alarm.as_fd()];
        let mut fds = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN));
        let waited = poll(&mut fds, limit.as_ref());
        if !fds[1].revents().is_empty() {
            alarm.silence();
        }
        self.ring.wake_up();
        matches!(waited, Ok(_) | Err(Errno::INTR))
    }

    /// Waits until the socket is readable, or for this time. Returns `false` only if it is not.
    fn is_readable_within(&self, limit: Duration) -> bool {
        // Unlike a receive that waits, it does not wake when the worker reads. If it fails, so does
        // the read.
        let limit = Timespec::try_from(limit).ok();
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], limit.as_ref()) != Ok(0)
    }

    /// Returns what to wait for before the next [`read`](Self::read).
    pub(super) fn before_wait(&mut self) -> Wait {
        // What another reader has read and left.
        let is_left = !self.output.is_empty() || !matches!(self.incoming.first(), Ok(None));
        let more_is_likely = std::mem::take(&mut self.more_is_likely);
        if is_left {
            Wait::Not
        } else if more_is_likely {
            Wait::Briefly
        } else if self.ring.fall_asleep() {
            Wait::UntilReadable
        } else {
            Wait::Not
        }
    }

    /// Frees memory that an idle worker does not need.
    pub(super) fn free(&mut self) {
        self.incoming.free();
    }

    /// Ends the worker, which nobody can read.
    pub(super) fn give_up(mut self, error: io::Error) {
        self.answers.end(Err(error));
    }

    /// Returns `true` if the worker's last frame was a reply.
    pub(super) fn has_replied(&self) -> bool {
        self.has_replied
    }

    /// Returns `true` if the last read has emptied the socket.
    pub(super) fn has_emptied_socket(&self) -> bool {
        self.incoming.has_emptied_socket()
    }

    /// Returns `true` if no more frames will arrive, which the thread has to act on.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Reads the data that has arrived and has it answered.
    pub(super) fn read(&mut self, by: By) -> Progress {
        match self.try_read(by) {
            Ok(progress) => progress,
            Err(error) => {
                self.ended = Some(Err(error));
                Progress::Thread
            }
        }
    }

    fn try_read(&mut self, by: By) -> io::Result<Progress> {
        // Callers do not wait for the socket, and so do not have output announced.
        if by != By::Caller {
            self.ring.wake_up();
        }
        if self.ended.is_some() || !self.pass_on(by)? {
            return Ok(Progress::Thread);
        }
        if self.incoming.first()?.is_none() {
            // Looked at before the socket: what the worker has sent before this output is there.
            let end = self.ring.end();
            match self.incoming.receive(&self.socket, RecvFlags::DONTWAIT) {
                Ok(true) => {}
                Ok(false) => {
                    let end = self.ring.end();
                    self.ring.take(end, &mut self.output)?;
                    if self.pass_on(by)? {
                        self.ended = Some(Ok(()));
                    }
                    return Ok(Progress::Thread);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.look(end, by);
                }
                Err(error) => return Err(error),
            }
        }
        while let Some(content) = self.incoming.first()? {
            let (frame, body) = wire::decode(content)?;
            if self.answers.is_for_thread(by, &frame, body) {
                return Ok(Progress::Thread);
            }
            self.more_is_likely = matches!(frame, FromWorker::Write(_) | FromWorker::Output { .. });
            self.has_replied = matches!(frame, FromWorker::Reply(_));
            let length = body.len();
            match frame {
                FromWorker::Output { to } => {
                    self.incoming.take_first();
                    self.ring.take(to, &mut self.output)?;
                    if !self.pass_on(by)? {
                        return Ok(Progress::Thread);
                    }
                }
                FromWorker::Report { is_peek } => {
                    self.answers.report(is_peek, self.incoming.take_body(length))?;
                }
                FromWorker::Reply(mut reply) => {
                    let body = self.incoming.take_body(length);
                    if let Some(report) = reply.report() {
                        *report = body;
                    }
                    self.answers.reply(reply)?;
                }
                frame => {
                    self.answers.answer(frame, body)?;
                    self.incoming.take_first();
                }
            }
        }
        Ok(Progress::Came)
    }

    /// Takes output that no frame has announced, up to `end`. No frame may be waiting.
    fn look(&mut self, end: u64, by: By) -> io::Result<Progress> {
        // A caller that reads while a guest prints would take it line by line.
        let is_early =
            by == By::Caller && self.looked.is_some_and(|at| at.elapsed() < CALLER_PAUSE);
        if is_early || !self.ring.has_output() {
            return Ok(Progress::Nothing);
        }
        self.looked = Some(Instant::now());
        self.more_is_likely = true;
        self.has_replied = false;
        self.ring.take(end, &mut self.output)?;
        Ok(if self.pass_on(by)? { Progress::Came } else { Progress::Thread })
    }

    /// Has the output answered that was taken from the ring. Returns `false` if that is for the
    /// thread.
    fn pass_on(&mut self, by: By) -> io::Result<bool> {
        while let Some(Piece { stream, bytes }) = self.output.front() {
            let frame = FromWorker::Write(*stream);
            if self.answers.is_for_thread(by, &frame, bytes) {
                return Ok(false);
            }
            self.answers.answer(frame, bytes)?;
            self.output.pop_front();
        }
        Ok(true)
    }
}

#[cfg(test)]
pub(super) mod tests;
