//! Reads a worker's frames and has them answered, by a thread or by a session's caller that waits
//! anyway. Only one of them reads at a time, one frame after another.
//!
//! A caller that reads saves two wake-ups, its own and the thread's, which take longer than the
//! work. It reads only while it spins ([`crate::support::block_on`]). Before it sleeps or does
//! something else, it hands reading back to the thread.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rustix::net::RecvFlags;

use crate::protocol::Reply;
use crate::support::block_on::PollSource;
use crate::support::lock::lock;
use crate::support::spin::spin;
use crate::worker::wire::incoming::Incoming;
use crate::worker::wire::{self, FromWorker};

/// Answers a worker's frames.
pub(super) trait Answer: Send {
    /// Returns `true` if answering the frame may take time.
    fn may_wait(&self, frame: &FromWorker<'_>, body: &[u8]) -> bool;
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
    /// Set if the last frame was output. Guests usually print several lines in a row, and spinning
    /// is cheaper than a wake-up per line.
    more_is_likely: bool,
    /// Set when no more frames will arrive, with the reason.
    ended: Option<io::Result<()>>,
}

/// The result of reading.
enum Progress {
    /// Data was read.
    Came,
    /// There was no data.
    Nothing,
    /// The next step is for the thread: it may take time, or the worker has ended.
    Thread,
}

impl Reader {
    pub(super) fn new(socket: UnixStream, max_frame_bytes: u64, answers: Box<dyn Answer>) -> Self {
        Self {
            socket,
            incoming: Incoming::new(max_frame_bytes),
            answers,
            more_is_likely: false,
            ended: None,
        }
    }

    /// Reads until no more frames arrive. Pauses while a caller reads.
    pub(super) fn serve(mut self, shift: &Shift) {
        while self.ended.is_none() {
            let mut progress = Progress::Nothing;
            if self.more_is_likely {
                spin(Duration::MAX, || {
                    progress = self.read(RecvFlags::DONTWAIT);
                    !matches!(progress, Progress::Nothing)
                });
            }
            if !matches!(progress, Progress::Came) {
                self.read(RecvFlags::empty());
            }
            self = shift.offer(self);
        }
        if let Some(reason) = self.ended.take() {
            self.answers.end(reason);
        }
    }

    /// Reads data and has it answered. With [`RecvFlags::DONTWAIT`] neither waits.
    fn read(&mut self, flags: RecvFlags) -> Progress {
        match self.try_read(flags) {
            Ok(progress) => progress,
            Err(error) => {
                self.ended = Some(Err(error));
                Progress::Thread
            }
        }
    }

