//! A socket that listens, of TCP or Unix.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::tls::Tls;

pub struct Listener {
    socket: Socket,
    tls: Option<Arc<Tls>>,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens on a socket of TCP that is bound. Needs a runtime.
    pub fn tcp(socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Socket::Tcp(TcpListener::from_std(socket)?), tls: None })
    }

    /// Listens on a Unix socket that is bound. Needs a runtime.
    pub fn unix(socket: std::os::unix::net::UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Socket::Unix(UnixListener::from_std(socket)?), tls: None })
    }

    /// Has clients speak TLS.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<Tls>>) -> Self {
        Self { tls, ..self }
    }

    pub(super) fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.as_ref()
    }

    pub async fn accept(&self) -> io::Result<Stream> {
        Ok(match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                // Or an event would wait until the client's kernel has acknowledged the last one.
                let _ = stream.set_nodelay(true);
                Stream::Tcp(stream)
            }
            Socket::Unix(socket) => Stream::Unix(socket.accept().await?.0),
        })
    }
}

/// Returns `true` if a connection failed before it was accepted, after which the server need not
/// wait.
pub(super) fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Returns the address of the client; `None` for a Unix socket.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok(),
            Self::Unix(_) => None,
        }
    }
}

macro_rules! stream {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut *$self {
            Stream::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        stream!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        stream!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        stream!(self, stream => stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        stream!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        stream!(self, stream => stream.poll_shutdown(context))
    }
}
