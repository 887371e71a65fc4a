//! Splits the bytes from a socket into frames. The bytes may arrive in any pieces.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super as wire;

/// The minimum size of a read. Longer frames are read in larger pieces, but memory is allocated
/// only for data that has arrived, not for the announced length.
const READ_BYTES: usize = 64 << 10;
const MOST_READ_BYTES: usize = 1 << 20;

/// Data that has arrived and was not taken yet.
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    /// Where the first frame begins; earlier ones were taken.
    start: usize,
    max_frame_bytes: u64,
    /// Set if the last receive has taken all that there was.
    has_emptied_socket: bool,
}

impl Incoming {
    /// Accepts frames up to this length, in bytes.
    pub(crate) fn new(max_frame_bytes: u64) -> Self {
        Self { bytes: Vec::new(), start: 0, max_frame_bytes, has_emptied_socket: false }
    }

    /// Receives data. Returns `false` at the end of the stream.
    pub(crate) fn receive(&mut self, socket: &UnixStream, flags: RecvFlags) -> io::Result<bool> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.reserve(wire::missing(&self.bytes).clamp(READ_BYTES, MOST_READ_BYTES));
        let room = self.bytes.capacity() - self.bytes.len();
        loop {
            match recv(socket, spare_capacity(&mut self.bytes), flags) {
                Err(Errno::INTR) => {}
                result => {
                    let count = result.map(|(_, count)| count);
                    self.has_emptied_socket =
                        count.is_ok_and(|count| count < room) || count == Err(Errno::WOULDBLOCK);
                    return Ok(count? > 0);
                }
            }
        }
    }

    /// Returns `true` if the last receive has taken all that the socket had. What has come after it
    /// makes the socket readable anew.
    pub(crate) fn has_emptied_socket(&self) -> bool {
        self.has_emptied_socket
    }

    /// Frees the memory for what arrives, if nothing is in it.
    pub(crate) fn free(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }

    /// Returns the content of the first frame, if all of it has arrived.
    pub(crate) fn first(&self) -> io::Result<Option<&[u8]>> {
        let frames = &self.bytes[self.start..];
        match wire::content_bytes(frames) {
            Some(length) if length > self.max_frame_bytes => {
                let limit = self.max_frame_bytes;
                let message = format!("a frame of {length} bytes, the limit is {limit}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            _ => Ok(wire::first(frames)),
        }
    }

    /// Takes the first frame and returns its last `body_bytes` bytes. A large body stays in the
    /// buffer in which it arrived.
    pub(crate) fn take_body(&mut self, body_bytes: usize) -> Vec<u8> {
        let end = self.start + wire::first(&self.bytes[self.start..]).map_or(0, wire::frame_bytes);
        let start = end.saturating_sub(body_bytes);
        if body_bytes >= READ_BYTES && body_bytes >= self.bytes.len() - end {
            let after = self.bytes.split_off(end);
            let mut bytes = std::mem::replace(&mut self.bytes, after);
            self.start = 0;
            bytes.drain(..start);
            return bytes;
        }
        let body = self.bytes[start..end].to_vec();
        self.take_first();
        body
    }

    /// Takes the first frame; the next one becomes the first.
    pub(crate) fn take_first(&mut self) {
        self.start += wire::first(&self.bytes[self.start..]).map_or(0, wire::frame_bytes);
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(READ_BYTES);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{FromWorker, decode, encode_after};
    use super::*;
    use crate::data::output::Stream;

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let frame = |length: usize| {
            let head = FromWorker::Write(Stream::Stdout);
            let mut frame = encode_after(Vec::new(), &head, length).unwrap();
            frame.extend((0..=u8::MAX).cycle().take(length));
            frame
        };
        let frames = [3, 0, 200_000, 4, 100_000].map(frame).concat();
        // The last size is more than one read takes, and less than a socket holds.
        for piece in [1, 7, 4096, 100_000] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let mut incoming = Incoming::new(u64::MAX);
            let mut lengths = Vec::new();
            for piece in frames.chunks(piece) {
                ours.write_all(piece).unwrap();
                let mut left = piece.len();
                while left > 0 {
                    let before = incoming.bytes.len() - incoming.start;
                    assert!(incoming.receive(&theirs, RecvFlags::empty()).unwrap());
                    left -= incoming.bytes.len() - before;
                    while let Some(content) = incoming.first().unwrap() {
                        let (head, body): (FromWorker<'_>, _) = decode(content).unwrap();
                        assert!(matches!(head, FromWorker::Write(Stream::Stdout)));
                        let (length, expected) = (body.len(), body.to_vec());
                        if lengths.len().is_multiple_of(2) {
                            assert_eq!(incoming.take_body(length), expected);
                        } else {
                            incoming.take_first();
                        }
                        assert!((0..=u8::MAX).cycle().zip(&expected).all(|(byte, is)| byte == *is));
                        lengths.push(length);
                    }
                }
            }
            assert_eq!(lengths, [3, 0, 200_000, 4, 100_000]);
            drop(ours);
            assert!(!incoming.receive(&theirs, RecvFlags::empty()).unwrap());
        }
    }

    #[test]
    fn a_frame_that_claims_to_be_too_long_is_refused_before_it_has_come() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&11u64.to_le_bytes()).unwrap();
        let mut incoming = Incoming::new(10);
        incoming.receive(&theirs, RecvFlags::empty()).unwrap();
        let error = incoming.first().unwrap_err();
        assert_eq!(error.to_string(), "a frame of 11 bytes, the limit is 10");
    }
}
