//! Tests of reading, and a worker for those of who reads.

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
    Reply,
    End(bool),
}

struct Recorder(mpsc::Sender<(Seen, ThreadId)>);

impl Answer for Recorder {
    fn report(&mut self, _: bool, _: Vec<u8>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reply(&mut self, _: Reply) -> io::Result<()> {
        self.0.send((Seen::Reply, thread::current().id())).unwrap();
        Ok(())
    }

    fn is_for_thread(&self, by: By, frame: &FromWorker<'_>, _: &[u8]) -> bool {
        let waits = matches!(frame, FromWorker::Request(HostRequest::ReadStdin(_)));
        waits && by != By::Thread
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
    pub(in super::super) lease: Arc<ReaderLease>,
    seen: mpsc::Receiver<(Seen, ThreadId)>,
    thread: ThreadId,
    count: u8,
}

impl Worker {
    fn start() -> Self {
        Self::served(|reader, lease| {
            let serve = move || {
                let mut reader = Some(reader);
                while let Some(next) = reader {
                    reader = next.serve(&lease, PATIENCE);
                }
            };
            thread::spawn(serve).thread().id()
        })
    }

    /// Starts a worker that is read as `serve` does it, which returns the thread that reads.
    pub(in super::super) fn served(
        serve: impl FnOnce(Reader, Arc<ReaderLease>) -> ThreadId,
    ) -> Self {
        let (socket, ours) = UnixStream::pair().unwrap();
        let (sender, seen) = mpsc::channel();
        let (output, ring) = ring();
        let reader = Reader::new(ours, ring, u64::MAX, Box::new(Recorder(sender)));
        let lease = Arc::new(ReaderLease::default());
        let thread = serve(reader, Arc::clone(&lease));
        Self { socket, output, lease, seen, thread, count: 0 }
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
        while self.lease.poll_once() {}
    }

    /// Prints and reads until a caller has read the output.
    fn hand_over(&mut self) {
        loop {
            self.print();
            let (seen, thread) = loop {
                self.lease.poll_once();
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
        assert!(!worker.lease.poll_once());
        worker.lease.release();
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
        worker.lease.poll_once();
        both.extend(worker.seen.try_recv());
    }
    assert_eq!(both[0], (Seen::Input, worker.thread));
    assert_eq!(both[1].0, Seen::Output(vec![worker.count]));
}

const PATIENCE: Patience =
    Patience { after_reply: Duration::from_millis(100), otherwise: Duration::from_millis(100) };

/// Longer than any wait of a test that does not hang.
pub(in super::super) const HANG: Duration = Duration::from_mins(1);

impl Worker {
    pub(in super::super) fn next(&self) -> Seen {
        self.next_and_thread().0
    }

    /// Returns what was answered next, if something was.
    pub(in super::super) fn try_next(&self) -> Option<Seen> {
        self.seen.try_recv().ok().map(|(seen, _)| seen)
    }

    /// Returns what was answered next, and the thread that did so.
    pub(in super::super) fn next_and_thread(&self) -> (Seen, ThreadId) {
        self.seen.recv_timeout(HANG).unwrap()
    }

    pub(in super::super) fn send(&mut self, frame: &FromWorker<'_>) {
        self.socket.write_all(&wire::encode(frame).unwrap()).unwrap();
    }

    /// Writes to the ring, and tells nobody.
    pub(in super::super) fn write(&mut self, text: &str) {
        assert!(self.output.write(Stream::Stdout, text.as_bytes()));
    }

    pub(in super::super) fn must_announce(&self) -> bool {
        self.output.must_announce()
    }

    /// Announces what is in the ring, if that was not done before.
    pub(in super::super) fn announce(&mut self) {
        let Some(to) = self.output.announce() else { return };
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
                    worker.lease.poll_once();
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
            while worker.lease.poll_once() {}
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
            worker.lease.leave_to_thread();
        } else {
            while worker.lease.poll_once() {}
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
