//! Connections, to vetted addresses only.
//!
//! Uses hyper's connections directly, without its client. This way the peer is compared with the
//! vetted addresses before the first byte is sent, not after the response. Nothing reads proxy
//! settings, follows redirects or resolves names on its own, and we choose the key of the
//! connection pool.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::body::Outgoing;
use super::error::NetError;
use super::limits::NetLimits;
use super::target::CheckedTarget;
use super::tls::Tls;

/// An HTTP/1.1 connection. Dropping it closes the socket.
pub(super) struct Connection {
    requests: SendRequest<Outgoing>,
    task: AbortHandle,
}

impl Connection {
    /// Connects to the first address of the target that accepts the connection.
    pub(super) async fn open(
        target: &CheckedTarget,
        tls: &Tls,
        limits: &NetLimits,
    ) -> Result<Self, NetError> {
        let deadline = Instant::now() + limits.connect_time;
        let connect = async {
            let stream = connect_any(&target.sockets(), &target.server(), deadline).await?;
            Self::begin(stream, target, tls, limits).await
        };
        timeout_at(deadline, connect).await.map_err(|_| late(target, limits))?
    }

    /// As [`open`](Self::open), over a connection that [`reach`] has made.
    pub(super) async fn open_over(
        stream: TcpStream,
        target: &CheckedTarget,
        tls: &Tls,
        limits: &NetLimits,
    ) -> Result<Self, NetError> {
        let connect = Self::begin(stream, target, tls, limits);
        timeout(limits.connect_time, connect).await.map_err(|_| late(target, limits))?
    }

    async fn begin(
        stream: TcpStream,
        target: &CheckedTarget,
        tls: &Tls,
        limits: &NetLimits,
    ) -> Result<Self, NetError> {
        if target.is_https() {
            Self::over(tls.connect(target, stream).await?, target, limits).await
        } else {
            Self::over(stream, target, limits).await
        }
    }

    async fn over<S>(
        stream: S,
        target: &CheckedTarget,
        limits: &NetLimits,
    ) -> Result<Self, NetError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
        TokioIo<S>: Read + Write,
    {
        /// hyper panics on smaller buffers.
        const SMALLEST_BUFFER: usize = 8192;
        let mut builder = http1::Builder::new();
        builder
            .max_buf_size(limits.header_bytes.max(SMALLEST_BUFFER))
            .max_header_size(limits.header_bytes)
            .max_headers(limits.headers);
        let (requests, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| NetError::from_hyper(&error, &target.server()))?;
        let serve = async {
            // The failure is reported to the waiter for the response.
            let _ = connection.await;
        };
        Ok(Self { requests, task: tokio::spawn(serve).abort_handle() })
    }

    /// Sends a request. Returns it if the connection was closed before any of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, Failed> {
        self.requests.try_send_request(request).await.map_err(|mut failed| {
            let unsent = failed.take_message().map(Box::new);
            Failed { unsent, error: failed.into_error() }
        })
    }

    /// Waits until the connection can take another request. Returns `false` if it never will.
    pub(super) async fn ready(&mut self) -> bool {
        /// The response was read to its end, so this takes no longer than one turn of the runtime.
        const PATIENCE: Duration = Duration::from_secs(1);
        matches!(tokio::time::timeout(PATIENCE, self.requests.ready()).await, Ok(Ok(())))
    }

    pub(super) fn is_ready(&self) -> bool {
        self.requests.is_ready()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request without a response.
pub(super) struct Failed {
    pub(super) unsent: Option<Box<Request<Outgoing>>>,
    pub(super) error: hyper::Error,
}

/// Connects to the first address of the target that accepts the connection, and sends nothing.
pub(super) async fn reach(
    target: &CheckedTarget,
    limits: &NetLimits,
) -> Result<TcpStream, NetError> {
    let deadline = Instant::now() + limits.connect_time;
    connect_any(&target.sockets(), &target.server(), deadline).await
}

fn late(target: &CheckedTarget, limits: &NetLimits) -> NetError {
    NetError::timeout(&format!("connecting to {}", target.server()), limits.connect_time)
}

/// Tries the addresses in order, each with its share of the remaining time.
async fn connect_any(
    vetted: &[SocketAddr],
    server: &str,
    deadline: Instant,
) -> Result<TcpStream, NetError> {
    let mut failure = NetError::connection(format!("{server} has no address"));
    for (index, address) in vetted.iter().enumerate() {
        let left = u32::try_from(vetted.len() - index).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let peer = stream.peer_addr().map_err(|error| NetError::from_io(&error, server))?;
                check_peer(peer, vetted, server)?;
                // A failure only costs time.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failure = NetError::from_io(&error, server),
            Err(_) => failure = NetError::timeout(&format!("connecting to {server}"), share),
        }
    }
    Err(failure)
}

/// Rejects a peer that was not vetted.
pub(super) fn check_peer(
    peer: SocketAddr,
    vetted: &[SocketAddr],
    server: &str,
) -> Result<(), NetError> {
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    if vetted.contains(&peer) {
        return Ok(());
    }
    Err(NetError::connection(format!("the connection to {server} went to another address")))
}
