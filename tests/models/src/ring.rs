//! The model of the output ring: a worker that writes, and a parent that sleeps when there is
//! nothing.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use shuttle::sync::mpsc::channel;
use shuttle::thread;

use crate::data::output::Stream;
use crate::worker::wire::output_ring::{Consumer, Piece, Producer, file};

/// The records of the worker, of which the ring has room for two or three.
const RECORDS: [(Stream, &[u8]); 6] = [
    (Stream::Stdout, b"one"),
    (Stream::Stdout, b"two, which is longer than a word"),
    (Stream::Stderr, b"three"),
    (Stream::Stderr, b""),
    (Stream::Stdout, b"five is longer, too"),
    (Stream::Stderr, b"six"),
];

/// A frame from the worker.
enum Frame {
    /// There is output up to this position.
    Output(u64),
    /// Output that the ring had no room for.
    Write(Stream, &'static [u8]),
}

/// The parent gets all output in its order, and is woken for it.
///
/// # Panics
///
/// Panics in an order in which it does not.
pub fn output_arrives() {
    let memory = file().expect("there is memory");
    let mut consumer = Consumer::map(memory.as_fd()).expect("it is mapped");
    let mut producer = Producer::map(memory).expect("it is mapped");
    let (socket, frames) = channel();
    // As `Mailbox::write` in `src/worker/child/mailbox.rs`.
    let worker = thread::spawn(move || {
        for (stream, bytes) in RECORDS {
            if producer.write(stream, bytes) {
                if producer.must_announce() {
                    let to = producer.announce().expect("there is something to announce");
                    socket.send(Frame::Output(to)).expect("the parent reads");
                }
                continue;
            }
            if let Some(to) = producer.announce() {
                socket.send(Frame::Output(to)).expect("the parent reads");
            }
            socket.send(Frame::Write(stream, bytes)).expect("the parent reads");
        }
        // The socket stays open: its end would wake the parent, too.
        socket
    });
    let wanted = [Stream::Stdout, Stream::Stderr].map(|stream| {
        let of_stream = RECORDS.iter().filter(|(of, _)| *of == stream);
        of_stream.flat_map(|(_, bytes)| *bytes).copied().collect::<Vec<u8>>()
    });
    let mut pieces: VecDeque<Piece> = VecDeque::new();
    let mut taken: [Vec<u8>; 2] = Default::default();
    // As `Reader` in `src/worker/parent/reader.rs`.
    while taken.iter().map(Vec::len).sum::<usize>() < wanted.iter().map(Vec::len).sum() {
        let frame =
            if consumer.fall_asleep() { frames.recv().ok() } else { frames.try_recv().ok() };
        consumer.wake_up();
        match frame {
            Some(Frame::Output(to)) => consumer.take(to, &mut pieces).expect("it is output"),
            Some(Frame::Write(stream, bytes)) => {
                pieces.push_back(Piece { stream, bytes: bytes.to_vec() });
            }
            None => {
                let end = consumer.end();
                // What was sent before this output comes first.
                match frames.try_recv() {
                    Ok(Frame::Output(to)) => consumer.take(to, &mut pieces).expect("it is output"),
                    Ok(Frame::Write(stream, bytes)) => {
                        pieces.push_back(Piece { stream, bytes: bytes.to_vec() });
                    }
                    Err(_) => consumer.take(end, &mut pieces).expect("it is output"),
                }
            }
        }
        for piece in pieces.drain(..) {
            taken[usize::from(piece.stream == Stream::Stderr)].extend(piece.bytes);
        }
    }
    assert_eq!(taken, wanted);
    worker.join().expect("the worker ends");
}
