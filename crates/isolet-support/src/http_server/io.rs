//! A connection's bytes: notes when its client is silent, and ends it when an answer is not read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connections::ConnectionPermit;

pub(super) struct Watched<S> {
    stream: S,
    permit: ConnectionPermit,
    unread: Duration,
    /// Runs while the client has to read before more can be written.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, permit: ConnectionPermit, unread: Duration) -> Self {
        Self { stream, permit, unread, waiting: None }
    }

    /// Passes on what writing came to, unless it has waited for too long.
    fn wrote<T>(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if wrote.is_ready() || self.permit.state().is_patient() {
            self.waiting = None;
            return wrote;
        }
        let unread = self.unread;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(unread)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            self.permit.state().falls_silent();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.wrote(context, wrote)
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::Limits;
    use super::super::connections::Connections;
    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_given_up_unless_it_may_take_its_time() {
        let unread = Duration::from_millis(10);
        let table = Connections::new(Limits { connections: 4, strangers: 4, head: unread, unread });
        let (patient, mut slow) = tokio::io::duplex(8);
        let permit = table.acquire().await;
        permit.state().be_patient(true);
        let mut patient = Watched::new(patient, permit, unread);
        let waiting = tokio::spawn(async move { patient.write_all(&[1; 64]).await });

        let (server, _client) = tokio::io::duplex(8);
        let mut watched = Watched::new(server, table.acquire().await, unread);
        let error = watched.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        assert!(!waiting.is_finished());
        slow.read_exact(&mut [0; 64]).await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}
