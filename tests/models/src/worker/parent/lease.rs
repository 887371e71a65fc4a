//! The model of the reader's lease: a worker that answers, the thread that reads from it, a caller
//! that waits in `block_on` and reads itself, and others that wake the caller or end its lease.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use shuttle::sync::Mutex;
use shuttle::thread;

use super::reader::{By, Frame, Reader, Seen, Socket};
use super::reader_lease::ReaderLease;
use crate::support::block_on::{PollSource, block_on, with_source};
use crate::support::lock::lock;

/// What has happened elsewhere, for which the caller waits, too.
#[derive(Default)]
struct Elsewhere {
    happened: u32,
    waker: Option<Waker>,
}

/// Each command of a caller is answered, whoever reads the answer and whoever else wakes the
/// caller; frames are handled once and in order, and those for the thread by the thread.
///
/// # Panics
///
/// Panics in an order in which it is otherwise.
pub fn commands_are_answered() {
    let (socket, seen) = (Arc::<Socket>::default(), Arc::<Mutex<Seen>>::default());
    let lease = Arc::<ReaderLease>::default();
    let elsewhere = Arc::<Mutex<Elsewhere>>::default();
    // As `Reader::serve` in `src/worker/parent/reader.rs`.
    let reading = {
        let (lease, mut reader) = (lease.clone(), Reader::new(socket.clone(), seen.clone()));
        thread::spawn(move || {
            while !reader.has_ended() {
                reader.wait_and_read();
                reader = lease.offer(reader);
            }
        })
    };
    for command in 1..=2 {
        let worker = {
            let socket = socket.clone();
            thread::spawn(move || {
                socket.send(Frame::Output(command));
                socket.send(Frame::Request(command));
                socket.send(Frame::Reply(command));
            })
        };
        let other = {
            let (elsewhere, lease) = (elsewhere.clone(), lease.clone());
            thread::spawn(move || {
                let waker = {
                    let mut elsewhere = lock(&elsewhere);
                    elsewhere.happened = command;
                    elsewhere.waker.take()
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
                // Somebody looks whether the worker is still alive.
                lease.leave_to_thread();
            })
        };
        let answered = poll_fn(|context| {
            let is_elsewhere = {
                let mut elsewhere = lock(&elsewhere);
                elsewhere.waker = Some(context.waker().clone());
                elsewhere.happened == command
            };
            let mut seen = lock(&seen);
            seen.waker = Some(context.waker().clone());
            if is_elsewhere && seen.replied == command { Poll::Ready(()) } else { Poll::Pending }
        });
        let source = Arc::clone(&lease) as Arc<dyn PollSource>;
        block_on(with_source(Some(&source), answered));
        worker.join().expect("the worker answers");
        other.join().expect("the other thread ends");
    }
    lease.release();
    socket.send(Frame::Output(3));
    socket.send(Frame::End);
    reading.join().expect("the thread ends");
    let wanted = [1, 2].map(|n| [Frame::Output(n), Frame::Request(n), Frame::Reply(n)]).concat();
    let wanted = [wanted, vec![Frame::Output(3), Frame::End]].concat();
    let seen = lock(&seen);
    assert_eq!(seen.frames.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(), wanted);
    let is_of_thread = |(frame, by): &&(Frame, By)| {
        matches!(frame, Frame::Request(_) | Frame::End) && *by != By::Thread
    };
    assert_eq!(seen.frames.iter().find(is_of_thread), None);
}
