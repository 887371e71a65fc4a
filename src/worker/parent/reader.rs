//! Reads a worker's frames and has them answered, one frame after another: for a thread
//! ([`super::readers`]), or for a caller ([`super::shift`]).

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;

use super::shift::Shift;
use crate::protocol::Reply;
use crate::worker::wire::incoming::Incoming;
use crate::worker::wire::output_ring::{Consumer, Piece};
use crate::worker::wire::{self, FromWorker};

/// How long the thread waits for a frame before it leaves the worker. Most sessions that are used
/// at all are used again before.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How long the thread waits for more output before it looks again.
const OUTPUT_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The same for a caller that reads.
const CALLER_PAUSE: Duration = Duration::from_micros(200);

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
    ring: Consumer,
    /// What was taken from the ring and was not passed on yet.
    output: VecDeque<Piece>,
    /// When output was last taken from the ring without a frame that announces it.
    looked: Option<Instant>,
    /// Set if output was the last thing that came. Guests usually print several lines in a row, and
    /// looking again after a while is cheaper than a wake-up per line.
    more_is_likely: bool,
    /// Set when no more frames will arrive, with the reason.
    ended: Option<io::Result<()>>,
}

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Thread,
    Caller,
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
            ended: None,
        }
    }

    /// Returns the socket, which is readable when there is something to read: of a reader that
    /// [`serve`](Self::serve) has returned, also for output.
    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Reads until no more frames arrive. Returns the reader if none has arrived for
    /// [`PATIENCE`]. Pauses while a caller reads.
    pub(super) fn serve(mut self, shift: &Shift) -> Option<Self> {
        while self.ended.is_none() {
            if !self.wait_and_read() {
                return Some(self);
            }
            self = shift.offer(self);
        }
        if let Some(reason) = self.ended.take() {
            self.answers.end(reason);
        }
        None
    }

    /// Waits for data, as the thread, and has it answered. Returns `false` if none has come; the
    /// worker then announces its next output.
    fn wait_and_read(&mut self) -> bool {
        // What a caller has read and left for the thread.
        let is_left = !self.output.is_empty() || !matches!(self.incoming.first(), Ok(None));
        if is_left {
            self.more_is_likely = false;
        } else if self.more_is_likely {
            self.more_is_likely = false;
            // Whatever it returns, the next step looks.
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&OUTPUT_PAUSE));
        } else {
            if self.ring.fall_asleep() {
                // Unlike a receive that waits, it does not wake when the worker reads. If it fails,
                // so does the read.
                let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
                if poll(&mut socket, Some(&PATIENCE)) == Ok(0) {
                    return false;
                }
            }
            self.ring.wake_up();
        }
        self.read(By::Thread);
        true
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
            if by == By::Caller && self.answers.may_wait(&frame, body) {
                return Ok(Progress::Thread);
            }
            self.more_is_likely = matches!(frame, FromWorker::Write(_) | FromWorker::Output { .. });
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
        self.ring.take(end, &mut self.output)?;
        Ok(if self.pass_on(by)? { Progress::Came } else { Progress::Thread })
    }

    /// Has the output answered that was taken from the ring. Returns `false` if that is for the
    /// thread.
    fn pass_on(&mut self, by: By) -> io::Result<bool> {
        while let Some(Piece { stream, bytes }) = self.output.front() {
            let frame = FromWorker::Write(*stream);
            if by == By::Caller && self.answers.may_wait(&frame, bytes) {
                return Ok(false);
            }
            self.answers.answer(frame, bytes)?;
            self.output.pop_front();
        }
        Ok(true)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::sync::{Arc, mpsc};
    use std::thread::{self, ThreadId};

    use super::*;
    use crate::data::output::Stream;
    use crate::protocol::HostRequest;
    use crate::support::block_on::PollSource;
    use crate::worker::wire::output_ring::{Producer, ring};

    /// The answered frames, in order, each with the thread that answered it.
    #[derive(Debug, PartialEq, Eq)]
    pub(in super::super) enum Seen {
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

    pub(in super::super) struct Worker {
        pub(in super::super) socket: UnixStream,
        output: Producer,
        pub(in super::super) shift: Arc<Shift>,
        seen: mpsc::Receiver<(Seen, ThreadId)>,
        thread: ThreadId,
        count: u8,
    }

    impl Worker {
        fn start() -> Self {
            Self::served(|reader, shift| {
                let serve = move || {
                    let mut reader = Some(reader);
                    while let Some(next) = reader {
                        reader = next.serve(&shift);
                    }
                };
                thread::spawn(serve).thread().id()
            })
        }

        /// Starts a worker that is read as `serve` does it, which returns the thread that reads.
        pub(in super::super) fn served(serve: impl FnOnce(Reader, Arc<Shift>) -> ThreadId) -> Self {
            let (socket, ours) = UnixStream::pair().unwrap();
            let (sender, seen) = mpsc::channel();
            let (output, ring) = ring();
            let reader = Reader::new(ours, ring, u64::MAX, Box::new(Recorder(sender)));
            let shift = Arc::new(Shift::default());
            let thread = serve(reader, Arc::clone(&shift));
            Self { socket, output, shift, seen, thread, count: 0 }
        }

        /// Prints a number.
        pub(in super::super) fn print(&mut self) {
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
        worker.send_to_caller(&wire::encode(&request).unwrap());
        // Nothing more needs to come for it.
        assert_eq!(worker.next(), Seen::Input);
        worker.hand_over();
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

    /// Longer than any wait of a test that does not hang.
    pub(in super::super) const HANG: Duration = Duration::from_mins(1);

    impl Worker {
        pub(in super::super) fn next(&self) -> Seen {
            self.seen.recv_timeout(HANG).unwrap().0
        }

        /// Writes to the ring, and tells nobody.
        pub(in super::super) fn write(&mut self, text: &str) {
            assert!(self.output.write(Stream::Stdout, text.as_bytes()));
        }

        pub(in super::super) fn must_announce(&self) -> bool {
            self.output.must_announce()
        }

        /// Announces what is in the ring.
        pub(in super::super) fn announce(&mut self) {
            let to = self.output.announce().unwrap();
            self.socket.write_all(&wire::encode(&FromWorker::Output { to }).unwrap()).unwrap();
        }
    }

    #[test]
    fn output_comes_before_the_frames_that_follow_it_and_after_those_before_it() {
        for by_caller in [false, true] {
            let mut worker = Worker::start();
            if by_caller {
                worker.hand_over();
            }
            let request = FromWorker::Request(HostRequest::ReadStdin(1));
            let request = wire::encode(&request).unwrap();
            for _ in 0..100 {
                worker.write("one");
                worker.announce();
                worker.socket.write_all(&request).unwrap();
                worker.write("two");
                let mut seen = Vec::new();
                let started = Instant::now();
                while seen.len() < 3 {
                    if by_caller {
                        worker.shift.poll_once();
                    }
                    if worker.output.must_announce() {
                        worker.announce();
                    }
                    seen.extend(worker.seen.try_recv().map(|(seen, _)| seen));
                    assert!(started.elapsed() < HANG, "{seen:?}");
                }
                let output = |text: &str| Seen::Output(text.into());
                assert_eq!(seen, [output("one"), Seen::Input, output("two")]);
                worker.output.announce();
            }
        }
    }

    #[test]
    fn a_parent_that_sleeps_asks_to_be_told() {
        let mut worker = Worker::start();
        for _ in 0..20 {
            worker.write("line");
            let started = Instant::now();
            // It may still be looking by itself.
            let seen = loop {
                if worker.output.must_announce() {
                    worker.announce();
                }
                if let Ok((seen, _)) = worker.seen.try_recv() {
                    break seen;
                }
                assert!(started.elapsed() < HANG);
            };
            assert_eq!(seen, Seen::Output(b"line".to_vec()));
            worker.output.announce();
        }
    }

    #[test]
    fn the_output_of_a_worker_that_was_killed_is_there() {
        for by_caller in [false, true] {
            let mut worker = Worker::start();
            worker.write("first");
            worker.announce();
            assert_eq!(worker.next(), Seen::Output(b"first".to_vec()));
            if by_caller {
                worker.hand_over();
            }
            worker.write("last");
            worker.socket.shutdown(std::net::Shutdown::Both).unwrap();
            if by_caller {
                while worker.shift.poll_once() {}
            }
            assert_eq!(worker.next(), Seen::Output(b"last".to_vec()));
            assert_eq!(worker.next(), Seen::End(true));
        }
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
