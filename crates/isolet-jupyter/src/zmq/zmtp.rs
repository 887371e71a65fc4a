//! The wire protocol of `ZeroMQ`, ZMTP 3.0 with the mechanism NULL, as far as a kernel needs it:
//! greetings, and messages of several frames. Bytes come from whoever can connect: all is bounded.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// The most bytes of a message, and its most frames.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;
const MAX_FRAMES: usize = 1000;
/// The most bytes of a command, and of a client's name.
const MAX_COMMAND_BYTES: u64 = 4096;
const MAX_IDENTITY_BYTES: usize = 255;

const GREETING: usize = 64;
const VERSION: usize = 10;
const MECHANISM: std::ops::Range<usize> = 12..32;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// What a socket is to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Router,
    Publisher,
    Replier,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Router => "ROUTER",
            Self::Publisher => "PUB",
            Self::Replier => "REP",
        }
    }

    /// The kinds of the sockets that may connect to it.
    fn partners(self) -> &'static [&'static [u8]] {
        match self {
            Self::Router => &[b"DEALER", b"REQ", b"ROUTER"],
            Self::Publisher => &[b"SUB", b"XSUB"],
            Self::Replier => &[b"REQ", b"DEALER"],
        }
    }
}

/// What a connection sends.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    flags: u8,
    body: Bytes,
}

/// Greets a client. Returns the name that it gives itself; empty if it has none.
pub(super) async fn greet(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    kind: Kind,
) -> Result<Bytes> {
    let mut ours = [0; GREETING];
    (ours[0], ours[9], ours[VERSION]) = (0xff, 0x7f, 3);
    ours[MECHANISM][..4].copy_from_slice(b"NULL");
    stream.write_all(&ours).await?;
    let mut theirs = [0; GREETING];
    stream.read_exact(&mut theirs).await.context("no greeting")?;
    ensure!(theirs[0] == 0xff && theirs[9] & 1 == 1, "the greeting is not ZeroMQ's");
    ensure!(theirs[VERSION] >= 3, "version {} of ZeroMQ's protocol is too old", theirs[VERSION]);
    let mechanism = &theirs[MECHANISM];
    ensure!(
        mechanism.starts_with(b"NULL") && mechanism[4..].iter().all(|byte| *byte == 0),
        "a mechanism other than NULL is wanted"
    );
    let mut ready = Vec::from(*b"\x05READY\x0bSocket-Type");
    put_value(&mut ready, kind.name().as_bytes());
    ready.extend_from_slice(b"\x08Identity");
    put_value(&mut ready, b"");
    let length = u8::try_from(ready.len())?;
    stream.write_all(&[COMMAND, length]).await?;
    stream.write_all(&ready).await?;
    stream.flush().await?;
    let frame = read_frame(stream, 0).await?.context("the client has gone")?;
    ensure!(frame.flags & COMMAND != 0, "a message comes before the command READY");
    identity(&frame.body, kind)
}

fn put_value(to: &mut Vec<u8>, value: &[u8]) {
    to.extend_from_slice(&u32::try_from(value.len()).unwrap_or_default().to_be_bytes());
    to.extend_from_slice(value);
}

/// Reads the command READY of a client of a socket of this kind.
fn identity(command: &[u8], kind: Kind) -> Result<Bytes> {
    let mut rest = command.strip_prefix(b"\x05READY").context("the first command is not READY")?;
    let (mut socket, mut identity) = (None, Bytes::new());
    while let Some((length, after)) = rest.split_first() {
        let (name, after) = split(after, usize::from(*length))?;
        let (length, after) = split(after, 4)?;
        let length = u32::from_be_bytes(length.try_into()?);
        let (value, after) = split(after, usize::try_from(length)?)?;
        rest = after;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            socket = Some(value);
        } else if name.eq_ignore_ascii_case(b"Identity") {
            ensure!(value.len() <= MAX_IDENTITY_BYTES, "an identity of {} bytes", value.len());
            identity = Bytes::copy_from_slice(value);
        }
    }
    let socket = socket.context("the command READY names no type of socket")?;
    ensure!(kind.partners().contains(&socket), "a socket of another type connects to {kind:?}");
    Ok(identity)
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8])> {
    bytes.split_at_checked(at).context("the command READY is cut")
}

