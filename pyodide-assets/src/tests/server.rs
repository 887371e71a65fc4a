//! A loopback HTTP server that delivers the fake release correctly, or as wrongly as a test
//! requires.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::content;

/// A request as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// The file's name.
    pub(super) file: String,
    /// The first requested byte, if the request had a range.
    pub(super) from: Option<usize>,
    /// The lines of the head, in lower case.
    pub(super) head: Vec<String>,
}

/// How to answer.
pub(super) enum Answer {
    /// The file, or its rest if the request has a range.
    Good,
    /// The whole file, whatever the request asks for.
    Whole,
    /// The file or its rest, with these headers.
    With(&'static str),
    /// Announces the right length and stops after this many bytes.
    CutAfter(usize),
    /// The same, with this header.
    CutWith(usize, &'static str),
    /// These bytes as the file.
    Instead(Vec<u8>),
    /// These bytes, without announcing their number.
    Endless(Vec<u8>),
    /// An error status, or a range status with a wrong range.
    Status(u16, &'static str),
}

/// Runs until dropped.
pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that calls `answer` for each request, with the number of the request,
    /// counted from 0.
    pub(super) fn start(answer: impl Fn(usize, &Seen) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (log, stopped) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let stream = stream.unwrap();
                let request = read_request(&stream);
                let number = log.lock().unwrap().len();
                log.lock().unwrap().push(request.clone());
                // A client may hang up before the end.
                let _ = respond(stream, &request, answer(number, &request));
            }
        });
        Self { address, seen, stop, thread: Some(thread) }
    }

    /// Returns the URL of the files, for [`FetchOptions::sources`](crate::FetchOptions::sources).
    pub(super) fn source(&self) -> String {
        format!("http://{}/files/{{file}}", self.address)
    }

    /// Returns the requests so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the first requested bytes of all requests for `file` so far.
    pub(super) fn ranges(&self, file: &str) -> Vec<Option<usize>> {
        self.seen().into_iter().filter(|seen| seen.file == file).map(|seen| seen.from).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

fn read_request(stream: &TcpStream) -> Seen {
    let mut seen = Seen { file: String::new(), from: None, head: Vec::new() };
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap().to_ascii_lowercase();
        seen.head.push(line.clone());
        // A proxy is asked with the whole URL.
        if let Some((_, path)) = line.split_once("/files/") {
            path.split(' ').next().unwrap().clone_into(&mut seen.file);
        } else if let Some(range) = line.strip_prefix("range: bytes=") {
            seen.from = Some(range.strip_suffix('-').unwrap().parse().unwrap());
        } else if line.is_empty() {
            break;
        }
    }
    seen
}

fn respond(mut stream: TcpStream, request: &Seen, answer: Answer) -> std::io::Result<()> {
    let whole = content(&request.file);
    let mut ok = |head: &str, body: &[u8]| {
        write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\n\r\n")?;
        stream.write_all(body)
    };
    let mut cut = |bytes: usize, headers: &str| {
        let head = format!("200 OK\r\n{headers}content-length: {}", whole.len());
        ok(&head, &whole[..bytes.min(whole.len())])
    };
    match answer {
        Answer::Good => respond(stream, request, Answer::With("")),
        Answer::With(headers) if request.from.is_some() => {
            let from = request.from.unwrap();
            let (size, rest) = (whole.len(), &whole[from..]);
            let range = format!("content-range: bytes {from}-{}/{size}", size - 1);
            let length = format!("content-length: {}", rest.len());
            ok(&format!("206 Partial Content\r\n{headers}{range}\r\n{length}"), rest)
        }
        Answer::With(headers) => cut(usize::MAX, headers),
        Answer::Whole => cut(usize::MAX, ""),
        Answer::CutAfter(bytes) => cut(bytes, ""),
        Answer::CutWith(bytes, headers) => cut(bytes, headers),
        Answer::Instead(bytes) => ok(&format!("200 OK\r\ncontent-length: {}", bytes.len()), &bytes),
        Answer::Endless(bytes) => ok("200 OK", &bytes),
        Answer::Status(status, headers) => {
            ok(&format!("{status} Test\r\n{headers}content-length: 0"), b"")
        }
    }
}
