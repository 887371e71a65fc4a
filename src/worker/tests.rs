//! A parent whose worker is hostile: whatever it sends, it is killed or ignored, and the reason is told.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde::Serialize;

use super::link::{self, Started};
use super::wire::{self, FromWorker, ToWorker};
use crate::fs::{FileError, FileRequest};
use crate::isolation::IsolationReport;
use crate::output::Stream;
use crate::waist::{Host, HostReply, HostRequest, Message, Reply};

const LIMIT: u64 = 1 << 20;

/// A host that has one answer to everything.
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

/// A parent, and the worker's end of its socket, which the test holds. The process is another one, that does
/// nothing: it can only be killed.
fn parent() -> (Started, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let started = link::start(ours, child, Arc::new(TestHost), LIMIT, |_| Ok(())).unwrap();
    (started, theirs)
}

/// The reason that the parent gives after these bytes.
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

fn receive(worker: &mut UnixStream) -> ToWorker {
    let mut content = Vec::new();
    assert!(wire::receive(worker, &mut content, u64::MAX).unwrap());
    wire::decode(&content).unwrap()
}

#[test]
fn a_worker_that_sends_no_frames_is_killed() {
    let sent = |bytes: &[u8]| reason(|worker| worker.write_all(bytes).unwrap());
    let told = sent(&[0xff; 8]);
    let limit = "the worker was killed, since it sent a frame of 18446744073709551615 bytes, the limit \
                 is 1048576";
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

#[test]
fn a_worker_that_replies_unasked_is_killed() {
    let reply = frame(&FromWorker::Reply(Reply::Peeked(1)));
    let told = reason(|worker| worker.write_all(&[reply.clone(), reply].concat()).unwrap());
    assert_eq!(told, "the worker was killed, since it sent a reply that nobody has asked for");
}

#[test]
fn a_worker_that_reads_no_answers_is_killed() {
    let (mut parent, mut worker) = parent();
    // More than a socket takes, and than may wait.
    for _ in 0..50_000 {
        (parent.link.messages)(Message::Answer(1, vec![0; 1000]));
    }
    // It is looked at when it asks for something.
    worker.write_all(&frame(&FromWorker::Request(HostRequest::NetClose(1)))).unwrap();
    let told = parent.link.replies.blocking_recv();
    assert!(
        matches!(&told, Some(Reply::Failed(reason)) if reason.contains("without reading the answers")),
        "{told:?}"
    );
}

#[test]
fn a_worker_that_hangs_up_is_killed() {
    for length in [0, 3, 8, 10] {
        let whole = frame(&FromWorker::Reply(Reply::Done { memory_bytes: u64::MAX }));
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
    let one_way = FromWorker::Request(HostRequest::Write(Stream::Stdout, b"text"));
    worker.write_all(&frame(&one_way)).unwrap();
    let request = HostRequest::File(FileRequest::Stat { mount: u32::MAX, path: "../.." });
    worker.write_all(&frame(&FromWorker::Request(request))).unwrap();
    let ToWorker::Reply(HostReply::Bytes(answer)) = receive(&mut worker) else { panic!() };
    assert_eq!(answer, b"an answer");
    // As much as is asked for, and no more than one piece.
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
    // More than a socket takes.
    for _ in 0..64 {
        (parent.link.messages)(Message::Command(vec![0; 1 << 20]));
    }
    parent.link.control.interrupt();
    parent.link.control.clear_interrupt();
    parent.link.control.terminate();
}

#[test]
fn messages_arrive_in_their_order() {
    let (parent, mut worker) = parent();
    parent.link.control.clear_interrupt();
    (parent.link.messages)(Message::Command(b"one".to_vec()));
    parent.link.control.interrupt();
    (parent.link.messages)(Message::Answer(7, b"two".to_vec()));
    assert!(matches!(receive(&mut worker), ToWorker::ClearInterrupt));
    assert!(
        matches!(receive(&mut worker), ToWorker::Message(Message::Command(one)) if one == b"one")
    );
    assert!(matches!(receive(&mut worker), ToWorker::Interrupt));
    let last = receive(&mut worker);
    assert!(matches!(last, ToWorker::Message(Message::Answer(7, two)) if two == b"two"));
    assert!(parent.link.control.interrupted());
}

#[test]
fn a_parent_that_is_gone_closes_the_socket() {
    let (parent, mut worker) = parent();
    parent.link.control.terminate();
    drop(parent);
    // The reading thread still waits for the socket's end; a worker that is killed gives it.
    worker.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    worker.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}