/// Reads a message of a client. Returns `None` if it has closed the connection between two.
pub(super) async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<Vec<Bytes>>> {
    let (mut frames, mut bytes) = (Vec::new(), 0);
    loop {
        let Some(frame) = read_frame(stream, bytes).await? else {
            ensure!(frames.is_empty(), "the client has gone within a message");
            return Ok(None);
        };
        if frame.flags & COMMAND != 0 {
            // Of a later version; there is none that has to be answered.
            continue;
        }
        bytes += frame.body.len();
        frames.push(frame.body);
        if frame.flags & MORE == 0 {
            return Ok(Some(frames));
        }
        ensure!(frames.len() < MAX_FRAMES, "a message has more than {MAX_FRAMES} frames");
    }
}

/// Reads a frame of a message that has so many bytes already. Memory is taken as they come.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin), before: usize) -> Result<Option<Frame>> {
    let flags = match stream.read_u8().await {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        flags => flags?,
    };
    let length = if flags & LONG != 0 {
        stream.read_u64().await?
    } else {
        u64::from(stream.read_u8().await?)
    };
    let most = if flags & COMMAND != 0 {
        MAX_COMMAND_BYTES
    } else {
        (MAX_MESSAGE_BYTES - before.min(MAX_MESSAGE_BYTES)) as u64
    };
    if length > most {
        bail!("a frame has {length} bytes after {before}, the limit is {MAX_MESSAGE_BYTES}");
    }
    let mut body = Vec::new();
    let read = stream.take(length).read_to_end(&mut body).await?;
    ensure!(read as u64 == length, "the client has gone within a frame");
    Ok(Some(Frame { flags, body: body.into() }))
}

/// Writes messages as they come, each of which has its room in the queue until it is written.
pub(super) async fn write_queued<M: AsRef<[Bytes]>, R>(
    stream: &mut (impl AsyncWrite + Unpin),
    queue: &mut mpsc::Receiver<(M, R)>,
) -> Result<()> {
    while let Some((frames, room)) = queue.recv().await {
        write_message(stream, frames.as_ref()).await?;
        drop(room);
    }
    Ok(())
}

/// Writes a message.
pub(super) async fn write_message(
    stream: &mut (impl AsyncWrite + Unpin),
    frames: &[Bytes],
) -> Result<()> {
    let last = frames.len().saturating_sub(1);
    for (at, frame) in frames.iter().enumerate() {
        let more = if at == last { 0 } else { MORE };
        let mut head = [0; 9];
        let head = if let Ok(length) = u8::try_from(frame.len()) {
            (head[0], head[1]) = (more, length);
            &head[..2]
        } else {
            head[0] = more | LONG;
            head[1..].copy_from_slice(&(frame.len() as u64).to_be_bytes());
            &head[..]
        };
        stream.write_all(head).await?;
        stream.write_all(frame).await?;
    }
    stream.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Vec<Bytes>>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(read_message(&mut &*bytes))
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let frames = [Bytes::new(), Bytes::from_static(b"a"), Bytes::from(vec![b'x'; 300])];
        let mut written = Vec::new();
        runtime.block_on(write_message(&mut written, &frames)).unwrap();
        assert_eq!(written[..5], [1, 0, 1, 1, b'a']);
        assert_eq!(read(&written).unwrap().unwrap(), frames);
        assert_eq!(read(b"").unwrap(), None);
    }

    #[test]
    fn a_length_is_not_believed_before_the_bytes_are_there() {
        let mut long = vec![LONG];
        long.extend_from_slice(&u64::MAX.to_be_bytes());
        let error = read(&long).unwrap_err().to_string();
        assert!(error.starts_with("a frame has 18446744073709551615 bytes after 0"), "{error}");
        let mut cut = vec![LONG];
        cut.extend_from_slice(&(MAX_MESSAGE_BYTES as u64).to_be_bytes());
        let error = read(&cut).unwrap_err().to_string();
        assert_eq!(error, "the client has gone within a frame");
        let many = [MORE, 0].repeat(MAX_FRAMES);
        let error = read(&many).unwrap_err().to_string();
        assert_eq!(error, "a message has more than 1000 frames");
    }

    #[test]
    fn the_command_ready_is_read_and_other_commands_are_not() {
        let mut ready = Vec::from(*b"\x05READY\x0bsocket-type");
        put_value(&mut ready, b"DEALER");
        ready.extend_from_slice(b"\x08Identity");
        put_value(&mut ready, b"me");
        assert_eq!(identity(&ready, Kind::Router).unwrap(), "me");
        assert!(identity(&ready, Kind::Publisher).is_err());
        for cut in 0..ready.len() {
            // What is cut is refused, or has no identity.
            assert_eq!(identity(&ready[..cut], Kind::Router).unwrap_or_default(), "");
        }
        assert!(identity(b"\x05ERROR", Kind::Router).is_err());
    }
}
