//! A real HTTP server on loopback for the tests, which records requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as the server got it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET` and so on.
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Without the framing of its transfer.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the value of the first header with this name, in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What to answer: a status, headers, a body.
#[derive(Debug)]
pub struct Response(pub u16, pub Vec<(&'static str, String)>, pub Vec<u8>);

impl Response {
    /// Answers with a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self(200, vec![("Content-Type", "text/plain".to_owned())], text.into())
    }

    /// Answers with a redirection.
    pub fn redirect(status: u16, to: impl Into<String>) -> Self {
        Self(status, vec![("Location", to.into())], Vec::new())
    }
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    stopped: AtomicBool,
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server at a port of its own.
    pub fn start(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let handler: Arc<Handler> = Arc::new(handler);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::Acquire) {
                    return;
                }
                shared.connections.fetch_add(1, Ordering::AcqRel);
                let (shared, handler) = (Arc::clone(&shared), Arc::clone(&handler));
                // A client may go away, so errors are ignored.
                std::thread::spawn(move || serve(stream.unwrap(), &shared, &*handler).is_ok());
            }
        });
        Self { address, seen, thread: Some(thread) }
    }

    /// Answers all requests with `text`.
    #[must_use]
    pub fn with_text(text: &'static str) -> Self {
        Self::start(move |_| Response::text(text))
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns `127.0.0.1:PORT`, in the form of a rule.
    #[must_use]
    pub fn rule(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns how many connections were made.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Acquire)
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.seen.stopped.store(true, Ordering::Release);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(stream: TcpStream, seen: &Seen, handler: &Handler) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(request) = read(&mut reader)? {
        seen.requests.lock().unwrap().push(request.clone());
        let Response(status, headers, body) = handler(&request);
        let mut head = format!("HTTP/1.1 {status} Reason\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.extend([name, ": ", value.as_str(), "\r\n"]);
        }
        stream.write_all((head + "\r\n").as_bytes())?;
        if request.method != "HEAD" {
            stream.write_all(&body)?;
        }
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace().map(str::to_owned);
    let mut request = Request {
        method: parts.next().unwrap_or_default(),
        path: parts.next().unwrap_or_default(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    if request.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            request.body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length") {
        request.body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}
