//! Signed messages: who cannot sign is not heard, and what is not signed is not read.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use ring::hmac;

use crate::message::{Channel, Header, Message, Peer, Request, hex};

/// What stands between the way of a message and the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";
/// The most frames before it.
const MAX_ROUTE: usize = 16;
/// The most bytes of the frames that are signed, without the buffers.
const MAX_SIGNED_BYTES: usize = 32 << 20;
/// How many signatures are remembered, so that a message counts once.
const REMEMBERED: usize = 1 << 16;

/// Signs messages, and checks signatures.
#[derive(Clone)]
pub(super) struct Signer {
    key: hmac::Key,
}

/// The signatures of earlier messages.
#[derive(Default)]
pub(super) struct Seen {
    known: HashSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl Signer {
    pub(super) fn new(key: &str) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()) }
    }

    /// Reads a message whose signature is right and new. Before that is known, nothing of it is
    /// looked at.
    pub(super) fn read(
        &self,
        seen: &mut Seen,
        channel: Channel,
        (connection, identity): (u64, &Bytes),
        mut frames: Vec<Bytes>,
    ) -> Result<Request> {
        let beginning = &frames[..frames.len().min(MAX_ROUTE + 1)];
        let delimiter = beginning.iter().position(|frame| &frame[..] == DELIMITER);
        let delimiter = delimiter.context("it has no delimiter")?;
        let mut rest = frames.split_off(delimiter + 1).into_iter();
        frames.pop();
        let signature = rest.next().context("it has no signature")?;
        let signature = digest(&signature).context("its signature is none")?;
        let mut part = || rest.next().context("it has less than four parts");
        let (header, parent, metadata, content) = (part()?, part()?, part()?, part()?);
        let parts = [&header, &parent, &metadata, &content];
        let size: usize = parts.iter().map(|part| part.len()).sum();
        ensure!(size <= MAX_SIGNED_BYTES, "it has {size} bytes, the limit is {MAX_SIGNED_BYTES}");
        // `ring` compares in a time that does not depend on the signature.
        let signed = parts.into_iter().fold(Vec::with_capacity(size), |mut signed, part| {
            signed.extend_from_slice(part);
            signed
        });
        let is_right = hmac::verify(&self.key, &signed, &signature).is_ok();
        ensure!(is_right, "its signature is wrong");
        ensure!(seen.is_new(signature), "it came before");
        let peer = Peer { connection, identity: identity.clone(), route: frames };
        let header = Arc::new(Header::read(header)?);
        let buffers = rest.collect();
        Ok(Request { channel, peer, header, parent, metadata, content, buffers })
    }

    /// Returns the frames of a message, after those of its way.
    pub(super) fn write(&self, message: Message, way: Vec<Bytes>) -> Vec<Bytes> {
        let parent = message.parent.map_or_else(|| "{}".into(), |parent| parent.json.clone());
        let parts: [Bytes; 4] =
            [message.header.into(), parent, message.metadata.into(), message.content.into()];
        let mut context = hmac::Context::with_key(&self.key);
        for part in &parts {
            context.update(part);
        }
        let signature: String = hex(context.sign().as_ref());
        let mut frames = way;
        frames.push(DELIMITER.into());
        frames.push(signature.into());
        frames.extend(parts);
        frames.extend(message.buffers);
        frames
    }
}

impl Seen {
    /// Returns `true` if this signature has not come before, as far back as is remembered.
    fn is_new(&mut self, signature: [u8; 32]) -> bool {
        if !self.known.insert(signature) {
            return false;
        }
        self.order.push_back(signature);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

/// Reads a signature in hexadecimal digits.
fn digest(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() != 64 {
        return None;
    }
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{MessageKind, To};

    fn frames(signer: &Signer) -> Vec<Bytes> {
        let message = Message {
            to: To::Everybody,
            kind: MessageKind::Status,
            header: r#"{"msg_id":"1","msg_type":"execute_request"}"#.to_owned(),
            parent: None,
            metadata: "{}".to_owned(),
            content: "{}".to_owned(),
            buffers: vec![Bytes::from_static(b"b")],
        };
        signer.write(message, vec![Bytes::from_static(b"way")])
    }

    fn read(signer: &Signer, seen: &mut Seen, frames: Vec<Bytes>) -> Result<Request> {
        signer.read(seen, Channel::Shell, (7, &Bytes::from_static(b"me")), frames)
    }

    #[test]
    fn a_message_is_heard_once() {
        let (signer, mut seen) = (Signer::new("key"), Seen::default());
        let request = read(&signer, &mut seen, frames(&signer)).unwrap();
        assert_eq!((request.peer.connection, &request.peer.route[..]), (7, &["way".into()][..]));
        assert_eq!((&*request.header.id, &request.buffers[..]), ("1", &["b".into()][..]));
        let again = read(&signer, &mut seen, frames(&signer)).unwrap_err();
        assert_eq!(again.to_string(), "it came before");
    }

    #[test]
    fn what_is_not_signed_is_not_read() {
        let (signer, mut seen) = (Signer::new("key"), Seen::default());
        let reason = |frames: Vec<Bytes>, seen: &mut Seen| {
            read(&signer, seen, frames).unwrap_err().to_string()
        };
        assert_eq!(reason(frames(&Signer::new("other")), &mut seen), "its signature is wrong");
        for part in 3..7 {
            // Not even whether it is JSON.
            let mut changed = frames(&signer);
            changed[part] = Bytes::from_static(b"{");
            assert_eq!(reason(changed, &mut seen), "its signature is wrong", "{part}");
        }
        let mut unsigned = frames(&signer);
        unsigned[2] = Bytes::new();
        assert_eq!(reason(unsigned, &mut seen), "its signature is none");
        assert_eq!(reason(frames(&signer)[..5].to_vec(), &mut seen), "it has less than four parts");
        assert_eq!(reason(vec![Bytes::new(); 30], &mut seen), "it has no delimiter");
        assert!(seen.known.is_empty());
    }
}
