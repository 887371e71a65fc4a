//! The body of an answer, in portions between which others have their turn: passing a long answer
//! to the kernel at once keeps the thread busy for milliseconds.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The most bytes of a portion.
const PORTION_BYTES: usize = 128 << 10;

/// The body of an answer, and a value that is kept until it was written.
pub(super) struct Portions<B, K> {
    body: B,
    /// The bytes that the body has given and the connection has not taken yet.
    rest: Bytes,
    /// Set after a portion, until others had their turn.
    pauses: bool,
    _kept: K,
}

impl<B, K> Portions<B, K> {
    pub(super) fn new(body: B, kept: K) -> Self {
        Self { body, rest: Bytes::new(), pauses: false, _kept: kept }
    }

    fn next_portion(&mut self) -> Frame<Bytes> {
        self.pauses = self.rest.len() > PORTION_BYTES;
        let length = self.rest.len().min(PORTION_BYTES);
        Frame::data(self.rest.split_to(length))
    }
}

impl<B: Body<Data = Bytes> + Unpin, K: Unpin> Body for Portions<B, K> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if std::mem::take(&mut self.pauses) {
            // It has the task woken once the others had their turn.
            let _ = pin!(tokio::task::yield_now()).poll(context);
            return Poll::Pending;
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_portion())));
        }
        let next = Pin::new(&mut self.body).poll_frame(context);
        next.map_ok(|frame| match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.next_portion()
            }
            Err(frame) => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::{BodyExt, Full};

    use super::*;

    #[tokio::test]
    async fn others_have_a_turn_between_the_portions_of_a_long_answer() {
        const PORTIONS: usize = 5;
        let all = (0..=u8::MAX).cycle().take(PORTIONS * PORTION_BYTES - 1);
        let all: Bytes = all.collect();
        let mut body = Portions::new(Full::new(all.clone()), ());
        assert_eq!(body.size_hint().exact(), Some(all.len() as u64));
        let turns = Arc::new(AtomicUsize::new(0));
        let other = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                loop {
                    turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let (mut read, mut seen) = (Vec::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let portion = frame.unwrap().into_data().unwrap();
            assert!(portion.len() <= PORTION_BYTES);
            read.extend_from_slice(&portion);
            seen.push(turns.load(Ordering::Relaxed));
            assert_eq!(body.size_hint().exact(), Some((all.len() - read.len()) as u64));
            assert_eq!(body.is_end_stream(), read.len() == all.len());
        }
        other.abort();
        assert_eq!((read.len(), seen.len()), (all.len(), PORTIONS));
        assert!(read == all && seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    }
}
