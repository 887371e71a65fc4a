//! Request bodies, and how they are sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

use super::error::NetError;

/// A request body that has not been sent.
pub(crate) enum Payload {
    Empty,
    Whole(Bytes),
    Streamed(Streamed),
    /// A streamed body that was already sent.
    Spent,
}

/// A chunk of a streamed body.
pub(crate) enum Piece {
    Data(Bytes),
    End,
}

/// The receiving half of a streamed body.
pub(crate) struct Streamed {
    /// Received, and to be sent first.
    ahead: VecDeque<Bytes>,
    pieces: mpsc::Receiver<Piece>,
    /// The rest of the declared length, in bytes.
    left: Option<u64>,
}

impl Streamed {
    /// Makes both halves, for a declared length. The channel holds one chunk that is not being sent
    /// yet.
    pub(crate) fn new(declared: Option<u64>) -> (mpsc::Sender<Piece>, Self) {
        let (sender, pieces) = mpsc::channel(1);
        (sender, Self { ahead: VecDeque::new(), pieces, left: declared })
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        if self.left == Some(0) {
            return Poll::Ready(Some(Piece::End));
        }
        let piece = match self.ahead.pop_front() {
            Some(bytes) => Poll::Ready(Some(Piece::Data(bytes))),
            None => self.pieces.poll_recv(context),
        };
        if let (Poll::Ready(Some(Piece::Data(bytes))), Some(left)) = (&piece, &mut self.left) {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        piece
    }

    /// Receives the body up to its end, which is `true`, or until more than `limit` bytes are
    /// there.
    async fn collect(&mut self, limit: usize) -> Result<bool, NetError> {
        let declared = self.left;
        let (mut ahead, mut bytes) = (VecDeque::new(), 0_usize);
        let is_whole = loop {
            match poll_fn(|context| self.poll_piece(context)).await {
                Some(Piece::End) => break true,
                Some(Piece::Data(piece)) => {
                    bytes = bytes.saturating_add(piece.len());
                    ahead.push_back(piece);
                    if bytes > limit {
                        break false;
                    }
                }
                None => return Err(NetError::closed()),
            }
        };
        (self.ahead, self.left) = (ahead, declared);
        Ok(is_whole)
    }
}

impl Payload {
    /// Receives a streamed body that has at most `limit` bytes, which makes it whole.
    pub(crate) async fn collect(&mut self, limit: usize) -> Result<(), NetError> {
        let Self::Streamed(streamed) = self else { return Ok(()) };
        let is_longer = streamed.left.is_some_and(|left| left > limit as u64);
        if !is_longer && streamed.collect(limit).await? {
            let pieces: Vec<&[u8]> = streamed.ahead.iter().map(|piece| &**piece).collect();
            *self = Self::Whole(pieces.concat().into());
        }
        Ok(())
    }

    /// Returns how many bytes of the body are already known.
    pub(crate) fn known_bytes(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Empty | Self::Streamed(_) | Self::Spent => 0,
        }
    }

    /// Returns the length that is declared to the server; `None` if the body is sent in chunks.
    pub(crate) fn declared(&self) -> Option<u64> {
        match self {
            Self::Empty | Self::Spent => Some(0),
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Streamed(streamed) => streamed.left,
        }
    }

    /// Takes the body to send it. A streamed body can be taken only once.
    pub(crate) fn take(&mut self) -> Outgoing {
        let payload = std::mem::replace(self, Self::Spent);
        let source = match payload {
            Self::Streamed(streamed) => Source::Streamed(streamed),
            Self::Whole(bytes) => {
                *self = Self::Whole(bytes.clone());
                Source::Whole(bytes)
            }
            Self::Empty | Self::Spent => {
                *self = payload;
                Source::Whole(Bytes::new())
            }
        };
        let sent = Arc::new(AtomicBool::new(source.is_at_end()));
        Outgoing { source, sent }
    }
}

/// A body that is being sent.
pub(crate) struct Outgoing {
    source: Source,
    sent: Arc<AtomicBool>,
}

enum Source {
    Whole(Bytes),
    Streamed(Streamed),
}

impl Source {
    fn is_at_end(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Streamed(streamed) => streamed.left == Some(0),
        }
    }
}

impl Outgoing {
    /// Makes a body that takes the place of another.
    pub(crate) fn whole(body: Bytes) -> Self {
        let source = Source::Whole(body);
        let sent = Arc::new(AtomicBool::new(source.is_at_end()));
        Self { source, sent }
    }

    /// Returns a flag that is set when the whole body was taken to be sent.
    pub(crate) fn sent(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sent)
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = NetError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NetError>>> {
        let piece = match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Some(Piece::End),
            Source::Whole(bytes) => Some(Piece::Data(std::mem::take(bytes))),
            Source::Streamed(streamed) => match streamed.poll_piece(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(match piece {
            Some(Piece::Data(bytes)) => {
                self.sent.store(self.is_end_stream(), Ordering::Relaxed);
                Some(Ok(Frame::data(bytes)))
            }
            Some(Piece::End) => {
                self.sent.store(true, Ordering::Relaxed);
                None
            }
            // Nobody will send the rest. The server must not mistake the part that it has for the
            // whole.
            None => Some(Err(NetError::closed())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Streamed(_) => SizeHint::new(),
        }
    }
}
