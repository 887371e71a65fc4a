//! The worker's end of the socket to its parent. The isolate's thread reads it itself, whenever it
//! waits for a message from its session or the answer to a request.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;

use super::readable::Readable;
use super::socket_watch::SocketWatch;
use crate::data::output::Stream;
use crate::fs::FileError;
use crate::protocol::{Control, HostReply, Inbox, Message};
use crate::support::lock::lock;
use crate::support::spin::{self, spin};
use crate::worker::wire::incoming::Incoming;
use crate::worker::wire::outgoing::Outgoing;
use crate::worker::wire::output_ring::Producer;
use crate::worker::wire::{self, FileBytes, FromWorker, ToWorker};

/// An answer from the parent.
pub(crate) enum Answer {
    Reply(HostReply),
    FileBytes(Result<FileBytes, FileError>),
}

/// The session's mailbox, once there is one. A template boots without.
pub(crate) type Connection = Arc<OnceLock<Mailbox>>;

/// A non-blocking socket with frames in both directions. Callers that wait use `poll`.
pub(crate) struct Mailbox {
    started: Instant,
    socket: UnixStream,
    received: Mutex<Received>,
    /// Locked while a frame is written.
    output: Mutex<Producer>,
    interrupts: Arc<Interrupts>,
    messages_taken: AtomicU64,
}

/// Data that has arrived and was not taken yet.
struct Received {
    incoming: Incoming,
    messages: VecDeque<Message>,
    answers: VecDeque<Answer>,
    /// Set when the parent is gone.
    closed: bool,
}

/// Tracks which run is interrupted. The number arrives on another socket than the run, before or
/// after it.
#[derive(Default)]
pub(crate) struct Interrupts {
    numbers: Mutex<Numbers>,
    changed: Condvar,
    control: OnceLock<Arc<dyn Control>>,
}

#[derive(Default)]
struct Numbers {
    current: u64,
    /// The run that was interrupted last, and how often.
    interrupted: (u64, u64),
}

impl Numbers {
    /// Returns how often the current run was interrupted.
    fn of_current(&self) -> u64 {
        let (run, times) = self.interrupted;
        if run == self.current { times } else { 0 }
    }
}

impl Mailbox {
    pub(crate) fn new(
        socket: UnixStream,
        interrupts: Arc<Interrupts>,
        output: Producer,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // The first call makes system calls that kill a locked down worker.
        output.tell_processor();
        let (received, output) = (Mutex::new(Received::new()), Mutex::new(output));
        let messages_taken = AtomicU64::new(0);
        Ok(Self { started: Instant::now(), socket, received, output, interrupts, messages_taken })
    }

    /// Returns how many messages were taken so far.
    pub(crate) fn messages_taken(&self) -> u64 {
        self.messages_taken.load(Ordering::Relaxed)
    }

