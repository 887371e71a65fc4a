//! Frames of a worker, as its parent reads them: a worker that was taken over sends anything.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use rustix::net::RecvFlags;
use serde::Serialize;

use super::memory::measured;
use crate::worker::wire::incoming::Incoming;
use crate::worker::wire::{self, FromWorker, ToWorker};

/// The longest frame that is taken here.
const LIMIT: u64 = 1 << 16;
/// What is written to the socket at once.
const PIECE: usize = 32 << 10;
/// What reading a frame may take beside the frame itself: the buffer grows by doubling, and begins
/// with 64 KiB.
const RECEIVED_FACTOR: usize = 4;
const RECEIVED: usize = 256 << 10;
/// How many times the length of its frame a message may take: a report of layers is a tree of
/// strings.
const DECODED_FACTOR: usize = 256;
/// What a list that claims to be long has reserved for it: serde takes at most 1 MiB on trust.
const CLAIMED: usize = 4 << 20;

/// Reads the stream frame by frame, as the parent does, and each frame as a message in either
/// direction. What is read encodes to a frame that reads as the same again; memory is taken for
/// what has come, not for what a frame claims.
pub fn wire(data: &[u8]) {
    let read = read_all(data);
    assert!(read.is_ok(), "{read:?}");
}

fn read_all(data: &[u8]) -> io::Result<()> {
    let (mut worker, parent) = UnixStream::pair()?;
    let mut incoming = Incoming::new(LIMIT);
    let mut left = data;
    loop {
        // As much as a socket takes at once.
        let (piece, rest) = left.split_at(left.len().min(PIECE));
        worker.write_all(piece)?;
        if piece.is_empty() {
            worker.shutdown(Shutdown::Write)?;
        }
        left = rest;
        let (received, used) = measured(|| incoming.receive(&parent, RecvFlags::empty()));
        assert!(
            used.peak <= RECEIVED_FACTOR * data.len() + RECEIVED,
            "{} took {used:?}",
            data.len()
        );
        if !received? {
            return Ok(());
        }
        loop {
            match incoming.first() {
                Ok(Some(content)) => check(content),
                Ok(None) => break,
                Err(_) => return Ok(()),
            }
            incoming.take_first();
        }
    }
}

fn check(content: &[u8]) {
    assert!(content.len() as u64 <= LIMIT);
    let (decoded, used) = measured(|| wire::decode::<FromWorker<'_>>(content));
    assert!(
        used.peak <= DECODED_FACTOR * content.len() + CLAIMED,
        "{} took {used:?}",
        content.len()
    );
    if let Ok(message) = decoded {
        let frame = encoded(&message);
        let again = wire::decode::<FromWorker<'_>>(&frame[8..]);
        assert_eq!(format!("{:?}", again.ok()), format!("{:?}", Some(message)));
    }
    // Only the parent sends these; that they are read at all is as good a check of their types.
    if let Ok(message) = wire::decode::<ToWorker>(content) {
        let frame = encoded(&message);
        let again = wire::decode::<ToWorker>(&frame[8..]);
        assert_eq!(format!("{:?}", again.ok()), format!("{:?}", Some(message)));
    }
}

fn encoded((head, body): &(impl Serialize, &[u8])) -> Vec<u8> {
    let mut frame = wire::encode_after(Vec::new(), head, body.len()).unwrap_or_default();
    frame.extend_from_slice(body);
    frame
}
