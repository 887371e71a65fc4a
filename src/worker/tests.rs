//! Tests of a parent with a hostile worker: whatever the worker sends, it is killed or ignored, and
//! the reason is reported.

mod forks;
mod memory;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::parent::link::{self, Bounds, Ends, Started};
use super::parent::process::Process;
use super::parent::watch::Watched;
use super::wire::output_ring::ring;
use super::wire::{self, FromWorker, MessageHead, ToWorker};
use crate::data::isolation::IsolationReport;
use crate::data::output::Stream;
use crate::data::tool::ToolError;
use crate::fs::{FileError, FileRequest};
use crate::protocol::codec::encode_answer;
use crate::protocol::{Host, HostReply, HostRequest, Message, Reply};

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_mins(1);

const LIMIT: u64 = 1 << 20;
const REPORT_LIMIT: u64 = 500_000;
const BOUNDS: Bounds = Bounds { frame: LIMIT, report: REPORT_LIMIT, resident: 1 << 30 };

/// A host that gives the same answer to every request.
struct TestHost;

impl Host for TestHost {
    fn call(&self, _: HostRequest<'_>) -> HostReply {
        HostReply::Bytes(b"an answer".to_vec())
    }

    fn read_file(&self, _: u32, _: u64, into: &mut [u8]) -> Result<u32, FileError> {
        into.fill(7);
        Ok(u32::try_from(into.len()).unwrap())
    }
}

/// Makes a parent, and the worker's end of its socket, which the test uses. The process is an
/// unrelated one that does nothing and can only be killed.
fn parent() -> (Started, UnixStream) {
    let (started, theirs, _) = parent_with_interrupts();
    (started, theirs)
}

/// As [`parent`], with the worker's end of the socket for interrupts.
fn parent_with_interrupts() -> (Started, UnixStream, UnixStream) {
    parent_with(Arc::new(TestHost))
}

fn parent_of(host: Arc<dyn Host>) -> (Started, UnixStream) {
    let (started, theirs, _) = parent_with(host);
    (started, theirs)
}

fn parent_with(host: Arc<dyn Host>) -> (Started, UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (interrupts, numbers) = UnixStream::pair().unwrap();
    interrupts.set_nonblocking(true).unwrap();
    let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let child = Process::Child(child);
    let ends = Ends { socket: ours, interrupts, ring: ring().1 };
    let started = link::start(ends, child, host, BOUNDS, 0, None, |_| Ok(())).unwrap();
    (started, theirs, numbers)
}

/// Returns the reason that the parent gives after these bytes.
fn reason(send: impl FnOnce(&mut UnixStream)) -> String {
    let (mut parent, mut worker) = parent();
    send(&mut worker);
    loop {
        match parent.link.replies.blocking_recv() {
            Some(Reply::Failed(reason)) => return reason,
            Some(_) => {}
            None => panic!("no reason was given"),
        }
    }
}

fn frame(content: &impl Serialize) -> Vec<u8> {
    wire::encode(content).unwrap()
}

fn frame_with(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    let mut frame = wire::encode_after(Vec::new(), head, body.len()).unwrap();
    frame.extend_from_slice(body);
    frame
}

fn receive(worker: &mut UnixStream) -> ToWorker {
    receive_with(worker).0
}

fn receive_with(worker: &mut UnixStream) -> (ToWorker, Vec<u8>) {
    let mut header = [0; 8];
    worker.read_exact(&mut header).unwrap();
    let mut content = vec![0; usize::try_from(u64::from_le_bytes(header)).unwrap()];
    worker.read_exact(&mut content).unwrap();
    let (frame, body) = wire::decode(&content).unwrap();
    (frame, body.to_vec())
}

