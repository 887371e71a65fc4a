//! A small HTTP/1.1 server for tests: it sends prepared answers and records requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A request as the server saw it, with lower-case header names.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Whether the server keeps serving the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Close,
    KeepAlive,
}

#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server on 127.0.0.1 whose answers `respond` writes to the connection.
    pub(super) fn new(
        respond: impl Fn(&Seen, &mut TcpStream) -> Then + Send + Sync + 'static,
    ) -> Self {
        Self::raw("127.0.0.1:0", move |server, stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut stream = stream;
            while let Some(seen) =
                read_head(&mut reader).and_then(|head| read_body(head, &mut reader))
            {
                server.requests.lock().unwrap().push(seen.clone());
                if respond(&seen, &mut stream) == Then::Close {
                    break;
                }
            }
        })
    }

    /// Starts a server that answers every request with the same text.
    pub(super) fn fixed(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::new(move |_, stream| {
            let _ = stream.write_all(&response);
            Then::KeepAlive
        })
    }

    /// Starts a server that must not be connected to.
    pub(super) fn canary() -> Self {
        Self::fixed(ok("canary"))
    }

    /// Starts a server whose connections `serve` handles.
    pub(super) fn raw(
        address: &str,
        serve: impl Fn(&Self, TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, requests: Arc::default(), connections: Arc::default() };
        let (shared, serve) = (server.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (shared, serve) = (shared.clone(), Arc::clone(&serve));
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        server
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the URL of a path, at the server's address.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the URL of a path at a name.
    pub(super) fn named(&self, name: &str, path: &str) -> String {
        format!("http://{name}:{}{path}", self.port())
    }

    pub(super) fn requests(&self) -> Vec<Seen> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Makes a response with a length.
pub(super) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Makes a redirect with an empty body.
pub(super) fn redirect(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

/// Reads a request up to the empty line. Returns `None` at the end of the connection.
pub(super) fn read_head(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => return Some(Seen { method, path, headers, body: Vec::new() }),
        }
    }
}

fn read_body(mut seen: Seen, reader: &mut impl BufRead) -> Option<Seen> {
    if let Some(length) = seen.header("content-length") {
        seen.body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut seen.body).ok()?;
    } else if seen.header("transfer-encoding") == Some("chunked") {
        while let Some(chunk) = read_chunk(reader)? {
            seen.body.extend(chunk);
        }
    }
    Some(seen)
}

/// Reads a chunk of a body. `Some(None)` is its end.
#[expect(clippy::option_option, reason = "the end of the body and that of the connection differ")]
pub(super) fn read_chunk(reader: &mut impl BufRead) -> Option<Option<Vec<u8>>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let length = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(length);
    Some((length > 0).then_some(chunk))
}

/// Waits until the peer has closed the connection.
pub(super) fn wait_for_close(stream: &mut TcpStream) {
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
}
