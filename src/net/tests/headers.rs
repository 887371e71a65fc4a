//! Tests of request headers: those that the guest may set, must not set, and need not set.

use super::super::Request;
use super::super::request::Body;
use super::guest::{Guest, allowing, get, post, with_headers};
use super::server::{Server, ok};

#[test]
fn headers_that_could_mislead_a_server_are_refused_before_it_is_connected() {
    let server = Server::canary();
    let guest = Guest::of(&server, &["a.test"]);
    let refused = [
        ("Host", "evil.test"),
        ("Host", "a.test"),
        ("host", "a.test:80"),
        ("HOST", ""),
        ("Content-Length", "3"),
        ("Content-Length", "+5"),
        ("Content-Length", "5, 5"),
        ("Content-Length", "0x5"),
        ("Content-Length", ""),
        ("Transfer-Encoding", "chunked"),
        ("Transfer-Encoding", "identity"),
        ("Connection", "upgrade"),
        ("Connection", "x-key"),
        ("Connection", "close, te"),
        ("Upgrade", "websocket"),
        ("Keep-Alive", "timeout=9"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Expect", "100-continue"),
        ("Proxy-Authorization", "x"),
        ("Proxy-Connection", "close"),
        ("Proxy-Anything", "x"),
        ("HTTP2-Settings", "x"),
        ("", "x"),
        ("a b", "x"),
        ("a:", "x"),
        ("a\r\nb", "x"),
        ("x", "a\r\nHost: evil.test"),
        ("x", "a\nb"),
        ("x", "a\0b"),
        ("x\0", "a"),
        ("h\u{f6}st", "a"),
    ];
    for (name, value) in refused {
        let request = post(&server.named("a.test", "/"), Body::Bytes(b"12345".to_vec()));
        let error = guest.fetch(with_headers(request, &[(name, value)])).expect_err(name);
        assert_eq!(error.python_type(), "ValueError", "{name}: {value}: {error}");
    }
    let twice = [("Content-Length", "5"), ("Content-Length", "5")];
    let request = post(&server.named("a.test", "/"), Body::Bytes(b"12345".to_vec()));
    guest.fetch(with_headers(request, &twice)).unwrap_err();
    let both = [("Content-Length", "5"), ("Transfer-Encoding", "chunked")];
    guest
        .start(with_headers(post(&server.named("a.test", "/"), Body::Streamed), &both))
        .unwrap_err();
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_refusal_shows_only_the_beginning_of_a_long_header() {
    let server = Server::canary();
    let guest = Guest::of(&server, &["a.test"]);
    let (name, value) = ("\u{1}".repeat(10_000), "x".repeat(10_000));
    for (name, value) in [(&*name, "x"), ("Connection", &*value)] {
        let request = post(&server.named("a.test", "/"), Body::Bytes(b"12345".to_vec()));
        let error = guest.fetch(with_headers(request, &[(name, value)])).unwrap_err().to_string();
        assert!(error.contains("...") && error.len() < 1000, "{} bytes: {error}", error.len());
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn headers_that_say_what_is_so_anyway_are_ignored() {
    let server = Server::fixed(ok(""));
    let guest = Guest::of(&server, &["a.test"]);
    let host = format!("A.TEST:{}", server.port());
    let headers = [("Host", &*host), ("Content-Length", "5"), ("Connection", "close")];
    let request = post(&server.named("a.test.", "/"), Body::Bytes(b"12345".to_vec()));
    guest.fetch(with_headers(request, &headers)).unwrap();
    guest.fetch(with_headers(get(&server.url("/")), &[("Content-Length", "0")])).unwrap();
    let seen = &server.requests()[0];
    assert_eq!(seen.header("host"), Some(&*format!("a.test:{}", server.port())));
    assert_eq!(seen.header("content-length"), Some("5"));
    assert_eq!(seen.header("connection"), None);
    assert_eq!(seen.body, b"12345");
    assert_eq!(server.requests()[1].header("content-length"), None);
}

#[test]
fn nothing_is_sent_that_the_guest_did_not_ask_for() {
    let server = Server::fixed(ok(""));
    let guest = Guest::of(&server, &[]);
    guest.get(&server.url("/a%20b?q=%2e&r=`|")).unwrap();
    let seen = &server.requests()[0];
    assert_eq!((&*seen.method, &*seen.path), ("GET", "/a%20b?q=%2e&r=`|"));
    assert_eq!(seen.headers, [("host".to_owned(), server.address.to_string())]);
    guest.fetch(post(&server.url("/"), Body::None)).unwrap();
    assert_eq!(server.requests()[1].header("content-length"), Some("0"));
}

#[test]
fn the_guests_own_headers_arrive_as_they_are() {
    let server = Server::fixed(ok(""));
    let headers = [
        ("User-Agent", "mine/1"),
        ("Cookie", "a=b"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
        ("Accept", "*/*"),
        ("Referer", "http://elsewhere.test/"),
        ("Accept-Encoding", "identity"),
    ];
    let request = Request { decode: true, ..get(&server.url("/")) };
    Guest::of(&server, &[]).fetch(with_headers(request, &headers)).unwrap();
    let seen = &server.requests()[0];
    for (name, value) in headers {
        let pair = (name.to_lowercase(), value.to_owned());
        assert!(seen.headers.contains(&pair), "{pair:?} in {:?}", seen.headers);
    }
    assert_eq!(seen.headers.len(), headers.len() + 1);
}

#[test]
fn compression_is_asked_for_only_if_it_will_be_decoded() {
    let server = Server::fixed(ok(""));
    let guest = Guest::of(&server, &[]);
    let decoded = || Request { decode: true, ..get(&server.url("/")) };
    guest.fetch(decoded()).unwrap();
    guest.fetch(get(&server.url("/"))).unwrap();
    guest.fetch(with_headers(decoded(), &[("Range", "bytes=0-3")])).unwrap();
    let asked: Vec<_> = server
        .requests()
        .iter()
        .map(|seen| seen.header("accept-encoding").map(str::to_owned))
        .collect();
    assert_eq!(asked, [Some("gzip, deflate".to_owned()), None, None]);
}

#[test]
fn an_injected_header_cannot_be_overridden_or_seen() {
    let server = Server::fixed(ok(""));
    let mut policy = allowing(&[&server], &[]);
    policy.inject_header(&format!("http://{}", server.address), "Authorization", "canary").unwrap();
    let guest = Guest::new(policy);
    let own = [("authorization", "guest"), ("AUTHORIZATION", "guest2")];
    let whole = guest.fetch(with_headers(get(&server.url("/")), &own)).unwrap();
    let seen = &server.requests()[0];
    let sent: Vec<_> = seen.headers.iter().filter(|(name, _)| name == "authorization").collect();
    assert_eq!(sent, [&("authorization".to_owned(), "canary".to_owned())]);
    assert!(!format!("{whole:?} {:?}", guest.events()).contains("canary"));
}

#[test]
fn methods_that_are_not_for_guests_are_refused() {
    let server = Server::canary();
    let guest = Guest::of(&server, &[]);
    let long = "A".repeat(33);
    for method in [
        "",
        "CONNECT",
        "connect",
        "TRACE",
        "TRACK",
        "GET /x HTTP/1.1\r\nHost: evil",
        "G T",
        "\u{e9}",
        &long,
    ] {
        let request = Request { method: method.to_owned(), ..get(&server.url("/")) };
        assert_eq!(guest.fetch(request).expect_err(method).python_type(), "ValueError");
    }
    assert_eq!(server.connections(), 0);
    let request = Request { method: "PROPFIND".to_owned(), ..get(&server.url("/")) };
    guest.fetch(request).unwrap();
    assert_eq!(server.requests()[0].method, "PROPFIND");
}

#[test]
fn heads_of_requests_are_bounded() {
    let server = Server::canary();
    let guest = Guest::of(&server, &[]);
    let many: Vec<_> = (0..257).map(|n| (format!("x-{n}"), b"1".to_vec())).collect();
    let cases = [
        (
            Request { headers: many, ..get(&server.url("/")) },
            "headers of a request: limit 256, needed 257",
        ),
        (
            Request { headers: vec![("x".to_owned(), vec![b'a'; 65536])], ..get(&server.url("/")) },
            "bytes of a request's headers: limit 65536, needed 65537",
        ),
        (
            get(&format!("http://{}/{}", "a".repeat(10), "b".repeat(32768))),
            "bytes of a URL: limit 32768, needed 32786",
        ),
    ];
    for (request, message) in cases {
        assert_eq!(guest.fetch(request).unwrap_err().message, message);
    }
    assert_eq!(server.connections(), 0);
}