fn message(worker: &mut UnixStream) -> Message {
    match receive_with(worker) {
        (ToWorker::Message(head), body) => head.join(body),
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_that_sends_no_frames_is_killed() {
    let sent = |bytes: &[u8]| reason(|worker| worker.write_all(bytes).unwrap());
    let told = sent(&[0xff; 8]);
    let limit = "the worker was killed, since it sent a frame of 18446744073709551615 bytes, \
                 the limit is 1048576";
    assert_eq!(told, limit);
    assert!(sent(&(LIMIT + 1).to_le_bytes()).contains("a frame of 1048577 bytes"));
    let garbage = [4u64.to_le_bytes().as_slice(), &[0xff; 4]].concat();
    assert!(sent(&garbage).contains("a frame that cannot be read"), "{}", sent(&garbage));
    assert!(sent(&0u64.to_le_bytes()).contains("a frame that cannot be read"));
    let mut longer = frame(&FromWorker::NotReady("no"));
    longer[0] += 1;
    longer.push(0);
    assert!(sent(&longer).contains("a frame with 1 bytes too many"), "{}", sent(&longer));
}

fn done(memory_bytes: u64) -> Reply {
    Reply::Done { memory_bytes, report: Vec::new() }
}

#[test]
fn the_body_of_a_reply_is_the_report() {
    let (mut parent, mut worker) = parent();
    (parent.link.messages)(Message::Command(Vec::new()));
    let body = vec![7; 100_000];
    let head = wire::encode_after(Vec::new(), &FromWorker::Reply(done(5)), body.len()).unwrap();
    worker.write_all(&[head, body.clone()].concat()).unwrap();
    let told = parent.link.replies.blocking_recv();
    assert!(
        matches!(&told, Some(Reply::Done { memory_bytes: 5, report }) if *report == body),
        "{told:?}"
    );
}

fn peeked(number: u64) -> Reply {
    Reply::Peeked { number, refusal: None, report: Vec::new() }
}

#[test]
fn a_report_ahead_of_its_reply_is_joined_with_it_and_with_no_other() {
    let (mut parent, mut worker) = parent();
    let messages = &parent.link.messages;
    messages(Message::Command(Vec::new()));
    messages(Message::Peek(1, Vec::new()));
    messages(Message::Command(Vec::new()));
    messages(Message::Command(Vec::new()));
    let early = |is_peek, body| frame_with(&FromWorker::Report { is_peek }, body);
    let frames = [
        early(false, b"first"),
        // The last one counts.
        early(false, b"of the command"),
        early(true, b"of the peek"),
        frame(&FromWorker::Reply(peeked(1))),
        frame(&FromWorker::Reply(done(1))),
        // This one comes with its reply: the one before is no longer there.
        early(false, b"not this one"),
        frame_with(&FromWorker::Reply(done(2)), b"with the reply"),
        frame(&FromWorker::Reply(done(3))),
    ];
    worker.write_all(&frames.concat()).unwrap();
    for expected in [&b"of the peek"[..], b"of the command", b"with the reply", b""] {
        let mut reply = parent.link.replies.blocking_recv().unwrap();
        assert_eq!(reply.report().unwrap(), expected);
    }
}

#[test]
fn a_worker_that_reports_or_replies_unasked_is_killed() {
    let report = frame_with(&FromWorker::Report { is_peek: false }, b"a report");
    let told = reason(|worker| worker.write_all(&report).unwrap());
    assert_eq!(told, "the worker was killed, since it sent a report that nobody has asked for");
    for reply in [peeked(1), done(1)] {
        let told = reason(|worker| worker.write_all(&frame(&FromWorker::Reply(reply))).unwrap());
        assert_eq!(told, "the worker was killed, since it sent a reply that nobody has asked for");
    }
    // A command is not answered by the report of a peek, nor twice.
    let (mut parent, mut worker) = parent();
    (parent.link.messages)(Message::Command(Vec::new()));
    let report = frame_with(&FromWorker::Report { is_peek: true }, b"a report");
    worker.write_all(&report).unwrap();
    let told = parent.link.replies.blocking_recv();
    assert!(matches!(told, Some(Reply::Failed(reason)) if reason.contains("nobody has asked")));
}

#[test]
fn a_worker_gives_up_once_and_its_reason_is_cut() {
    let (mut parent, mut worker) = parent();
    let reply = || frame(&FromWorker::Reply(Reply::Failed("x".repeat(900_000))));
    worker.write_all(&[reply(), reply()].concat()).unwrap();
    let reason = |reply| match reply {
        Some(Reply::Failed(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let first = reason(parent.link.replies.blocking_recv());
    assert!(first.starts_with("[... 834464 characters dropped ...]x"), "{}", first.len());
    let second = reason(parent.link.replies.blocking_recv());
    assert!(second.contains("a reply that nobody has asked for"), "{second}");
}

#[test]
fn a_report_beyond_its_limit_is_not_kept() {
    let (mut parent, mut worker) = parent();
    (parent.link.messages)(Message::Command(Vec::new()));
    let early = FromWorker::Report { is_peek: false };
    worker.write_all(&frame_with(&early, &vec![0; 500_001])).unwrap();
    let told = parent.link.replies.blocking_recv();
    let Some(Reply::Failed(reason)) = told else { panic!("{told:?}") };
    assert!(reason.ends_with("a report of 500001 bytes, the limit is 500000"), "{reason}");
}

#[test]
fn a_worker_that_says_much_of_itself_is_killed() {
    let version = "v".repeat(100_000);
    let ready = FromWorker::Ready { version: &version, report: IsolationReport::thread() };
    let told = reason(|worker| worker.write_all(&frame(&ready)).unwrap());
    assert!(told.contains("its readiness: limit 65536 bytes, needed 100"), "{told}");
}

/// Refuses each call in words of a megabyte.
struct Wordy;

impl Host for Wordy {
    fn call(&self, _: HostRequest<'_>) -> HostReply {
        HostReply::Refused("NameError".to_owned(), "é".repeat(500_000))
    }

    fn read_file(&self, _: u32, _: u64, _: &mut [u8]) -> Result<u32, FileError> {
        Err(FileError::BadHandle)
    }
}

#[test]
fn refusals_that_a_worker_does_not_read_are_cut_and_bounded_in_bytes() {
    let (mut parent, worker) = parent_of(Arc::new(Wordy));
    let call = |call| {
        let call = HostRequest::CallTool { call, tool: "f", arguments: b"" };
        frame(&FromWorker::Request(call))
    };
    // Each takes 8 KiB, so that their number is not the limit.
    let mut calling = worker.try_clone().unwrap();
    // Until the parent reads no more.
    let calls = std::thread::spawn(move || {
        (0..10_000).map(call).take_while(|call| calling.write_all(call).is_ok()).count()
    });
    let told = parent.link.replies.blocking_recv();
    worker.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(calls.join().unwrap() < 10_000);
    let Some(Reply::Failed(reason)) = told else { panic!("{told:?}") };
    let expected = "requests without reading the refusals: limit 67108864 bytes, waiting 671";
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn a_worker_that_announces_output_that_is_not_there_is_killed() {
    let told = reason(|worker| worker.write_all(&frame(&FromWorker::Output { to: 3 })).unwrap());
    assert_eq!(told, "the worker was killed, since it sent 0 words of output, and said 3");
}

#[test]
fn a_worker_that_reads_no_answers_is_killed() {
    let (mut parent, mut worker) = parent();
    // More than a socket accepts, and more than may wait.
    for _ in 0..50_000 {
        (parent.link.messages)(Message::Answer(1, vec![0; 1000].into()));
    }
    // The limit is checked when the worker sends a request.
    worker.write_all(&frame(&FromWorker::Request(HostRequest::NetClose(1)))).unwrap();
    let told = parent.link.replies.blocking_recv();
    let Some(Reply::Failed(reason)) = told else { panic!("{told:?}") };
    assert!(reason.contains("without reading the answers"), "{reason}");
}

#[test]
fn a_worker_that_hangs_up_is_killed() {
    for length in [0, 3, 8, 10] {
        let whole = frame(&FromWorker::Reply(done(u64::MAX)));
        let told = reason(|worker| {
            worker.write_all(&whole[..length.min(whole.len())]).unwrap();
            worker.shutdown(std::net::Shutdown::Both).unwrap();
        });
        assert_eq!(told, "the worker was killed by signal 9 (SIGKILL)", "{length}");
    }
}

#[test]
fn requests_are_answered_and_what_is_one_way_is_not() {
    let (_parent, mut worker) = parent();
    worker.write_all(&frame_with(&FromWorker::Write(Stream::Stdout), b"text")).unwrap();
    let request = HostRequest::File(FileRequest::Stat { mount: u32::MAX, path: "../.." });
    worker.write_all(&frame(&FromWorker::Request(request))).unwrap();
    let ToWorker::Reply(HostReply::Bytes(answer)) = receive(&mut worker) else { panic!() };
    assert_eq!(answer, b"an answer");
    // As much as requested, and at most one chunk.
    for (length, expected) in [(3, 3), (u32::MAX, wire::BULK_BYTES)] {
        let read = FromWorker::ReadFile { file: 0, offset: u64::MAX, length };
        worker.write_all(&frame(&read)).unwrap();
        let ToWorker::FileBytes(Ok(bytes)) = receive(&mut worker) else { panic!() };
        assert_eq!(bytes.0.len(), expected);
    }
}

#[test]
fn a_worker_is_ready_once() {
    let (parent, mut worker) = parent();
    let ready = |version| FromWorker::Ready { version, report: IsolationReport::thread() };
    worker.write_all(&frame(&ready("first"))).unwrap();
    worker.write_all(&frame(&ready("second"))).unwrap();
    worker.write_all(&frame(&FromWorker::NotReady("third"))).unwrap();
    let (version, _) = parent.ready.blocking_recv().unwrap().unwrap();
    assert_eq!(version, "first");
}

#[test]
fn a_worker_that_does_not_read_holds_up_nobody() {
    let (parent, _worker) = parent();
    let (sender, sent) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // More than a socket accepts.
        for _ in 0..64 {
            (parent.link.messages)(Message::Command(vec![0; 1 << 20]));
        }
        parent.link.control.interrupt();
        parent.link.control.clear_interrupt();
        parent.link.control.terminate();
        sender.send(()).unwrap();
    });
    sent.recv_timeout(HANG).expect("the parent waits for a worker that does not read");
}

#[test]
fn messages_arrive_in_their_order() {
    let (parent, mut worker) = parent();
    parent.link.control.clear_interrupt();
    (parent.link.messages)(Message::Command(b"one".to_vec()));
    (parent.link.messages)(Message::Answer(7, Bytes::from_static(b"two")));
    assert!(matches!(receive(&mut worker), ToWorker::Run(1)));
    assert!(matches!(message(&mut worker), Message::Command(one) if one == b"one"));
    assert!(matches!(message(&mut worker), Message::Answer(7, two) if *two == *b"two"));
}

#[test]
fn what_a_socket_does_not_take_at_once_arrives_whole_and_in_order() {
    let (parent, mut worker) = parent();
    let long = vec![7; 1 << 20];
    for number in 0..8 {
        (parent.link.messages)(Message::Answer(number, long.clone().into()));
    }
    let request = FileRequest::Stat { mount: 0, path: "" };
    worker.write_all(&frame(&FromWorker::Request(HostRequest::File(request)))).unwrap();
    for number in 0..8 {
        let message = message(&mut worker);
        assert!(matches!(&message, Message::Answer(n, bytes) if *n == number && *bytes == long));
    }
    assert!(matches!(receive(&mut worker), ToWorker::Reply(HostReply::Bytes(_))));
}

#[test]
fn an_interrupt_names_its_run() {
    let (parent, _worker, mut numbers) = parent_with_interrupts();
    let control = &parent.link.control;
    for run in 1..4u64 {
        control.clear_interrupt();
        assert!(!control.interrupted());
        control.interrupt();
        assert!(control.interrupted());
        let mut number = [0; 8];
        numbers.read_exact(&mut number).unwrap();
        assert_eq!(u64::from_le_bytes(number), run);
    }
}

#[test]
fn a_call_that_is_refused_is_answered_as_any_other() {
    struct Refusing;
    impl Host for Refusing {
        fn call(&self, _: HostRequest<'_>) -> HostReply {
            HostReply::Refused("NameError".to_owned(), "no".to_owned())
        }
        fn read_file(&self, _: u32, _: u64, _: &mut [u8]) -> Result<u32, FileError> {
            Err(FileError::BadHandle)
        }
    }
    let (_parent, mut worker) = parent_of(Arc::new(Refusing));
    let call = HostRequest::CallTool { call: 5, tool: "steal", arguments: b"" };
    worker.write_all(&frame(&FromWorker::Request(call))).unwrap();
    let refusal = encode_answer(Err(ToolError::new("NameError", "no")), u64::MAX);
    let answer = message(&mut worker);
    assert!(matches!(&answer, Message::Answer(5, bytes) if *bytes == refusal), "{answer:?}");
}

mod in_the_worker {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::super::child::mailbox::{Answer, Interrupts, Mailbox, Messages};
    use super::*;
    use crate::protocol::{Control, Inbox};

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Control for Flag {
        fn interrupt(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
        fn clear_interrupt(&self) {
            self.0.store(false, Ordering::Relaxed);
        }
        fn interrupted(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
        fn terminate(&self) {}
    }

    #[test]
    fn an_interrupt_meets_its_run_whichever_comes_first() {
        let interrupts = Arc::new(Interrupts::default());
        let control = Arc::new(Flag::default());
        interrupts.connect(Arc::clone(&control) as _);
        let (mut parent, socket) = UnixStream::pair().unwrap();
        let mailbox = Mailbox::new(socket, Arc::clone(&interrupts), ring().0).unwrap();
        let inbox = Messages::new(Arc::new(OnceLock::from(mailbox)), None);
        let mut begin = |run| {
            let command = ToWorker::Message(MessageHead::Command);
            parent.write_all(&frame(&ToWorker::Run(run))).unwrap();
            parent.write_all(&frame(&command)).unwrap();
            while inbox.try_take().is_none() {}
            control.interrupted()
        };
        assert!(!begin(1));
        interrupts.interrupt(1);
        assert!(control.interrupted());
        // If it is late, it has no effect.
        assert!(!begin(2));
        interrupts.interrupt(1);
        assert!(!control.interrupted());
        // If it is early, it waits.
        interrupts.interrupt(3);
        assert!(!control.interrupted());
        assert!(begin(3));
    }

    #[test]
    fn a_wait_that_was_interrupted_ends_when_the_isolate_knows() {
        let interrupts = Arc::new(Interrupts::default());
        interrupts.connect(Arc::new(Flag::default()));
        let (_parent, socket) = UnixStream::pair().unwrap();
        let mailbox = Arc::new(Mailbox::new(socket, Arc::clone(&interrupts), ring().0).unwrap());
        let (sender, done) = std::sync::mpsc::channel();
        let waiting = Arc::clone(&mailbox);
        let waiter = std::thread::spawn(move || {
            waiting.wait_for_interrupts(2);
            sender.send(()).unwrap();
        });
        interrupts.interrupt(0);
        mailbox.wait_for_interrupts(1);
        assert!(done.try_recv().is_err());
        interrupts.interrupt(0);
        done.recv().unwrap();
        waiter.join().unwrap();
    }

    #[test]
    fn answers_and_messages_do_not_mix() {
        let (mut parent, socket) = UnixStream::pair().unwrap();
        let connection =
            Arc::new(OnceLock::from(Mailbox::new(socket, Arc::default(), ring().0).unwrap()));
        let mailbox = connection.get().unwrap();
        let inbox = Messages::new(Arc::clone(&connection), None);
        assert!(inbox.try_take().is_none());
        inbox.wait(Duration::ZERO, Duration::ZERO);
        let frames = [
            frame_with(&ToWorker::Message(MessageHead::Answer(1)), &vec![1; 100_000]),
            frame(&ToWorker::Reply(HostReply::Done)),
            frame(&ToWorker::Message(MessageHead::Answer(2))),
        ]
        .concat();
        // In pieces that end anywhere.
        let sender = std::thread::spawn(move || {
            frames.chunks(777).for_each(|piece| parent.write_all(piece).unwrap());
        });
        assert!(matches!(mailbox.answer(), Ok(Answer::Reply(HostReply::Done))));
        let mut numbers = Vec::new();
        while numbers.len() < 2 {
            match inbox.try_take() {
                Some(Message::Answer(number, _)) => numbers.push(number),
                Some(other) => panic!("{other:?}"),
                None => inbox.wait(Duration::ZERO, Duration::from_secs(1)),
            }
        }
        assert_eq!(numbers, [1, 2]);
        sender.join().unwrap();
        // The parent is gone.
        assert!(mailbox.answer().is_err());
    }
}

#[test]
fn a_parent_that_is_gone_closes_the_socket() {
    let (parent, mut worker) = parent();
    parent.link.control.terminate();
    drop(parent);
    // The reading thread still waits for the socket's end, which a killed worker causes.
    worker.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    worker.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}

/// Of thousands of idle workers, only a few are checked each time.
#[test]
fn a_worker_is_busy_from_a_command_to_its_reply() {
    let (mut parent, mut worker) = parent();
    assert!(!parent.control.is_busy());
    for _ in 0..2 {
        (parent.link.messages)(Message::Command(vec![1]));
        assert!(parent.control.is_busy());
        worker.write_all(&frame(&FromWorker::Reply(done(5)))).unwrap();
        assert!(matches!(parent.link.replies.blocking_recv(), Some(Reply::Done { .. })));
        assert!(!parent.control.is_busy());
    }
}
