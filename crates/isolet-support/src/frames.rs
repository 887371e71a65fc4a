//! Frames on standard input and output: a length, and as many bytes.

use std::io::{self, Read};

use rustix::io::Errno;

/// The longest frame, in bytes.
pub const MAX_BYTES: usize = 1 << 30;

/// The length of a frame's length, in bytes.
const HEAD: usize = 4;

/// The bytes of memory that a frame gets before any of it has arrived.
const CHUNK: usize = 64 << 10;

/// The most bytes of a frame that are written at a time.
const WRITE_BYTES: usize = 128 << 10;

/// The bytes of memory that are kept for the next frames. Fresh memory takes longer than reading
/// into it.
const KEPT_BYTES: usize = 4 << 20;

/// Reads frames, and nothing beyond the one that is asked for.
pub struct Input<R> {
    source: R,
    buffer: Vec<u8>,
}

impl<R: Read> Input<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new() }
    }

    /// Waits for the next frame and passes it to `take`. Returns `None` at the end of the input.
    pub fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> io::Result<Option<T>> {
        match self.fill(HEAD)? {
            0 => return Ok(None),
            HEAD => {}
            read => return Err(ended_inside(read)),
        }
        let head = self.buffer.first_chunk().copied().unwrap_or_default();
        let length = u32::from_le_bytes(head) as usize;
        if length == 0 || length > MAX_BYTES {
            return Err(io::Error::other(format!(
                "a frame has {length} bytes, it may have 1 to {MAX_BYTES}"
            )));
        }
        let read = self.fill(length)?;
        if read < length {
            return Err(ended_inside(HEAD + read));
        }
        let taken = take(&self.buffer[..length]);
        if self.buffer.len() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        Ok(Some(taken))
    }

    /// Reads this many bytes. Returns how many there were.
    fn fill(&mut self, length: usize) -> io::Result<usize> {
        let mut filled = 0;
        while filled < length {
            // Memory for the bytes that have arrived and as much again, not for the length that the
            // frame claims.
            let end = length.min((2 * filled).max(CHUNK));
            if self.buffer.len() < end {
                self.buffer.resize(end, 0);
            }
            let end = length.min(self.buffer.len());
            match self.source.read(&mut self.buffer[filled..end]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

fn ended_inside(bytes: usize) -> io::Error {
    io::Error::other(format!("the input ends {bytes} bytes into a frame"))
}

/// A frame that is being made.
pub struct Frame(Vec<u8>);

impl Default for Frame {
    fn default() -> Self {
        Self(vec![0; HEAD])
    }
}

impl Frame {
    /// Returns where its bytes are appended.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// Returns the finished frame, or its length if it is too long.
    pub fn finish(mut self) -> Result<Vec<u8>, usize> {
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

/// Writes a finished frame to standard output. The client cannot read from a pipe while it is
/// written to, so long frames are written in parts.
pub fn write(frame: &[u8]) -> io::Result<()> {
    let mut rest = frame;
    while !rest.is_empty() {
        let part = &rest[..rest.len().min(WRITE_BYTES)];
        match rustix::io::write(rustix::stdio::stdout(), part) {
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
        let mut frame = Frame::default();
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
                let is_whole = input.next(|frame| frame == body).unwrap();
                assert_eq!(is_whole, Some(true), "{step}");
            }
            assert_eq!(input.next(|_| ()).unwrap(), None);
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let error = |bytes: &[u8]| Input::new(bytes).next(|_| ()).unwrap_err().to_string();
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
