//! Connections of HTTP/1.1 to one server, some of which are kept for the next request.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

use crate::support::lock::lock;

/// How long connecting may take, TLS included.
const CONNECT_TIME: Duration = Duration::from_secs(20);

/// The maximum number of connections that wait for a request.
const MAX_IDLE: usize = 8;

/// Mozilla's certificate authorities, as for the guest's own requests.
static TLS: LazyLock<Option<Arc<ClientConfig>>> = LazyLock::new(|| {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(Arc::new(config))
});

/// The connections to one server.
pub(crate) struct Connections {
    url: Url,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Connections {
    pub(crate) fn new(url: Url) -> Self {
        Self { url, idle: Mutex::default() }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request, over a connection that is free if there is one.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> io::Result<Response<Incoming>> {
        let mut request = request;
        while let Some(mut connection) = self.free() {
            match connection.try_send_request(request).await {
                Ok(response) => {
                    self.keep(connection);
                    return Ok(response);
                }
                // The server closed the connection while it was free.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(io::Error::other(failed.into_error())),
                },
            }
        }
        let connecting = tokio::time::timeout(CONNECT_TIME, self.connect());
        let mut connection = connecting.await.map_err(|_| {
            let seconds = CONNECT_TIME.as_secs();
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("connecting took more than {seconds} s"),
            )
        })??;
        let response = connection.send_request(request).await.map_err(io::Error::other)?;
        self.keep(connection);
        Ok(response)
    }

    /// Takes a connection whose last response was read to its end.
    fn free(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = lock(&self.idle);
        idle.retain(|connection| !connection.is_closed());
        let at = idle.iter().position(SendRequest::is_ready)?;
        Some(idle.swap_remove(at))
    }

    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text);
        let host = self.url.host().ok_or_else(|| invalid("the URL has no host"))?;
        let port =
            self.url.port_or_known_default().ok_or_else(|| invalid("the URL has no port"))?;
        let stream = match &host {
            Host::Domain(name) => TcpStream::connect((*name, port)).await?,
            Host::Ipv4(address) => TcpStream::connect((*address, port)).await?,
            Host::Ipv6(address) => TcpStream::connect((*address, port)).await?,
        };
        // A failure only costs time.
        let _ = stream.set_nodelay(true);
        if self.url.scheme() != "https" {
            return over(stream).await;
        }
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.to_owned())
                .map_err(|_| invalid("no certificate can be for the URL's host"))?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(address)),
        };
        let config = TLS.clone().ok_or_else(|| invalid("the host has no TLS"))?;
        over(TlsConnector::from(config).connect(name, stream).await?).await
    }
}

async fn over<S>(stream: S) -> io::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (requests, connection) = handshake.map_err(io::Error::other)?;
    tokio::spawn(async move {
        // The failure is reported to the waiter for the response.
        let _ = connection.await;
    });
    Ok(requests)
}
