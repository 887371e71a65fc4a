//! Counts the bytes of a WebSocket's messages while they arrive, which its codec keeps, and as long
//! as they wait. Where there is no room, nothing more is read, and the connection has to end.

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
    /// Set once there was no room.
    problem: Option<Problem>,
}

impl Meter {
    pub(super) fn new(transfer: Transfer) -> Self {
        Self { transfer, state: Arc::default() }
    }

    /// Counts what was read. Returns `false` if there is no room for it.
    fn read(&self, bytes: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.transfer.take(bytes) {
            Ok(()) => state.partial += bytes as u64,
            Err(problem) => state.problem = Some(problem),
        }
        state.problem.is_none()
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

    /// Returns why there was no room, if there was none once.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).problem.clone()
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

    /// Returns the connection, whose bytes are not counted any more.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // After an error the codec would send nothing any more, not even why the connection ends.
        // So nothing seems to have come, and whoever polls looks for the problem.
        if self.meter.problem().is_some() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.meter.read(buffer.filled().len() - before) {
            return Poll::Ready(Ok(()));
        }
        buffer.set_filled(before);
        Poll::Pending
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