    /// Returns when the session started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Writes output. What there is no room for goes as a frame.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let mut output = lock(&self.output);
        if !output.write(stream, bytes) {
            let head = wire::encode_after(Vec::new(), &FromWorker::Write(stream), bytes.len())?;
            return self.send_after_output(&mut output, head, bytes);
        }
        if output.must_announce() {
            self.send_after_output(&mut output, Vec::new(), &[])?;
        }
        Ok(())
    }

    /// Writes a frame, after the output so far.
    pub(crate) fn send(&self, head: Vec<u8>, body: &[u8]) -> io::Result<()> {
        self.send_after_output(&mut lock(&self.output), head, body)
    }

    fn send_after_output(
        &self,
        output: &mut Producer,
        head: Vec<u8>,
        body: &[u8],
    ) -> io::Result<()> {
        let head = match output.announce() {
            Some(to) => [wire::encode(&FromWorker::Output { to })?, head].concat(),
            None => head,
        };
        let frame = Outgoing::new(head, body);
        let mut sent = 0;
        while sent < frame.len() {
            match (&self.socket).write_vectored(&frame.after(sent)) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the socket accepts data. The parent usually reads a frame longer than the
    /// socket's buffer as it is written.
    fn wait_for_room(&self) {
        let now = Some(Duration::ZERO);
        if !spin(spin::budget(), || self.wait_for(PollFlags::OUT, now)) {
            self.wait_for(PollFlags::OUT, None);
        }
    }

    /// Waits until the socket can be read.
    pub(super) fn wait_to_read(&self) {
        self.wait_for(PollFlags::IN, None);
    }

    /// Begins anew in a copy of the worker, with the descriptors that the parent has given it.
    pub(super) fn renew(&self) -> io::Result<()> {
        *lock(&self.received) = Received::new();
        self.interrupts.renew();
        lock(&self.output).renew()
    }

    /// Waits until this many interrupts of the run have arrived.
    pub(crate) fn wait_for_interrupts(&self, times: u64) {
        self.interrupts.wait_for(times);
    }

    /// Waits until the socket is ready for `what`, or until `limit`. The caller tries again in any
    /// case.
    fn wait_for(&self, what: PollFlags, limit: Option<Duration>) -> bool {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        poll(&mut [PollFd::new(&self.socket, what)], limit.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Waits for the answer to the most recent request.
    pub(crate) fn answer(&self) -> io::Result<Answer> {
        let mut received = lock(&self.received);
        loop {
            if let Some(answer) = received.answers.pop_front() {
                return Ok(answer);
            }
            if received.closed {
                return Err(io::Error::other("the host is gone"));
            }
            match self.receive(&mut received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for(PollFlags::IN, None);
                }
                done => done?,
            }
        }
    }

    /// Receives data and sorts the frames. The error is `WouldBlock` if there is none.
    fn receive(&self, received: &mut Received) -> io::Result<()> {
        let Received { incoming, messages, answers, closed } = received;
        if !incoming.receive(&self.socket, RecvFlags::empty())? {
            *closed = true;
        }
        while let Some(content) = incoming.first()? {
            let (frame, body) = wire::decode(content)?;
            let body = body.len();
            match frame {
                ToWorker::Message(head) => {
                    messages.push_back(head.join(incoming.take_body(body)));
                    continue;
                }
                ToWorker::Reply(reply) => answers.push_back(Answer::Reply(reply)),
                ToWorker::FileBytes(bytes) => answers.push_back(Answer::FileBytes(bytes)),
                ToWorker::Run(number) => self.interrupts.begin(number),
                ToWorker::Setup(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            incoming.take_first();
        }
        lock(&self.output).tell_processor();
        Ok(())
    }

    /// Takes the next message. The error is `WouldBlock` if there is none yet; any other error
    /// means that no more will come.
    fn take(&self) -> io::Result<Message> {
        let mut received = lock(&self.received);
        loop {
            if let Some(taken) = self.take_received(&mut received) {
                return taken;
            }
            self.receive(&mut received)?;
        }
    }

    /// Takes the next message, as [`Self::take`], without receiving any. Returns `None` if there is
    /// none yet.
    fn take_received(&self, received: &mut Received) -> Option<io::Result<Message>> {
        if let Some(message) = received.messages.pop_front() {
            self.messages_taken.fetch_add(1, Ordering::Relaxed);
            return Some(Ok(message));
        }
        received.closed.then(|| Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

impl Received {
    fn new() -> Self {
        Self {
            // Frames from the parent are trusted, so their length is not limited.
            incoming: Incoming::new(u64::MAX),
            messages: VecDeque::new(),
            answers: VecDeque::new(),
            closed: false,
        }
    }
}

impl Interrupts {
    /// Keeps the thread that passes interrupts on waiting while the process is copied.
    pub(super) fn hold(&self) -> MutexGuard<'_, impl Sized> {
        lock(&self.numbers)
    }

    fn renew(&self) {
        *lock(&self.numbers) = Numbers::default();
        if let Some(control) = self.control.get() {
            control.clear_interrupt();
        }
    }

    pub(crate) fn connect(&self, control: Arc<dyn Control>) {
        // A worker has only one isolate, so this is set once.
        let _ = self.control.set(control);
    }

    /// Interrupts the run of this number, now or when it begins.
    pub(crate) fn interrupt(&self, run: u64) {
        let mut numbers = lock(&self.numbers);
        let (last, times) = numbers.interrupted;
        numbers.interrupted = (run, if run == last { times + 1 } else { 1 });
        self.changed.notify_all();
        if numbers.current == run
            && let Some(control) = self.control.get()
        {
            control.interrupt();
        }
    }

    fn begin(&self, run: u64) {
        let mut numbers = lock(&self.numbers);
        numbers.current = run;
        let Some(control) = self.control.get() else { return };
        control.clear_interrupt();
        if numbers.of_current() > 0 {
            control.interrupt();
        }
    }

    /// Waits until the run was interrupted this often. The parent has announced the interrupt on
    /// one socket and sends it on another.
    fn wait_for(&self, times: u64) {
        let numbers = lock(&self.numbers);
        let is_early = |numbers: &mut Numbers| numbers.of_current() < times;
        drop(self.changed.wait_while(numbers, is_early).unwrap_or_else(PoisonError::into_inner));
    }
}

/// The messages in a mailbox.
pub(crate) struct Messages {
    connection: Connection,
    readiness: Readiness,
}

/// What notifies the event loop that there is data to receive.
enum Readiness {
    /// There is no session yet.
    None,
    EventLoop(Readable),
    Watch(Arc<SocketWatch>),
}

impl Messages {
    pub(crate) fn new(connection: Connection, watch: Option<Arc<SocketWatch>>) -> Self {
        let readiness = watch.map_or(Readiness::None, Readiness::Watch);
        Self { connection, readiness }
    }

    fn take(&self) -> io::Result<Message> {
        self.connection.get().ok_or(io::ErrorKind::NotConnected)?.take()
    }
}

impl Inbox for Messages {
    fn attach(&mut self) -> io::Result<()> {
        // A worker that is locked down while it boots is attached by then.
        if let Readiness::None = self.readiness {
            let mailbox = self.connection.get().ok_or(io::ErrorKind::NotConnected)?;
            self.readiness = Readiness::EventLoop(Readable::new(mailbox.socket.try_clone()?)?);
        }
        Ok(())
    }

    fn try_take(&self) -> Option<Message> {
        self.take().ok()
    }

    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Message>> {
        // Without a session this is a template that is booting, which receives no messages.
        let Some(mailbox) = self.connection.get() else { return Poll::Pending };
        let taken = match &self.readiness {
            Readiness::EventLoop(socket) => {
                let received = mailbox.take_received(&mut lock(&mailbox.received));
                match received {
                    Some(taken) => taken,
                    None => ready!(socket.poll_receive(context, || mailbox.take())),
                }
            }
            Readiness::None | Readiness::Watch(_) => match mailbox.take() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Readiness::Watch(watch) = &self.readiness {
                        watch.ask(context.waker());
                    }
                    return Poll::Pending;
                }
                taken => taken,
            },
        };
        Poll::Ready(taken.ok())
    }

    fn wait(&self, spinning: Duration, limit: Duration) {
        let Some(mailbox) = self.connection.get() else { return };
        let start = Instant::now();
        let mut received = lock(&mailbox.received);
        let mut has_something = || {
            // If the parent is gone or sends invalid data, `take` reports it.
            match mailbox.receive(&mut received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done.is_err() || received.closed || !received.messages.is_empty(),
            }
            !received.messages.is_empty()
        };
        let mut is_there = false;
        spin(spinning.min(limit), || {
            is_there = has_something();
            is_there || lock(&mailbox.output).is_parent_here()
        });
        if is_there || start.elapsed() >= limit {
            return;
        }
        let left = limit.saturating_sub(start.elapsed());
        mailbox.wait_for(PollFlags::IN, Some(left));
    }
}
