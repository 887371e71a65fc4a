//! Tests of streaming in both directions, with backpressure from the slower side.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::super::request::Body;
use super::super::{NetError, NetErrorKind, Request};
use super::guest::{Guest, answer, get, post, wait, with_headers};
use super::server::{Server, Then, ok, read_chunk, read_head, wait_for_close};

/// The declared length of a request, and its connection.
type Connection = (Option<String>, BufReader<TcpStream>);

/// Starts a server that hands its one connection to the test, after the head of the request.
fn handed_over() -> (Server, Receiver<Connection>) {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let server = Server::raw("127.0.0.1:0", move |_, stream| {
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader).unwrap();
        let length = head.header("content-length").map(str::to_owned);
        sender.lock().unwrap().send((length, reader)).unwrap();
    });
    (server, receiver)
}

#[test]
fn a_body_is_sent_while_its_response_is_read() {
    let (server, connections) = handed_over();
    let guest = Guest::of(&server, &[]);
    let (exchange, head) = guest.begin(post(&server.url("/"), Body::Streamed));
    guest.send(exchange, b"one").unwrap();
    let (length, mut connection) = connections.recv().unwrap();
    assert_eq!(length, None);
    assert_eq!(read_chunk(&mut connection), Some(Some(b"one".to_vec())));
    connection
        .get_mut()
        .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .unwrap();
    assert_eq!(wait(&head).unwrap().status, 200);
    for word in ["two", "three"] {
        guest.send(exchange, word.as_bytes()).unwrap();
        let chunk = read_chunk(&mut connection).unwrap().unwrap();
        assert_eq!(chunk, word.as_bytes());
        let echo = format!("{:x}\r\n{word}\r\n", word.len());
        connection.get_mut().write_all(echo.as_bytes()).unwrap();
        assert_eq!(guest.read(exchange, 100).unwrap(), word.as_bytes());
    }
    guest.send(exchange, b"").unwrap();
    assert_eq!(read_chunk(&mut connection), Some(None));
    connection.get_mut().write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(guest.read(exchange, 100).unwrap(), b"");
    assert_eq!(guest.read(exchange, 100).unwrap(), b"");
    guest.network.close(exchange);
}

#[test]
fn a_guest_that_sends_waits_for_a_server_that_does_not_read() {
    let (server, connections) = handed_over();
    let guest = Guest::of(&server, &[]);
    let (exchange, head) = guest.begin(post(&server.url("/"), Body::Streamed));
    let (_, mut connection) = connections.recv().unwrap();
    // Chunks are buffered on the way until one is not taken at once.
    let piece = vec![b'a'; 1 << 18];
    let (mut sent, waiting) = (0, loop_until_blocked(&guest, exchange, &piece));
    while let Some(chunk) = read_chunk(&mut connection).unwrap() {
        sent += chunk.len();
        if sent == waiting.0 {
            break;
        }
    }
    wait(&waiting.1).unwrap();
    guest.send(exchange, b"").unwrap();
    assert_eq!(read_chunk(&mut connection), Some(None));
    connection.get_mut().write_all(ok("").as_bytes()).unwrap();
    assert_eq!(wait(&head).unwrap().status, 200);
}

/// Sends until a chunk is not answered. Returns the bytes of all chunks and the receiver of that
/// answer.
fn loop_until_blocked(
    guest: &Guest,
    exchange: u32,
    piece: &[u8],
) -> (usize, Receiver<Result<(), NetError>>) {
    let mut bytes = 0;
    loop {
        let (answer, receiver) = answer();
        guest.network.send(exchange, piece.to_vec(), answer);
        bytes += piece.len();
        assert!(bytes < 64 << 20, "everything was taken");
        match receiver.recv_timeout(std::time::Duration::from_millis(300)) {
            Ok(result) => result.unwrap(),
            Err(_) => return (bytes, receiver),
        }
    }
}

