//! Frames between parent and worker: eight bytes of length, little-endian, then so many bytes: a
//! head as `postcard` has it, and a body, the rest. Bytes that may be many are a body: a long one
//! is written from where it is, and taken with the buffer that it came in. Both sides are the same
//! program, so that there is no version to negotiate; the worker says which one it is.

pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod template_record;

use std::io::{self, Write};

use bytes::Bytes;
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

use crate::data::isolation::IsolationReport;
use crate::data::output::Stream;
use crate::fs::FileError;
use crate::protocol::{HostReply, HostRequest, Message, Reply};

/// The bytes of a frame's length.
const HEADER: usize = size_of::<u64>();

/// The most that one frame reads from or writes to a file or a stream; more goes in several.
pub(crate) const BULK_BYTES: usize = 1 << 20;

/// Room in every frame beside a value: WebAssembly to verify, requests, names.
const OVERHEAD_BYTES: u64 = 160 << 20;

/// What the parent tells a worker first. The descriptors of the assets come along, and that of the
/// socket for interrupts: each is the number of the run that is meant, in eight bytes,
/// little-endian.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The longest report of the guest's that the session takes.
    pub(crate) max_report_bytes: u64,
    /// The session's memory.
    pub(crate) memory_bytes: u64,
    /// Whether it is to be a template, and this socket is for its [records](template_record).
    pub(crate) is_template: bool,
}

/// What a parent sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    Setup(Setup),
    /// A message, whose bytes are the body.
    Message(MessageHead),
    /// The answer to the request.
    Reply(HostReply),
    /// What was read of a file.
    FileBytes(Result<FileBytes, FileError>),
    /// The command that follows is of this run; interrupts of others are not meant for it.
    Run(u64),
}

/// A [`Message`] without its bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum MessageHead {
    Command,
    Peek(u64),
    Answer(u32),
}

impl MessageHead {
    pub(crate) fn split(message: Message) -> (Self, Bytes) {
        match message {
            Message::Command(frame) => (Self::Command, frame.into()),
            Message::Peek(number, frame) => (Self::Peek(number), frame.into()),
            Message::Answer(call, answer) => (Self::Answer(call), answer),
        }
    }

    pub(crate) fn join(self, body: Vec<u8>) -> Message {
        match self {
            Self::Command => Message::Command(body),
            Self::Peek(number) => Message::Peek(number, body),
            Self::Answer(call) => Message::Answer(call, body.into()),
        }
    }
}

/// Bytes of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileBytes(#[serde(with = "serde_bytes")] pub(crate) Vec<u8>);

/// What a worker sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker<'a> {
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
    /// [`HostRequest::Write`]; the output is the body.
    Write(Stream),
    /// Read so many bytes of an open file.
    ReadFile { file: u32, offset: u64, length: u32 },
    /// A reply, whose report is the body.
    Reply(Reply),
}

/// The first argument of a worker; the second is the number of its parent's process.
pub(crate) const WORKER: &str = "isolet-worker";

/// How many descriptors a worker gets with the first frame: of the image, and of a socket for
/// interrupts.
pub(crate) const DESCRIPTORS: usize = 2;

/// Which program this is. A worker of another one is refused.
pub(crate) fn version() -> String {
    format!("isolet {} with V8 {}", env!("CARGO_PKG_VERSION"), crate::data::version::v8_version())
}

/// The longest frame of a worker whose session lets values of so many bytes cross.
pub(crate) fn max_frame_bytes(max_report_bytes: u64) -> u64 {
    max_report_bytes.saturating_add(OVERHEAD_BYTES)
}

/// The memory that the kernel lets a worker write to, for a session of so many bytes: V8's heap,
/// which may grow beyond its limit while the guest is stopped for it, compiled code, and stacks
/// come besides.
pub(crate) fn data_bytes(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_add(4 << 30)
}

/// The memory that such a worker may hold in all: the image and the program's own code come
/// besides.
pub(crate) fn resident_bytes(memory_bytes: u64) -> u64 {
    data_bytes(memory_bytes).saturating_add(256 << 20)
}

/// What a frame is made of, which says whether it has a body.
pub(crate) trait Head {
    fn has_body(&self) -> bool;
}

impl Head for ToWorker {
    fn has_body(&self) -> bool {
        matches!(self, Self::Message(_))
    }
}

impl Head for FromWorker<'_> {
    fn has_body(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Reply(Reply::Done { .. } | Reply::Peeked { .. }))
    }
}

/// Makes a frame without a body.
pub(crate) fn encode(head: &impl Serialize) -> io::Result<Vec<u8>> {
    encode_after(Vec::new(), head, 0)
}

/// Makes what comes before the body of a frame, which has so many bytes, after other frames.
pub(crate) fn encode_after(
    mut frames: Vec<u8>,
    head: &impl Serialize,
    body_bytes: usize,
) -> io::Result<Vec<u8>> {
    let start = frames.len();
    frames.extend([0; HEADER]);
    let mut frames =
        postcard::serialize_with_flavor(head, Frames(frames)).map_err(io::Error::other)?;
    let length = (frames.len() - start - HEADER + body_bytes) as u64;
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

/// How many bytes the content of the first frame in `bytes` has, as it claims.
pub(crate) fn content_bytes(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<HEADER>().map(|header| u64::from_le_bytes(*header))
}

/// The content of the first frame in `bytes`; `None` if not all of it is there.
pub(crate) fn first(bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(content_bytes(bytes)?).ok()?;
    bytes.get(HEADER..)?.get(..length)
}

/// How many bytes a frame with this content has.
pub(crate) fn frame_bytes(content: &[u8]) -> usize {
    HEADER + content.len()
}

/// How many bytes are missing of the first frame in `bytes`, as far as that is known.
pub(crate) fn missing(bytes: &[u8]) -> usize {
    let Some(length) = content_bytes(bytes) else { return HEADER };
    usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(bytes.len() - HEADER)
}

/// Writes a frame.
pub(crate) fn send(socket: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    socket.write_all(&encode(content)?)
}

/// Reads what a frame holds: its head, and its body.
pub(crate) fn decode<'a, T: Deserialize<'a> + Head>(
    content: &'a [u8],
) -> io::Result<(T, &'a [u8])> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    match postcard::take_from_bytes::<T>(content) {
        Ok((head, body)) if head.has_body() || body.is_empty() => Ok((head, body)),
        Ok((_, rest)) => Err(invalid(format!("a frame with {} bytes too many", rest.len()))),
        Err(error) => Err(invalid(format!("a frame that cannot be read: {error}"))),
    }
}
