//! Tests of response bodies: decoding, decompression bombs, and endless bodies.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::super::tls::Tls;
use super::super::{NetErrorKind, NetLimits, Request};
use super::guest::{Guest, Whole, allowing, get};
use super::server::{Server, Then};

fn encoded(coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\
         X-Kept: 1\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn fetch(response: Vec<u8>, decode: bool) -> Result<Whole, super::super::NetError> {
    let server = Server::fixed(response);
    Guest::of(&server, &[]).fetch(Request { decode, ..get(&server.url("/")) })
}

fn header<'a>(whole: &'a Whole, name: &str) -> Option<&'a [u8]> {
    whole.head.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_slice())
}

#[test]
fn known_codings_are_decoded_and_their_headers_left_out() {
    let text: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
    let two_members = [gzip(&text[..1000]), gzip(&text[1000..])].concat();
    let cases = [
        ("gzip", gzip(&text)),
        ("X-GZIP", gzip(&text)),
        ("gzip", two_members),
        ("deflate", zlib(&text)),
        ("deflate", deflate(&text)),
        ("Deflate", zlib(&text)),
    ];
    for (coding, body) in cases {
        let whole = fetch(encoded(coding, &body), true).expect(coding);
        assert!(whole.body == text, "{coding}");
        assert_eq!(header(&whole, "content-encoding"), None, "{coding}");
        assert_eq!(header(&whole, "content-length"), None, "{coding}");
        assert_eq!(header(&whole, "x-kept"), Some(&b"1"[..]), "{coding}");
        let raw = fetch(encoded(coding, &body), false).expect(coding);
        assert!(raw.body == body, "{coding}");
        assert_eq!(header(&raw, "content-encoding"), Some(coding.as_bytes()));
        assert_eq!(header(&raw, "content-length"), Some(body.len().to_string().as_bytes()));
    }
}

#[test]
fn unknown_codings_come_as_they_are() {
    for coding in ["br", "zstd", "identity", "gzip, gzip", "gzip, br", ""] {
        let whole = fetch(encoded(coding, b"as it is"), true).expect(coding);
        assert_eq!(whole.body, b"as it is", "{coding}");
        assert_eq!(header(&whole, "content-encoding"), Some(coding.as_bytes()));
    }
}

#[test]
fn a_coding_without_a_body_is_no_error() {
    let whole = fetch(encoded("gzip", b""), true).unwrap();
    assert_eq!(whole.body, b"");
    let server =
        Server::fixed("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n");
    let head = Request { decode: true, method: "HEAD".to_owned(), ..get(&server.url("/")) };
    let whole = Guest::of(&server, &[]).fetch(head).unwrap();
    assert_eq!(header(&whole, "content-encoding"), Some(&b"gzip"[..]));
    let chunked =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(fetch(chunked.to_vec(), true).unwrap().body, b"");
}

#[test]
fn broken_compression_is_an_error_and_no_panic() {
    let text = vec![b'a'; 100_000];
    for (coding, body) in
        [("gzip", gzip(&text)), ("deflate", zlib(&text)), ("deflate", deflate(&text))]
    {
        for cut in [1, 2, 9, body.len() / 2, body.len() - 1] {
            let error = fetch(encoded(coding, &body[..cut]), true).unwrap_err();
            assert_eq!(error.kind, NetErrorKind::Connection, "{coding} {cut}: {error}");
        }
        let mut flipped = body.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0xff;
        // Raw DEFLATE has no checksum; the others detect the change.
        let result = fetch(encoded(coding, &flipped), true);
        assert!(result.is_err() || result.is_ok_and(|whole| whole.body != text), "{coding}");
        fetch(encoded(coding, b"this is no compressed data at all"), true).unwrap_err();
    }
}

#[test]
fn a_bomb_is_stopped_at_the_budget() {
    let zeros = vec![0; 16 << 20];
    for (coding, body) in [("gzip", gzip(&zeros)), ("deflate", zlib(&zeros))] {
        assert!(body.len() < 64 << 10);
        let server = Server::fixed(encoded(coding, &body));
        let limits = NetLimits { response_bytes: 4 << 20, ..NetLimits::default() };
        let guest = Guest::with(allowing(&[&server], &[]), limits, Tls::trusting(&[]));
        let request = Request { decode: true, ..get(&server.url("/")) };
        let (exchange, _) = guest.start(request).unwrap();
        let mut got = 0;
        let error = loop {
            match guest.read(exchange, usize::MAX) {
                Ok(bytes) => {
                    assert!(!bytes.is_empty() && bytes.len() <= NetLimits::READ_BYTES);
                    got += bytes.len();
                }
                Err(error) => break error,
            }
        };
        assert!(got <= 4 << 20);
        assert!(
            error.message.starts_with("bytes of the responses of a run: limit 4194304, needed "),
            "{error}"
        );
        assert_eq!(error.python_type(), "RuntimeError");
        assert_eq!(guest.read(exchange, 1).unwrap_err(), error);
    }
}

#[test]
fn a_body_without_an_end_is_stopped_at_the_budget() {
    let server = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk =
            [format!("{:x}\r\n", 1 << 16).into_bytes(), vec![b'a'; 1 << 16], b"\r\n".to_vec()]
                .concat();
        while stream.write_all(&chunk).is_ok() {}
        Then::Close
    });
    let limits = NetLimits { response_bytes: 1 << 20, ..NetLimits::default() };
    let guest = Guest::with(allowing(&[&server], &[]), limits, Tls::trusting(&[]));
    let error = guest.get(&server.url("/")).unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Limit);
}

#[test]
fn an_empty_stream_that_goes_on_and_on_is_charged_as_it_comes() {
    let member = gzip(b"");
    let server = Server::new(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
        while stream.write_all(&member.repeat(100)).is_ok() {}
        Then::Close
    });
    let limits = NetLimits { response_bytes: 1 << 20, ..NetLimits::default() };
    let guest = Guest::with(allowing(&[&server], &[]), limits, Tls::trusting(&[]));
    let error = guest.fetch(Request { decode: true, ..get(&server.url("/")) }).unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Limit);
}

#[test]
fn a_drip_ends_with_the_time_of_the_request() {
    let head = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"a").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Then::Close
    });
    let body = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while stream.write_all(b"a").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Then::Close
    });
    let silent = Server::new(|_, stream| {
        super::server::wait_for_close(stream);
        Then::Close
    });
    let guest = Guest::new(allowing(&[&head, &body, &silent], &[]));
    let request = |server: &Server| Request {
        timeout: Some(Duration::from_millis(200)),
        ..get(&server.url("/"))
    };
    for server in [&head, &body, &silent] {
        let error = guest.fetch(request(server)).unwrap_err();
        assert_eq!(error.python_type(), "TimeoutError");
        assert_eq!(error.message, "the request took longer than 0.2 s");
    }
    // The guest's own timeout cannot extend the limit.
    let limits = NetLimits { request_time: Duration::from_millis(100), ..NetLimits::default() };
    let guest = Guest::with(allowing(&[&silent], &[]), limits, Tls::trusting(&[]));
    let patient = Request { timeout: Some(Duration::MAX), ..get(&silent.url("/")) };
    let error = guest.fetch(patient).unwrap_err();
    assert_eq!(error.message, "the request took longer than 0.1 s");
}
