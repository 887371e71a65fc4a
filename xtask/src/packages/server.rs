//! A server of HTTP on the loopback, for the scripts of packages that make requests.
//!
//! A client can put JSON at a path. Later requests of that path are answered with it, all others
//! with JSON that repeats the request: `method`, `path`, `body`.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

/// How long the server waits for a part of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum size of a request, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// What was put at each path.
type Answers = Mutex<HashMap<String, String>>;

/// Starts the server, which runs until this program ends, and returns its address.
pub(super) fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on the loopback")?;
    let address = listener.local_addr().context("cannot tell the server's address")?;
    let answers = Arc::new(Answers::default());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            // A client that goes away learns nothing more.
            thread::spawn(move || answer(&stream, &answers).ok());
        }
    });
    Ok(address)
}

fn answer(mut stream: &TcpStream, answers: &Answers) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut input = BufReader::new(stream.take(MAX_BYTES));
    let mut first = String::new();
    input.read_line(&mut first)?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    let body = String::from_utf8_lossy(&body);
    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    if method == "PUT" {
        answers.insert(path.to_owned(), body.clone().into_owned());
    }
    let repeated = || json!({ "method": method, "path": path, "body": body }).to_string();
    let text = answers.get(path).cloned().unwrap_or_else(repeated);
    drop(answers);
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(server: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    }

    #[test]
    fn server_repeats_the_request() {
        let post = "POST /a?b=c HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi";
        let answer = request(start().unwrap(), post);
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let expected = serde_json::json!({"body": "hi", "method": "POST", "path": "/a?b=c"});
        assert_eq!(answer, expected);
    }

    #[test]
    fn server_answers_with_what_was_put_there() {
        let server = start().unwrap();
        request(server, "PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]");
        assert_eq!(request(server, "POST /a HTTP/1.1\r\n\r\n"), "[]");
    }
}
