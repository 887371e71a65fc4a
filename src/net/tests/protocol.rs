//! Tests with responses of all kinds, and with servers that violate HTTP.

use std::io::Write;
use std::net::Shutdown;

use super::super::{NetErrorKind, Request};
use super::guest::{Guest, allowing, get};
use super::server::{Server, Then, ok};

/// Returns what a guest receives from a server that sends this and closes the connection.
fn exchange(response: &[u8], method: &str) -> Result<super::guest::Whole, super::super::NetError> {
    let response = response.to_vec();
    let server = Server::new(move |_, stream| {
        stream.write_all(&response).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        super::server::wait_for_close(stream);
        Then::Close
    });
    Guest::of(&server, &[]).fetch(Request { method: method.to_owned(), ..get(&server.url("/")) })
}

#[test]
fn heads_arrive_whole() {
    let response =
        b"HTTP/1.1 404 Nothing Here\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Raw: \xff\r\n\
        Content-Length: 2\r\n\r\nno";
    let whole = exchange(response, "GET").unwrap();
    assert_eq!((whole.head.status, whole.head.version, &*whole.body), (404, 11, &b"no"[..]));
    assert_eq!(whole.head.reason, "Nothing Here");
    let headers: Vec<_> =
        whole.head.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let expected: [(&str, &[u8]); 4] = [
        ("set-cookie", b"a=1"),
        ("set-cookie", b"b=2"),
        ("x-raw", b"\xff"),
        ("content-length", b"2"),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn the_kinds_of_bodies_end_where_they_should() {
    let cases: [(&str, &str, u16, u8, &str); 9] = [
        ("GET", "HTTP/1.0 200 OK\r\n\r\nold", 200, 10, "old"),
        ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", 200, 10, "old"),
        ("GET", "HTTP/1.1 200 OK\r\n\r\nto the end", 200, 11, "to the end"),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            200,
            11,
            "hi",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, 11, ""),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, 11, ""),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, 11, ""),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nhi\r\n3;x=y\r\n th\r\n0\r\nX-Trailer: 1\r\n\r\n",
            200,
            11,
            "hi th",
        ),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 11, ""),
    ];
    for (method, response, status, version, body) in cases {
        let whole = exchange(response.as_bytes(), method).expect(response);
        assert_eq!((whole.head.status, whole.head.version), (status, version), "{response}");
        assert_eq!(whole.body, body.as_bytes(), "{response}");
    }
}

#[test]
fn what_is_no_http_is_an_error() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: 1\r\n".repeat(257));
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(65536));
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(1 << 20));
    let cases: [(&str, NetErrorKind); 14] = [
        ("", NetErrorKind::Cut),
        ("HTTP/1.1 200 OK\r\nContent-Le", NetErrorKind::Cut),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", NetErrorKind::Cut),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi", NetErrorKind::Cut),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhi", NetErrorKind::Connection),
        ("hello", NetErrorKind::Connection),
        ("SSH-2.0-OpenSSH_9.9\r\n", NetErrorKind::Connection),
        ("HTTP/1.1 999999 OK\r\n\r\n", NetErrorKind::Connection),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", NetErrorKind::Connection),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
            NetErrorKind::Connection,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            NetErrorKind::Connection,
        ),
        (&many, NetErrorKind::Limit),
        (&long, NetErrorKind::Limit),
        (&endless, NetErrorKind::Limit),
    ];
    for (response, kind) in cases {
        let error = exchange(response.as_bytes(), "GET").expect_err(response);
        assert_eq!(error.kind, kind, "{}: {error}", response.chars().take(80).collect::<String>());
    }
}

#[test]
fn refused_connections_say_so_without_an_address() {
    // Bound but not listening, so that no other process gets the port during the test.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let mut policy = allowing(&[], &[]);
    policy.allow(&address.to_string()).unwrap();
    policy.allow("a.test").unwrap();
    policy.resolve_to("a.test", vec![address.ip()]).unwrap();
    let error = Guest::new(policy).get(&format!("http://a.test:{}/", address.port())).unwrap_err();
    assert_eq!(error.python_type(), "ConnectionRefusedError");
    assert_eq!(error.message, format!("a.test:{} refused the connection", address.port()));
}

#[test]
fn the_next_address_is_tried_if_one_refuses() {
    let server = Server::fixed(ok("second"));
    let mut policy = allowing(&[&server], &[]);
    policy.allow("127.0.0.0/8").unwrap();
    policy.allow("a.test").unwrap();
    let addresses = vec!["127.0.0.77".parse().unwrap(), server.address.ip()];
    policy.resolve_to("a.test", addresses).unwrap();
    let whole = Guest::new(policy).get(&server.named("a.test", "/")).unwrap();
    assert_eq!(whole.body, b"second");
}

#[test]
fn ipv6_addresses_are_served_in_brackets() {
    let server = Server::raw("[::1]:0", |_, stream| {
        let mut reader = std::io::BufReader::new(stream);
        let head = super::server::read_head(&mut reader).unwrap();
        let host = head.header("host").unwrap().to_owned();
        reader.get_mut().write_all(ok(&host).as_bytes()).unwrap();
    });
    let whole = Guest::of(&server, &[]).get(&server.url("/")).unwrap();
    assert_eq!(whole.body, server.address.to_string().as_bytes());
}
