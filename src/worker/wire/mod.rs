//! Frames between parent and worker. A frame is a length (eight bytes, little-endian) and that many
//! bytes: a head, encoded with `postcard`, and the rest, its body. Large payloads go in the body,
//! which is written and received without copying. Both sides are the same program, so no version is
//! negotiated; the worker reports its version.

pub(crate) mod incoming;
pub(crate) mod notifications;
pub(crate) mod outgoing;
pub(crate) mod output_ring;
mod purpose;
pub(crate) mod template_record;

use std::io::{self, Write};
use std::os::fd::RawFd;

use bytes::Bytes;
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

pub(crate) use self::purpose::Purpose;
use crate::data::isolation::IsolationReport;
use crate::data::output::Stream;
use crate::fs::FileError;
use crate::protocol::{HostReply, HostRequest, Message, Reply};

/// The size of a frame's length field, in bytes.
const HEADER: usize = size_of::<u64>();

/// The maximum number of bytes that one frame reads from or writes to a file or stream. More takes
/// several frames.
pub(crate) const BULK_BYTES: usize = 1 << 20;

/// Space in every frame in addition to a value: WebAssembly to verify, requests, names.
const OVERHEAD_BYTES: u64 = 160 << 20;

/// The parent's first frame to a worker. It carries the descriptors of the image, of the socket
/// for interrupts and of the memory for output. An interrupt on that socket is the number of the
/// run, in eight bytes, little-endian.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The maximum length of a guest's report that the session accepts, in bytes.
    pub(crate) max_report_bytes: u64,
    /// The session's memory limit, in bytes.
    pub(crate) memory_bytes: u64,
    /// Whether the isolate looks for what it waits for before it sleeps.
    pub(crate) spins: bool,
    /// By how much the worker is nicer than its parent.
    pub(crate) niceness: u8,
    pub(crate) purpose: Purpose,
}

/// A frame from the parent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    Setup(Setup),
    /// A message, whose bytes are the body.
    Message(MessageHead),
    /// The answer to the request.
    Reply(HostReply),
    /// Data read from a file.
    FileBytes(Result<FileBytes, FileError>),
    /// The number of the run that the next command belongs to. Interrupts of other runs do not
    /// apply to it.
    Run(u64),
}

/// A [`Message`] without its bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum MessageHead {
    Command,
    Peek(u64),
    Answer(u32),
    Fork,
    Restore,
}

impl MessageHead {
    pub(crate) fn split(message: Message) -> (Self, Bytes) {
        match message {
            Message::Command(frame) => (Self::Command, frame.into()),
            Message::Peek(number, frame) => (Self::Peek(number), frame.into()),
            Message::Answer(call, answer) => (Self::Answer(call), answer),
            Message::Fork => (Self::Fork, Bytes::new()),
            Message::Restore(frame) => (Self::Restore, frame.into()),
        }
    }

    pub(crate) fn join(self, body: Vec<u8>) -> Message {
        match self {
            Self::Command => Message::Command(body),
            Self::Peek(number) => Message::Peek(number, body),
            Self::Answer(call) => Message::Answer(call, body.into()),
            Self::Fork => Message::Fork,
            Self::Restore => Message::Restore(body),
        }
    }
}

/// Bytes of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileBytes(#[serde(with = "serde_bytes")] pub(crate) Vec<u8>);

