//! What must hold of whatever comes to the sockets of a kernel.

use bytes::Bytes;
use futures_util::FutureExt;
use isolet::fuzzing::measured;

use super::signed::{Seen, Signer};
use super::zmtp::{self, Kind};
use crate::kernel::fuzzing::read_contents;
use crate::message::{Channel, Message, MessageKind, Request, To};

/// How many times its length a stream may take, and what it may take besides. A message of two
/// bytes is a list, with room for four frames, in a list that grows.
const FACTOR: usize = 160;
const FIXED: usize = 16 << 10;

/// Reads the bytes, by their first one, as the greeting of a client, as messages, or as the parts
/// of one message. Memory is bounded by what has arrived, what was read is written as it was, and
/// only who knows the key is heard.
///
/// # Panics
///
/// If one of these does not hold.
pub fn jupyter(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    match first % 3 {
        0 => greeting(data),
        1 => messages(data),
        _ => parts(data),
    }
}

fn greeting(data: &[u8]) {
    let mut stream = tokio::io::join(data, tokio::io::sink());
    let (greeted, used) = measured(|| zmtp::greet(&mut stream, Kind::Router).now_or_never());
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{used:?}");
    if let Some(Ok(identity)) = greeted {
        assert!(identity.len() <= 255);
    }
}

fn messages(mut data: &[u8]) {
    let length = data.len();
    let read = |data: &mut &[u8]| zmtp::read_message(data).now_or_never();
    let (found, used) = measured(|| {
        let mut found = Vec::new();
        while let Some(Ok(Some(message))) = read(&mut data) {
            found.push(message);
        }
        found
    });
    assert!(used.peak <= FACTOR * length + FIXED, "{used:?} for {length} bytes");
    for message in found {
        let mut written = Vec::new();
        assert!(matches!(zmtp::write_message(&mut written, &message).now_or_never(), Some(Ok(()))));
        let again = read(&mut &*written);
        assert!(matches!(again, Some(Ok(Some(again))) if again == message));
    }
}

/// Takes the bytes as parts that end with a zero byte: the four that are signed, and buffers.
fn parts(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0).map(Bytes::copy_from_slice);
    let mut part = || parts.next().unwrap_or_default();
    let text = |part: Bytes| String::from_utf8_lossy(&part).into_owned();
    let message = Message {
        to: To::Everybody,
        kind: MessageKind::Status,
        header: text(part()),
        parent: None,
        metadata: text(part()),
        content: text(part()),
        buffers: parts.collect(),
    };
    let (content, buffers) = (message.content.clone(), message.buffers.clone());
    let signer = Signer::new("key");
    let frames = signer.write(message, Vec::new());
    let mut seen = Seen::default();
    assert!(read(&Signer::new("other"), &mut seen, frames.clone()).is_none());
    let Some(request) = read(&signer, &mut seen, frames.clone()) else { return };
    assert_eq!((&request.content[..], &request.buffers), (content.as_bytes(), &buffers));
    assert!(read(&signer, &mut seen, frames).is_none(), "a message is heard twice");
    read_contents(&request);
}

fn read(signer: &Signer, seen: &mut Seen, frames: Vec<Bytes>) -> Option<Request> {
    signer.read(seen, Channel::Shell, (0, &Bytes::new()), frames).ok()
}
