//! Charges the bytes of a WebSocket's messages while its codec assembles them and while they are
//! queued. When a limit is reached, reading stops and the connection must be closed.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::problem::Problem;
use super::request_log::Record;
use super::transfer::Transfer;

/// The length of the header of a client's short frame.
const HEAD_BYTES: usize = 6;

/// The charge of a connection.
#[derive(Clone)]
pub(super) struct Meter {
    transfer: Transfer,
    /// Counts all bytes for the log.
    record: Option<Arc<Record>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The bytes of incomplete messages.
    partial: u64,
    /// The bytes of complete messages that are still in memory.
    held: u64,
    /// Set once a limit was reached.
    problem: Option<Problem>,
}

impl Meter {
    pub(super) fn new(transfer: Transfer, record: Option<Arc<Record>>) -> Self {
        Self { transfer, record, state: Arc::default() }
    }

    /// Returns the record of its request, if there is a log.
    pub(super) fn record(&self) -> Option<&Arc<Record>> {
        self.record.as_ref()
    }

    /// Counts bytes that were written.
    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        if let (Some(record), Poll::Ready(Ok(bytes))) = (&self.record, written) {
            record.sent(*bytes);
        }
    }

    /// Charges bytes that were read. Returns `false` if a limit is reached.
    fn read(&self, bytes: usize) -> bool {
        if let Some(record) = &self.record {
            record.received(bytes);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.transfer.take(bytes) {
            Ok(()) => state.partial += bytes as u64,
            Err(problem) => state.problem = Some(problem),
        }
        state.problem.is_none()
    }

    /// Ends the charge of incomplete messages, because one is complete. Its bytes are charged by
    /// [`hold`](Self::hold).
    pub(super) fn arrived(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.transfer.charge().give_back(std::mem::take(&mut state.partial));
    }

    /// Ends the charge of a ping or pong, which may arrive between the frames of a message.
    pub(super) fn passed(&self, bytes: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = ((bytes + HEAD_BYTES) as u64).min(state.partial);
        state.partial -= bytes;
        self.transfer.charge().give_back(bytes);
    }

    /// Sets the bytes of messages that are queued, being carried out or being sent.
    pub(super) fn hold(&self, bytes: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut state.held, bytes);
        let mut charge = self.transfer.charge();
        charge.give_back(before);
        charge.note(bytes);
    }

    /// Returns the problem of the limit, if one was reached.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).problem.clone()
    }
}

/// A connection whose reads are charged.
pub(super) struct Metered<S> {
    stream: S,
    meter: Meter,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, meter: Meter) -> Self {
        Self { stream, meter }
    }

    /// Returns the connection, without charging further reads.
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
        // An error would keep the codec from sending a close frame. So no bytes seem to have
        // arrived, and the caller of `poll` checks for the problem.
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
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.meter.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.meter.wrote(&written);
        written
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
