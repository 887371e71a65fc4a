//! A frame that is being written to a socket, which may accept it in pieces.

use std::io::IoSlice;

/// A shorter body is copied behind its head, because one write is faster than two.
const SHORT_BYTES: usize = 16 << 10;

/// A frame to write, or several, of which the last one has the body.
pub(crate) struct Outgoing<B> {
    head: Vec<u8>,
    /// Kept until everything is written, even if it was copied: an answer counts as
    /// unread until it is dropped.
    body: B,
    is_copied: bool,
}

impl<B: AsRef<[u8]>> Outgoing<B> {
    pub(crate) fn new(mut head: Vec<u8>, body: B) -> Self {
        let is_copied = body.as_ref().len() <= SHORT_BYTES;
        if is_copied {
            head.extend_from_slice(body.as_ref());
        }
        Self { head, body, is_copied }
    }

    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body().len()
    }

    /// Returns the data that follows the first `sent` bytes.
    pub(crate) fn after(&self, sent: usize) -> [IoSlice<'_>; 2] {
        let head = self.head.get(sent..).unwrap_or_default();
        let body = self.body().get(sent.saturating_sub(self.head.len())..).unwrap_or_default();
        [IoSlice::new(head), IoSlice::new(body)]
    }

    fn body(&self) -> &[u8] {
        if self.is_copied { &[] } else { self.body.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_was_not_sent() {
        for length in [0, 5, SHORT_BYTES, SHORT_BYTES + 1] {
            let body: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
            let whole = [b"head".as_slice(), &body].concat();
            let frame = Outgoing::new(b"head".to_vec(), &body);
            assert_eq!(frame.len(), whole.len());
            for sent in [0, 1, 3, 4, 5, length, length + 3, length + 4] {
                let sent = sent.min(whole.len());
                let [head, body] = frame.after(sent);
                assert_eq!([&*head, &*body].concat(), whole[sent..], "{length} {sent}");
            }
        }
    }
}
