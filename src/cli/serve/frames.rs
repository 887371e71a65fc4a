//! Frames on standard input and output: a length, and as many bytes.

use std::io;
use std::mem;

use rustix::io::Errno;

/// The longest frame, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// The length of a frame's length, in bytes.
const HEAD: usize = 4;

/// How many bytes are read at a time, unless a frame is longer.
const CHUNK: usize = 64 << 10;

/// Reads frames from standard input.
#[derive(Default)]
pub(super) struct Input {
    /// What was read and belongs to no frame yet.
    pending: Vec<u8>,
}

impl Input {
    /// Waits for the next frame. Returns `None` at the end of the input.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut wanted = HEAD;
        loop {
            if let Some(head) = self.pending.first_chunk::<HEAD>() {
                let length = u32::from_le_bytes(*head) as usize;
                if length > MAX_BYTES {
                    let text = format!("a frame has {length} bytes, the limit is {MAX_BYTES}");
                    return Err(io::Error::other(text));
                }
                wanted = HEAD + length;
            }
            if self.pending.len() >= wanted && wanted > HEAD {
                let rest = self.pending.split_off(wanted);
                let mut frame = mem::replace(&mut self.pending, rest);
                frame.drain(..HEAD);
                return Ok(Some(frame));
            }
            if self.pending.len() >= HEAD && wanted == HEAD {
                return Err(io::Error::other("a frame is empty"));
            }
            if !self.read(wanted)? {
                let rest = self.pending.len();
                return if rest == 0 {
                    Ok(None)
                } else {
                    Err(io::Error::other(format!("the input ends {rest} bytes into a frame")))
                };
            }
        }
    }

    /// Reads more, if possible up to so many bytes in all. Returns `false` at the end of the input.
    fn read(&mut self, wanted: usize) -> io::Result<bool> {
        let at = self.pending.len();
        self.pending.resize(wanted.max(at + CHUNK).min(at + 16 * CHUNK), 0);
        let read = loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut self.pending[at..]) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        self.pending.truncate(at + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }
}

/// A frame that is being made.
pub(super) struct Frame(Vec<u8>);

impl Frame {
    pub(super) fn new() -> Self {
        Self(vec![0; HEAD])
    }

    /// Returns where its bytes are appended.
    pub(super) fn body(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// Returns the finished frame, or its length if it is too long.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, usize> {
        let length = self.0.len() - HEAD;
        match u32::try_from(length) {
            Ok(head) if length <= MAX_BYTES => {
                self.0[..HEAD].copy_from_slice(&head.to_le_bytes());
                Ok(self.0)
            }
            _ => Err(length),
        }
    }
}

/// Writes a finished frame to standard output.
pub(super) fn write(frame: &[u8]) -> io::Result<()> {
    let mut rest = frame;
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