/// A frame from a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker<'a> {
    /// The worker is locked down and waits for commands.
    Ready {
        /// The version of the worker's program.
        version: &'a str,
        report: IsolationReport,
    },
    /// The worker cannot start, for this reason.
    NotReady(&'a str),
    #[serde(borrow)]
    Request(HostRequest<'a>),
    /// There is output in the [ring](output_ring), up to this position. It comes before what the
    /// next frames say.
    Output { to: u64 },
    /// The worker cannot be copied: the number of the system's error.
    NotForked(i32),
    /// [`HostRequest::Write`] of what the ring has no room for; the output is the body.
    Write(Stream),
    /// Reads a number of bytes of an open file.
    ReadFile { file: u32, offset: u64, length: u32 },
    /// A long report, ahead of the reply that it belongs to; the report is the body.
    Report { is_peek: bool },
    /// A reply. Its report is the body, unless it came before.
    Reply(Reply),
}

/// The first argument of a worker; the second is the number of its parent's process.
pub(crate) const WORKER: &str = "isolet-worker";

/// The third argument of a worker that becomes a template of forkable workers.
pub(crate) const FORKABLE: &str = "forkable";

/// The number of descriptors that come with the first frame: of the image, of the socket for
/// interrupts, and of the memory for [output](output_ring).
pub(crate) const DESCRIPTORS: usize = 3;

/// The descriptor of a forkable worker's socket to its parent. The parent gives each copy its own.
pub(crate) const SOCKET: RawFd = 3;
/// That of the socket for interrupts.
pub(crate) const INTERRUPTS: RawFd = 4;
/// The descriptor at which a copy receives its memory for [output](output_ring): its highest one.
pub(crate) const RING: RawFd = 5;

/// The number of words in the memory for output: 256 KiB.
const OUTPUT_WORDS: usize = 32 << 10;

/// How many threads a copy starts, each with the parent's permission.
pub(crate) const COPY_THREADS: u32 = 3;

/// The flags with which the C library copies a process.
pub(crate) const FORK: u64 =
    flags(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD);

/// The flags with which the C library starts a thread.
pub(crate) const THREAD: u64 = flags(
    libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID,
);

const fn flags(flags: i32) -> u64 {
    flags.cast_unsigned() as u64
}

/// The maximum length of the first frame, in bytes. It arrives at once.
pub(crate) const SETUP_BYTES: usize = 32 << 10;

/// Returns the version of this program. A worker of another version is refused.
pub(crate) fn version() -> String {
    crate::data::version::program()
}

/// Returns the maximum length of a worker's frame, for this maximum length of a report, both in
/// bytes.
pub(crate) fn max_frame_bytes(max_report_bytes: u64) -> u64 {
    max_report_bytes.saturating_add(OVERHEAD_BYTES)
}

/// Returns the limit on a worker's writable memory, for this memory limit of its session, both in
/// bytes. It also covers V8's heap, which may exceed its limit while the guest is being stopped for
/// it, compiled code, and stacks.
pub(crate) fn data_bytes(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_add(4 << 30)
}

/// Returns the limit on all memory that such a worker may hold, in bytes. It also covers the image
/// and the program's code.
pub(crate) fn resident_bytes(memory_bytes: u64) -> u64 {
    data_bytes(memory_bytes).saturating_add(256 << 20)
}

/// The head of a frame, which determines whether the frame has a body.
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
        matches!(
            self,
            Self::Write(_)
                | Self::Report { .. }
                | Self::Reply(Reply::Done { .. } | Reply::Peeked { .. })
        )
    }
}

/// Encodes a frame without a body.
pub(crate) fn encode(head: &impl Serialize) -> io::Result<Vec<u8>> {
    encode_after(Vec::new(), head, 0)
}

/// Encodes the part of a frame before its body of `body_bytes` bytes, and appends it to other
/// frames.
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

/// The buffer that `postcard` writes to. Its built-in way of appending writes one byte at a time.
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

/// Returns the announced length of the content of the first frame in `bytes`.
pub(crate) fn content_bytes(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<HEADER>().map(|header| u64::from_le_bytes(*header))
}

/// Returns the content of the first frame in `bytes`; `None` if it is incomplete.
pub(crate) fn first(bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(content_bytes(bytes)?).ok()?;
    bytes.get(HEADER..)?.get(..length)
}

/// Returns the length of a frame with this content.
pub(crate) fn frame_bytes(content: &[u8]) -> usize {
    HEADER + content.len()
}

/// Returns how many bytes of the first frame in `bytes` are missing, as far as that is known.
pub(crate) fn missing(bytes: &[u8]) -> usize {
    let Some(length) = content_bytes(bytes) else { return HEADER };
    usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(bytes.len() - HEADER)
}

/// Writes a frame.
pub(crate) fn send(socket: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    socket.write_all(&encode(content)?)
}

/// Decodes the content of a frame: its head and its body.
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
