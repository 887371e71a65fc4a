//! The HTTP server of the command: connections that are bounded in number and in time, and answers
//! by a function. The caller decides on answers, and on which clients are known.

mod connections;
mod io;
mod listener;
mod portions;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use self::connections::{ConnectionPermit, Connections, State};
use self::io::Watched;
pub use self::listener::Listener;
use self::portions::Portions;
pub use self::tls::Tls;

/// The bytes of a connection that are kept in memory: the longest head of a request.
const BUFFER_BYTES: usize = 64 << 10;

/// The most connections of clients that are not known.
const MAX_STRANGERS: usize = 512;

/// The bounds on the number of connections, and on the time that they may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most connections. A further one ends one that is silent, or waits.
    pub connections: usize,
    /// The most of those whose client is not known: a further one ends the oldest of them.
    pub strangers: usize,
    /// The time that the head of a request may take, and that between two requests.
    pub head: Duration,
    /// The time for which a client may take no byte of its answer.
    pub unread: Duration,
}

impl Limits {
    /// At most `connections`, and no more than half the descriptors that this process may have: the
    /// others are for the work of the requests.
    pub fn new(connections: usize) -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let half = usize::try_from(descriptors / 2).unwrap_or(usize::MAX);
        let connections = connections.min(half).max(2);
        Self {
            connections,
            strangers: (connections / 2).min(MAX_STRANGERS),
            head: Duration::from_mins(1),
            unread: Duration::from_mins(1),
        }
    }
}

/// The connection of a request, which its extensions have.
#[derive(Clone)]
pub struct Peer {
    state: Arc<State>,
    address: Option<SocketAddr>,
}

impl Peer {
    /// Marks the client as known. Its connection is not ended for one of somebody else while a
    /// request is under way.
    pub fn is_known(&self) {
        self.state.trust();
    }

    /// Returns the address at the other end of the connection; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

/// In the extensions of an answer: its client may take as long as it wants to read it, because
/// unread bytes make their source wait.
#[derive(Clone, Copy)]
pub struct Patient;

/// Answers requests until `end` is cancelled, and then those that are under way.
pub async fn serve<A, F, B>(listener: Listener, limits: Limits, end: CancellationToken, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let connections = Connections::new(limits);
    let (open, mut closed) = mpsc::channel::<()>(1);
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok(stream) => {
                    let peer = stream.peer();
                    let permit = connections.acquire().await;
                    let tls = listener.tls().cloned();
                    let (end, answer) = (end.clone(), answer.clone());
                    let served = async move {
                        match tls {
                            None => connection(stream, (permit, peer), limits, end, answer).await,
                            Some(tls) => {
                                let begun = begin(&tls, stream, &permit, limits).await;
                                let Some(stream) = begun else { return };
                                connection(stream, (permit, peer), limits, end, answer).await;
                            }
                        }
                    };
                    let open = open.clone();
                    tokio::spawn(async move {
                        served.await;
                        drop(open);
                    });
                }
                Err(error) if listener::is_of_the_client(&error) => {}
                // There is no descriptor, or no memory, for another one.
                Err(_) => connections.make_room().await,
            }
        }
    };
    tokio::select! {
        never = accepting => never,
        () = end.cancelled() => {}
    }
    drop((listener, open));
    // Receiving fails once all senders are gone.
    closed.recv().await;
}

/// Begins a connection with TLS, in the time that the head of a request may take.
async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &Tls,
    stream: S,
    permit: &ConnectionPermit,
    limits: Limits,
) -> Option<TlsStream<S>> {
    tokio::select! {
        begun = tokio::time::timeout(limits.head, tls.begin(stream)) => begun.ok().flatten(),
        () = permit.state().shutdown_requested() => None,
    }
}

/// Answers the requests of a connection.
async fn connection<A, F, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (permit, address): (ConnectionPermit, Option<SocketAddr>),
    limits: Limits,
    end: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let state = Arc::clone(permit.state());
    let service = service_fn({
        let state = Arc::clone(&state);
        move |mut request: Request<Incoming>| {
            let busy = Busy::of(&state);
            request.extensions_mut().insert(Peer { state: Arc::clone(&state), address });
            let answer = answer(request);
            async move {
                let response = answer.await;
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    busy.0.keep();
                }
                busy.0.be_patient(response.extensions().get::<Patient>().is_some());
                Ok::<_, Infallible>(response.map(|body| Portions::new(body, busy)))
            }
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(Watched::new(stream, permit, limits.unread)), service)
        .with_upgrades();
    let mut served = pin!(served);
    let mut is_ending = false;
    loop {
        tokio::select! {
            // A client that breaks off is not an error of the server.
            _ = served.as_mut() => return,
            () = state.shutdown_requested() => return,
            () = end.cancelled(), if !is_ending => {
                is_ending = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A request under way, until its answer has been written.
struct Busy(Arc<State>);

impl Busy {
    fn of(state: &Arc<State>) -> Self {
        state.begin();
        Self(Arc::clone(state))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;

    /// More than the buffers of a socket take.
    const LARGE: usize = 16 << 20;

    /// How long a test waits for what it expects.
    const LONGEST: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn an_answer_that_is_not_read_is_cut_off_unless_its_source_waits_for_its_client() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("socket");
        let listener = Listener::unix(UnixListener::bind(&path).unwrap()).unwrap();
        let unread = Duration::from_millis(20);
        let limits = Limits { connections: 4, strangers: 4, head: LONGEST, unread };
        let answer = async |request: Request<Incoming>| {
            let mut response = Response::new(Full::new(Bytes::from(vec![b'x'; LARGE])));
            if request.uri().path() == "/patient" {
                response.extensions_mut().insert(Patient);
            }
            response
        };
        let end = CancellationToken::new();
        let served = tokio::spawn(serve(listener, limits, end.clone(), answer));
        let ask = async |path_of_it: &str| {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            let head = format!("GET {path_of_it} HTTP/1.1\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            // The answer has begun.
            assert_eq!(stream.read_u8().await.unwrap(), b'H');
            stream
        };
        let read = async |mut stream: UnixStream| {
            let mut all = Vec::new();
            // What was cut off may be an error.
            let _ = tokio::time::timeout(LONGEST, stream.read_to_end(&mut all)).await.unwrap();
            all.len()
        };
        let patient = ask("/patient").await;
        let other = ask("/other").await;
        // It ends although nobody reads. The patient one has waited for longer by then.
        let hung_up = async {
            while !other.ready(tokio::io::Interest::WRITABLE).await.unwrap().is_write_closed() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LONGEST, hung_up).await.unwrap();
        assert!(read(other).await < LARGE);
        assert!(read(patient).await > LARGE);
        end.cancel();
        tokio::time::timeout(LONGEST, served).await.unwrap().unwrap();
    }
}
