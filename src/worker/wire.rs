//! Frames between parent and worker: eight bytes of length, little-endian, then so many bytes of
//! `postcard`. Both sides are the same program, so that there is no version to negotiate; the worker says
//! which one it is.

use std::io::{self, Read, Write};

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

use crate::fs::FileError;
use crate::isolation::IsolationReport;
use crate::waist::{HostReply, HostRequest, Message, Reply};

/// The bytes of a frame's length.
const HEADER: usize = size_of::<u64>();

/// What is read at once of a frame that claims to be long: memory is taken for what has come, not for
/// what is claimed.
const PIECE: u64 = 1 << 20;

/// The most that one frame reads from or writes to a file or a stream; more goes in several.
pub(super) const BULK_BYTES: usize = 1 << 20;

/// Room in every frame beside a value: WebAssembly to verify, requests, names.
const OVERHEAD_BYTES: u64 = 160 << 20;

/// What the parent tells a worker first. The descriptors of the assets come along, and that of the socket for
/// interrupts: each is the number of the run that is meant, in eight bytes, little-endian.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The longest frame that the parent takes.
    pub(super) max_frame_bytes: u64,
    /// The session's memory.
    pub(super) memory_bytes: u64,
    /// Whether it is to be a template, and this socket is for its [records](super::template).
    pub(super) is_template: bool,
}

/// What a parent sends.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWorker {
    Setup(Setup),
    Message(Message),
    /// The answer to the request.
    Reply(HostReply),
    /// What was read of a file.
    FileBytes(Result<FileBytes, FileError>),
    /// The command that follows is of this run; interrupts of others are not meant for it.
    Run(u64),
}

/// Bytes of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileBytes(#[serde(with = "serde_bytes")] pub(super) Vec<u8>);

/// What a worker sends.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWorker<'a> {
    /// It is locked down and waits for commands.
    Ready {
        /// Which program it is.
        version: &'a str,
        report: IsolationReport,
    },
    /// It cannot be, for this reason.
    NotReady(&'a str),
    #[serde(borrow)]
    Request(HostRequest<'a>),
    /// Read so many bytes of an open file.
    ReadFile {
        file: u32,
        offset: u64,
        length: u32,
    },
    Reply(Reply),
}

/// Which program this is. A worker of another one is refused.
pub(super) fn version() -> String {
    format!("isolet {} with V8 {}", env!("CARGO_PKG_VERSION"), crate::v8_version())
}

/// The longest frame of a worker whose session lets values of so many bytes cross.
pub(super) fn max_frame_bytes(max_report_bytes: u64) -> u64 {
    max_report_bytes.saturating_add(OVERHEAD_BYTES)
}

/// Makes a frame.
pub(super) fn encode(content: &impl Serialize) -> io::Result<Vec<u8>> {
    encode_after(Vec::new(), content)
}

/// Makes a frame that follows others.
pub(super) fn encode_after(mut frames: Vec<u8>, content: &impl Serialize) -> io::Result<Vec<u8>> {
    let start = frames.len();
    frames.extend([0; HEADER]);
    let mut frames =
        postcard::serialize_with_flavor(content, Frames(frames)).map_err(io::Error::other)?;
    let length = (frames.len() - start - HEADER) as u64;
    frames[start..start + HEADER].copy_from_slice(&length.to_le_bytes());
    Ok(frames)
}

/// What `postcard` writes to. Its own way to go on after other bytes takes one byte at a time.
struct Frames(Vec<u8>);

impl Flavor for Frames {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// The content of the first frame in `bytes`, and how many bytes it takes; `None` if not all of it is there.
pub(super) fn first(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let length = usize::try_from(u64::from_le_bytes(*header)).ok()?;
    Some((rest.get(..length)?, HEADER + length))
}

/// How many bytes are missing of the first frame in `bytes`, as far as that is known.
pub(super) fn missing(bytes: &[u8]) -> usize {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return HEADER };
    usize::try_from(u64::from_le_bytes(*header)).unwrap_or(usize::MAX).saturating_sub(rest.len())
}

/// Writes a frame.
pub(super) fn send(socket: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    socket.write_all(&encode(content)?)
}

/// Reads a frame's content into `buffer`. The end of the stream between two frames is `false`.
pub(super) fn receive(
    socket: &mut impl Read,
    buffer: &mut Vec<u8>,
    limit: u64,
) -> io::Result<bool> {
    let mut header = [0; HEADER];
    let first = loop {
        match socket.read(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 0 {
        return Ok(false);
    }
    socket.read_exact(&mut header[first..])?;
    let length = u64::from_le_bytes(header);
    if length > limit {
        let message = format!("a frame of {length} bytes, the limit is {limit}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    buffer.clear();
    let mut left = length;
    while left > 0 {
        let piece = left.min(PIECE);
        let got = socket.take(piece).read_to_end(buffer)? as u64;
        if got < piece {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= piece;
    }
    Ok(true)
}

/// Reads what a frame holds, all of it.
pub(super) fn decode<'a, T: Deserialize<'a>>(content: &'a [u8]) -> io::Result<T> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    match postcard::take_from_bytes(content) {
        Ok((decoded, [])) => Ok(decoded),
        Ok((_, rest)) => Err(invalid(format!("a frame with {} bytes too many", rest.len()))),
        Err(error) => Err(invalid(format!("a frame that cannot be read: {error}"))),
    }
}
