//! Counts the bytes of a WebSocket's messages while they arrive, which its codec keeps, and as long
//! as they wait. One for which there is no room ends the connection.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::problem::Problem;
use super::transfer::Transfer;

/// The head of a short frame of a client.
const HEAD_BYTES: usize = 6;

/// The bytes of a connection that are counted.
#[derive(Clone)]
pub(super) struct Meter {
    transfer: Transfer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What has come of messages that are not whole.
    partial: u64,
    /// The messages that are whole, and are there still.
    held: u64,
    problem: Option<Problem>,
}

impl Meter {
    pub(super) fn new(transfer: Transfer) -> Self {
        Self { transfer, state: Arc::default() }
    }

    fn read(&self, bytes: usize) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.transfer.take(bytes) {
            Ok(()) => {
                state.partial += bytes as u64;
                Ok(())
            }
            Err(problem) => {
                state.problem = Some(problem);
                Err(io::ErrorKind::QuotaExceeded.into())
            }
        }
    }

    /// A message has arrived. Its bytes do not count any more, unless it is [held](Self::hold).
    pub(super) fn arrived(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.transfer.charge().give_back(std::mem::take(&mut state.partial));
    }

    /// A ping, or its answer, has arrived, perhaps between the parts of a message.
    pub(super) fn passed(&self, bytes: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = ((bytes + HEAD_BYTES) as u64).min(state.partial);
        state.partial -= bytes;
        self.transfer.charge().give_back(bytes);
    }

    /// Says how many bytes of messages wait, or are being carried out or sent.
    pub(super) fn hold(&self, bytes: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut state.held, bytes);
        let mut charge = self.transfer.charge();
        charge.give_back(before);
        charge.note(bytes);
    }

    /// Returns why there was no room, if that is what ended the connection.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).problem.take()
    }
}

/// A connection whose bytes are counted as they are read.
pub(super) struct Metered<S> {
    stream: S,
    meter: Meter,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, meter: Meter) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.meter.read(buffer.filled().len() - before))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
