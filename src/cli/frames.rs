//! Frames on standard input and output: a length, and as many bytes.

use std::io::{self, Read};

use rustix::io::Errno;

/// The longest frame, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// The length of a frame's length, in bytes.
const HEAD: usize = 4;

/// How many bytes are read at a time, unless a frame is longer.
const CHUNK: usize = 64 << 10;

/// Reads frames.
pub(super) struct Input<R> {
    source: R,
    /// What was read, of which the first bytes were taken.
    pending: Vec<u8>,
    taken: usize,
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, pending: Vec::with_capacity(CHUNK), taken: 0 }
    }

    /// Waits for the next frame. Returns `None` at the end of the input.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let ready = &self.pending[self.taken..];
            if let Some((head, body)) = ready.split_first_chunk::<HEAD>() {
                let length = u32::from_le_bytes(*head) as usize;
                if length == 0 || length > MAX_BYTES {
                    return Err(io::Error::other(format!(
                        "a frame has {length} bytes, it may have 1 to {MAX_BYTES}"
                    )));
                }
                if let Some(frame) = body.get(..length) {
                    let frame = frame.to_vec();
                    self.taken += HEAD + length;
                    return Ok(Some(frame));
                }
                if length > CHUNK {
                    let begun = body.to_vec();
                    self.drop_pending();
                    return self.long_frame(begun, length).map(Some);
                }
            }
            let rest = ready.len();
            self.pending.drain(..std::mem::take(&mut self.taken));
            if !self.read()? {
                return if rest == 0 { Ok(None) } else { Err(ended_inside(rest)) };
            }
        }
    }

    /// Reads once, at most a chunk. Returns `false` at the end of the input.
    fn read(&mut self) -> io::Result<bool> {
        let at = self.pending.len();
        self.pending.resize(at + CHUNK, 0);
        let read = loop {
            match self.source.read(&mut self.pending[at..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.pending.truncate(at + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    /// Reads the rest of a frame of this length straight into its place.
    fn long_frame(&mut self, begun: Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
        let mut frame = begun;
        frame.reserve_exact(length - frame.len());
        let rest = (length - frame.len()) as u64;
        (&mut self.source).take(rest).read_to_end(&mut frame)?;
        if frame.len() < length { Err(ended_inside(HEAD + frame.len())) } else { Ok(frame) }
    }

    fn drop_pending(&mut self) {
        self.pending.clear();
        self.taken = 0;
    }
}

fn ended_inside(bytes: usize) -> io::Error {
    io::Error::other(format!("the input ends {bytes} bytes into a frame"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut frame = Frame::new();
        frame.body().extend_from_slice(body);
        frame.finish().unwrap()
    }

    /// Gives this many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(into.len()).min(self.0.len());
            let (now, later) = self.0.split_at(count);
            into[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn frames_come_whole_however_they_are_read() {
        let bodies = [vec![1], vec![2; CHUNK - HEAD], vec![3; 3 * CHUNK + 5], vec![4; 7], vec![5]];
        let bytes = bodies.iter().flat_map(|body| frame(body)).collect::<Vec<u8>>();
        for step in [1, 3, CHUNK - 1, CHUNK, usize::MAX] {
            let mut input = Input::new(Slow(&bytes, step));
            for body in &bodies {
                assert_eq!(input.next().unwrap().as_ref(), Some(body), "{step}");
            }
            assert_eq!(input.next().unwrap(), None);
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let error = |bytes: &[u8]| Input::new(bytes).next().unwrap_err().to_string();
        assert_eq!(error(&[0; 4]), "a frame has 0 bytes, it may have 1 to 1073741824");
        assert_eq!(error(&[255; 9]), "a frame has 4294967295 bytes, it may have 1 to 1073741824");
        assert_eq!(error(&[1, 0, 0]), "the input ends 3 bytes into a frame");
        assert_eq!(error(&[2, 0, 0, 0, 1]), "the input ends 5 bytes into a frame");
        let long = frame(&vec![1; 2 * CHUNK]);
        assert_eq!(
            error(&long[..CHUNK + 100]),
            format!("the input ends {} bytes into a frame", CHUNK + 100)
        );
    }
}