#[test]
fn a_server_that_sends_waits_for_a_guest_that_does_not_read() {
    let (done, finished) = channel();
    let done = Mutex::new(done);
    let server = Server::new(move |_, stream| {
        let length = 64 << 20;
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").unwrap();
        let written = stream.write_all(&vec![b'a'; length]);
        done.lock().unwrap().send(written.is_ok()).unwrap();
        Then::KeepAlive
    });
    let guest = Guest::of(&server, &[]);
    let (exchange, _) = guest.start(get(&server.url("/"))).unwrap();
    assert_eq!(guest.read(exchange, 10).unwrap(), b"aaaaaaaaaa");
    assert!(finished.try_recv().is_err(), "64 MiB were buffered");
    let mut bytes = 10;
    loop {
        let chunk = guest.read(exchange, usize::MAX).unwrap();
        if chunk.is_empty() {
            break;
        }
        bytes += chunk.len();
    }
    assert_eq!(bytes, 64 << 20);
    assert!(finished.recv().unwrap());
}

#[test]
fn a_declared_length_is_kept_exactly() {
    let server = Server::fixed(ok("fine"));
    let guest = Guest::of(&server, &[]);
    let declared =
        || with_headers(post(&server.url("/"), Body::Streamed), &[("Content-Length", "6")]);

    let (exchange, head) = guest.begin(declared());
    guest.send(exchange, b"123").unwrap();
    guest.send(exchange, b"456").unwrap();
    assert_eq!(guest.send(exchange, b"7").unwrap_err().python_type(), "ValueError");
    guest.send(exchange, b"").unwrap();
    assert_eq!(wait(&head).unwrap().status, 200);
    let seen = server.requests().remove(0);
    assert_eq!((seen.header("content-length"), &*seen.body), (Some("6"), &b"123456"[..]));
    assert_eq!(seen.header("transfer-encoding"), None);

    let (exchange, head) = guest.begin(declared());
    guest.send(exchange, b"123").unwrap();
    let error = guest.send(exchange, b"").unwrap_err();
    assert_eq!(error.message, "the body ends with 3 bytes left of the declared Content-Length");
    wait(&head).unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_streamed_body_of_any_method_is_sent_in_chunks() {
    for method in ["GET", "DELETE", "PUT"] {
        let server = Server::fixed(ok(""));
        let guest = Guest::of(&server, &[]);
        let request =
            Request { method: method.to_owned(), ..post(&server.url("/"), Body::Streamed) };
        let (exchange, head) =
            guest.begin(with_headers(request, &[("Transfer-Encoding", "chunked")]));
        guest.send(exchange, b"piece").unwrap();
        guest.send(exchange, b"").unwrap();
        wait(&head).unwrap();
        let seen = server.requests().remove(0);
        let sent = (seen.header("transfer-encoding"), &*seen.body);
        assert_eq!(sent, (Some("chunked"), &b"piece"[..]), "{method}");
        assert_eq!(seen.headers.iter().filter(|(name, _)| name == "transfer-encoding").count(), 1);
        assert_eq!(guest.send(exchange, b"more").unwrap_err().kind, NetErrorKind::Invalid);
    }
}

#[test]
fn a_body_that_is_never_ended_never_looks_whole() {
    let (server, connections) = handed_over();
    let guest = Guest::of(&server, &[]);
    let (exchange, head) = guest.begin(post(&server.url("/"), Body::Streamed));
    guest.send(exchange, b"half").unwrap();
    let (_, mut connection) = connections.recv().unwrap();
    assert_eq!(read_chunk(&mut connection), Some(Some(b"half".to_vec())));
    guest.network.close(exchange);
    assert_eq!(wait(&head).unwrap_err().message, "the exchange was closed");
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap_or_default();
    assert_eq!(rest, b"");
}

#[test]
fn a_response_may_come_before_the_body_was_sent() {
    let closed = Arc::new(Mutex::new(0));
    let count = Arc::clone(&closed);
    let server = Server::raw("127.0.0.1:0", move |_, stream| {
        let mut reader = BufReader::new(stream);
        read_head(&mut reader).unwrap();
        reader
            .get_mut()
            .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            .unwrap();
        wait_for_close(reader.get_mut());
        *count.lock().unwrap() += 1;
    });
    let guest = Guest::of(&server, &[]);
    let (exchange, head) = guest.begin(post(&server.url("/"), Body::Streamed));
    assert_eq!(wait(&head).unwrap().status, 413);
    assert_eq!(guest.read(exchange, 9).unwrap(), b"no");
    assert_eq!(guest.read(exchange, 9).unwrap(), b"");
    // The connection cannot be reused, so nothing reads the rest of the body.
    while guest.send(exchange, b"piece").is_ok() {}
    guest.get(&server.url("/")).unwrap();
    assert_eq!(server.connections(), 2);
}