    fn try_read(&mut self, flags: RecvFlags) -> io::Result<Progress> {
        let Self { socket, incoming, answers, more_is_likely, ended } = self;
        if ended.is_some() {
            return Ok(Progress::Thread);
        }
        if incoming.first()?.is_none() {
            match incoming.receive(socket, flags) {
                Ok(true) => {}
                Ok(false) => {
                    *ended = Some(Ok(()));
                    return Ok(Progress::Thread);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Progress::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
        while let Some(content) = incoming.first()? {
            let (frame, body) = wire::decode(content)?;
            if flags.contains(RecvFlags::DONTWAIT) && answers.may_wait(&frame, body) {
                return Ok(Progress::Thread);
            }
            *more_is_likely = matches!(frame, FromWorker::Write(_));
            let length = body.len();
            match frame {
                FromWorker::Report { is_peek } => {
                    answers.report(is_peek, incoming.take_body(length))?;
                }
                FromWorker::Reply(mut reply) => {
                    let body = incoming.take_body(length);
                    if let Some(report) = reply.report() {
                        *report = body;
                    }
                    answers.reply(reply)?;
                }
                frame => {
                    answers.answer(frame, body)?;
                    incoming.take_first();
                }
            }
        }
        Ok(Progress::Came)
    }
}

/// Decides whether the thread or a caller reads.
#[derive(Default)]
pub(super) struct Shift {
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Default)]
struct Turn {
    /// A caller wants to read.
    is_wanted: bool,
    /// The thread must act before a caller may read.
    is_refused: bool,
    /// The reader, while a caller may use it. Otherwise the thread has it.
    reader: Option<Reader>,
}

impl Shift {
    /// Lets a caller read, between two reads of the thread. If a caller wants to, returns only when
    /// it is done.
    fn offer(&self, reader: Reader) -> Reader {
        let mut turn = lock(&self.turn);
        turn.is_refused = false;
        if !turn.is_wanted || reader.ended.is_some() {
            return reader;
        }
        turn.reader = Some(reader);
        loop {
            let wanted = |turn: &mut Turn| turn.is_wanted;
            turn = self.changed.wait_while(turn, wanted).unwrap_or_else(PoisonError::into_inner);
            if let Some(reader) = turn.reader.take() {
                return reader;
            }
        }
    }

    /// Hands reading back to the thread, so that it sees the end of a killed worker. If a caller is
    /// reading at the moment, the caller sees it.
    pub(super) fn leave_to_thread(&self) {
        let turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.end_turn(turn);
    }

    fn end_turn(&self, mut turn: MutexGuard<'_, Turn>) {
        turn.is_wanted = false;
        if turn.reader.is_some() {
            self.changed.notify_one();
        }
    }
}

impl PollSource for Shift {
    fn poll_once(&self) -> bool {
        let mut turn = lock(&self.turn);
        if turn.is_refused {
            return false;
        }
        turn.is_wanted = true;
        let Some(reader) = &mut turn.reader else { return false };
        match reader.read(RecvFlags::DONTWAIT) {
            Progress::Came => true,
            Progress::Nothing => false,
            Progress::Thread => {
                turn.is_refused = true;
                self.end_turn(turn);
                false
            }
        }
    }

    fn release(&self) {
        self.end_turn(lock(&self.turn));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, mpsc};
    use std::thread::{self, ThreadId};

    use super::*;
    use crate::data::output::Stream;
    use crate::protocol::HostRequest;

    /// The answered frames, in order, each with the thread that answered it.
    #[derive(Debug, PartialEq, Eq)]
    enum Seen {
        Output(Vec<u8>),
        Input,
        Failed,
        End(bool),
    }

    struct Recorder(mpsc::Sender<(Seen, ThreadId)>);

    impl Answer for Recorder {
        fn report(&mut self, _: bool, _: Vec<u8>) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn reply(&mut self, _: Reply) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn may_wait(&self, frame: &FromWorker<'_>, _: &[u8]) -> bool {
            matches!(frame, FromWorker::Request(HostRequest::ReadStdin(_)))
        }

        fn answer(&mut self, frame: FromWorker<'_>, body: &[u8]) -> io::Result<()> {
            let seen = match frame {
                FromWorker::Write(_) => Seen::Output(body.to_vec()),
                FromWorker::Request(HostRequest::ReadStdin(_)) => Seen::Input,
                _ => Seen::Failed,
            };
            let failed = seen == Seen::Failed;
            self.0.send((seen, thread::current().id())).unwrap();
            // Fails as it would without a thread for the rest of an answer.
            if failed { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        }

        fn end(&mut self, reason: io::Result<()>) {
            self.0.send((Seen::End(reason.is_ok()), thread::current().id())).unwrap();
        }
    }

    struct Worker {
        socket: UnixStream,
        shift: Arc<Shift>,
        seen: mpsc::Receiver<(Seen, ThreadId)>,
        thread: ThreadId,
        count: u8,
    }

    impl Worker {
        fn start() -> Self {
            let (socket, ours) = UnixStream::pair().unwrap();
            let (sender, seen) = mpsc::channel();
            let reader = Reader::new(ours, u64::MAX, Box::new(Recorder(sender)));
            let shift = Arc::new(Shift::default());
            let theirs = Arc::clone(&shift);
            let thread = thread::spawn(move || reader.serve(&theirs)).thread().id();
            Self { socket, shift, seen, thread, count: 0 }
        }

        /// Prints a number.
        fn print(&mut self) {
            self.count += 1;
            let head = wire::encode_after(Vec::new(), &FromWorker::Write(Stream::Stdout), 1);
            self.socket.write_all(&[head.unwrap(), vec![self.count]].concat()).unwrap();
        }

        /// Sends bytes that a caller reads.
        fn send_to_caller(&mut self, bytes: &[u8]) {
            self.hand_over();
            self.socket.write_all(bytes).unwrap();
            while self.shift.poll_once() {}
        }

        /// Prints and reads until a caller has read the output.
        fn hand_over(&mut self) {
            loop {
                self.print();
                let (seen, thread) = loop {
                    self.shift.poll_once();
                    if let Ok(seen) = self.seen.try_recv() {
                        break seen;
                    }
                };
                assert_eq!(seen, Seen::Output(vec![self.count]));
                if thread != self.thread {
                    return assert_eq!(thread, thread::current().id());
                }
            }
        }
    }

    #[test]
    fn a_caller_reads_until_it_leaves_and_then_the_thread_does() {
        let mut worker = Worker::start();
        worker.print();
        assert_eq!(worker.seen.recv().unwrap(), (Seen::Output(vec![1]), worker.thread));
        for _ in 0..3 {
            worker.hand_over();
            assert!(!worker.shift.poll_once());
            worker.shift.release();
            worker.print();
            let count = worker.count;
            assert_eq!(worker.seen.recv().unwrap(), (Seen::Output(vec![count]), worker.thread));
        }
    }

    #[test]
    fn what_may_take_a_while_is_left_to_the_thread_and_nothing_overtakes_it() {
        let mut worker = Worker::start();
        worker.hand_over();
        let request = FromWorker::Request(HostRequest::ReadStdin(1));
        worker.socket.write_all(&wire::encode(&request).unwrap()).unwrap();
        worker.print();
        let mut both = Vec::new();
        while both.len() < 2 {
            worker.shift.poll_once();
            both.extend(worker.seen.try_recv());
        }
        assert_eq!(both[0], (Seen::Input, worker.thread));
        assert_eq!(both[1].0, Seen::Output(vec![worker.count]));
    }

    #[test]
    fn the_end_is_seen_by_the_thread_whoever_reads() {
        for leaves in [false, true] {
            let mut worker = Worker::start();
            worker.hand_over();
            worker.socket.shutdown(std::net::Shutdown::Both).unwrap();
            if leaves {
                // The caller has left without releasing the reader, and the session is closed.
                worker.shift.leave_to_thread();
            } else {
                while worker.shift.poll_once() {}
            }
            assert_eq!(worker.seen.recv().unwrap(), (Seen::End(true), worker.thread));
        }
    }

    #[test]
    fn a_frame_that_a_caller_cannot_read_is_the_end_for_the_thread() {
        let mut worker = Worker::start();
        worker.send_to_caller(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff]);
        assert_eq!(worker.seen.recv().unwrap(), (Seen::End(false), worker.thread));
    }

    #[test]
    fn a_frame_that_cannot_be_answered_is_not_answered_again() {
        let mut worker = Worker::start();
        let request = FromWorker::Request(HostRequest::NetClose(1));
        worker.send_to_caller(&wire::encode(&request).unwrap());
        assert_eq!(worker.seen.recv().unwrap(), (Seen::Failed, thread::current().id()));
        assert_eq!(worker.seen.recv().unwrap(), (Seen::End(false), worker.thread));
    }
}
