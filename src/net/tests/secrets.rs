//! Tests of secrets: which server gets them, and that none comes back to the guest.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::NetErrorKind;
use super::super::request::{Body, Redirect, Request};
use super::super::rules::{NetPolicy, Secret};
use super::guest::{Guest, Whole, allowing, get, post, with_headers};
use super::server::{Seen, Server, Then, ok, redirect};

const SECRET: &str = "sk-canary/+\"&7";
const PLACEHOLDER: &str = "ISOLET_SECRET_KEY_877690f7";

fn policy(servers: &[&Server], secret: Secret) -> NetPolicy {
    let mut policy = allowing(servers, &["a.test", "b.test", "x.a.test"]);
    policy.add_secret("KEY", secret).unwrap();
    policy
}

fn secret_of(server: &Server) -> Secret {
    Secret::new(SECRET).host(format!("http://{}", server.address))
}

fn placeholder() -> String {
    let mut policy = NetPolicy::default();
    policy.add_secret("KEY", Secret::new(SECRET).host("a.test")).unwrap();
    let found: Vec<_> = policy.secrets().variables().collect();
    let [("KEY", placeholder)] = found[..] else { panic!("{found:?}") };
    placeholder.to_owned()
}

/// Repeats a request: its path in a header, its headers and its body in the body.
fn echo(seen: &Seen) -> String {
    let headers: Vec<_> = seen.headers.iter().map(|(n, v)| format!("{n}: {v}\n")).collect();
    let body = [headers.concat().as_bytes(), &seen.body].concat();
    let body = String::from_utf8(body).unwrap();
    let length = body.len();
    format!(
        "HTTP/1.1 200 {}\r\nX-Path: {}\r\nContent-Length: {length}\r\n\r\n{body}",
        seen.path, seen.path
    )
}

fn echo_server() -> Server {
    Server::new(|seen, stream| {
        stream.write_all(echo(seen).as_bytes()).unwrap();
        Then::KeepAlive
    })
}

fn assert_no_secret(whole: &Whole) {
    let shown = format!("{:?} {}", whole.head, String::from_utf8_lossy(&whole.body));
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn a_secret_is_put_in_headers_basic_credentials_and_urls_for_its_host() {
    let server = echo_server();
    let guest = Guest::new(policy(&[&server], secret_of(&server)));
    let key = placeholder();
    assert_eq!(key, PLACEHOLDER);
    let basic = |text: &str| {
        use base64::Engine;
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
    };
    let headers = [
        ("Authorization", &*basic(&format!("user:{key}"))),
        ("X-Api-Key", &*key),
        ("Cookie", &*format!("a=b; k={key}; l={key}")),
        ("X-Part", &key[..key.len() - 1]),
    ];
    let request = get(&server.url(&format!("/bot{key}/x?key={key}&q=1")));
    let whole = guest.fetch(with_headers(request, &headers)).unwrap();
    let seen = &server.requests()[0];
    let written = "sk-canary%2F%2B%22%267";
    assert_eq!(seen.path, format!("/bot{written}/x?key={written}&q=1"));
    assert_eq!(seen.header("authorization"), Some(&*basic(&format!("user:{SECRET}"))));
    assert_eq!(seen.header("x-api-key"), Some(SECRET));
    assert_eq!(seen.header("cookie"), Some(&*format!("a=b; k={SECRET}; l={SECRET}")));
    assert_eq!(seen.header("x-part"), Some(&key[..key.len() - 1]));
    assert_no_secret(&whole);
    let path = ("x-path".to_owned(), format!("/bot{key}/x?key={key}&q=1").into_bytes());
    assert!(whole.head.headers.contains(&path), "{:?}", whole.head);
    assert!(whole.head.url.ends_with(&format!("/bot{key}/x?key={key}&q=1")));
    assert!(String::from_utf8_lossy(&whole.body).contains(&format!("x-api-key: {key}\n")));
    assert!(!format!("{:?}", guest.events()).contains("canary"));
}

#[test]
fn another_host_scheme_or_port_gets_the_placeholder() {
    let (named, other) = (echo_server(), echo_server());
    let port = named.port();
    for host in [
        format!("https://{}", named.address),
        format!("http://a.test:{port}"),
        format!("http://*.a.test:{port}"),
        format!("http://{}", other.address),
        "http://127.0.0.1".to_owned(),
        "http://10.0.0.0/8:*".to_owned(),
    ] {
        let secret = Secret::new(SECRET).host(&host);
        let guest = Guest::new(policy(&[&named, &other], secret));
        let request = with_headers(get(&named.url("/")), &[("x-api-key", PLACEHOLDER)]);
        guest.fetch(request).unwrap();
        let seen = named.requests().pop().unwrap();
        assert_eq!(seen.header("x-api-key"), Some(PLACEHOLDER), "{host}");
    }
    let secret = Secret::new(SECRET).host(format!("http://*.a.test:{port}"));
    let guest = Guest::new(policy(&[&named], secret));
    for (name, expected) in [("a.test", PLACEHOLDER), ("x.a.test", SECRET), ("b.test", PLACEHOLDER)]
    {
        let request = get(&named.named(name, "/"));
        guest.fetch(with_headers(request, &[("x-api-key", PLACEHOLDER)])).unwrap();
        let seen = named.requests().pop().unwrap();
        assert_eq!(seen.header("x-api-key"), Some(expected), "{name}");
    }
}

#[test]
fn a_redirect_to_another_host_loses_the_secret() {
    let other = echo_server();
    let to = other.url("/");
    let named = Server::new(move |seen, stream| {
        // It repeats the secret of the query in the location, as logins do.
        let query = seen.path.split_once('?').map_or("", |(_, query)| query);
        stream.write_all(redirect(307, &format!("{to}?{query}")).as_bytes()).unwrap();
        Then::KeepAlive
    });
    let guest = Guest::new(policy(&[&named, &other], secret_of(&named).in_bodies()));
    let body = Body::Bytes(PLACEHOLDER.as_bytes().to_vec());
    let request = post(&named.url(&format!("/?k={PLACEHOLDER}")), body);
    for redirect in [Redirect::Follow, Redirect::Manual] {
        let request = Request {
            redirect,
            url: request.url.clone(),
            method: "POST".to_owned(),
            body: Body::Bytes(PLACEHOLDER.as_bytes().to_vec()),
            ..get("")
        };
        let whole = guest.fetch(with_headers(request, &[("x-api-key", PLACEHOLDER)])).unwrap();
        assert_no_secret(&whole);
        if redirect == Redirect::Manual {
            let location =
                ("location".to_owned(), other.url(&format!("/?k={PLACEHOLDER}")).into_bytes());
            assert!(whole.head.headers.contains(&location), "{:?}", whole.head);
        }
    }
    let seen = named.requests();
    assert_eq!((seen[0].header("x-api-key"), &*seen[0].body), (Some(SECRET), SECRET.as_bytes()));
    let seen = other.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header("x-api-key"), Some(PLACEHOLDER));
    assert_eq!(seen[0].path, format!("/?k={PLACEHOLDER}"));
    assert_eq!(seen[0].body, PLACEHOLDER.as_bytes());
}

#[test]
fn bodies_get_a_secret_only_where_it_is_for_bodies() {
    let server = echo_server();
    let without = Guest::new(policy(&[&server], secret_of(&server)));
    let with = Guest::new(policy(&[&server], secret_of(&server).in_bodies()));
    let body = format!("{{\"k\": \"{PLACEHOLDER}\"}}");
    let send = |guest: &Guest, kind: &str, body: &str| {
        let request = post(&server.url("/"), Body::Bytes(body.as_bytes().to_vec()));
        let whole = guest.fetch(with_headers(request, &[("Content-Type", kind)])).unwrap();
        assert_no_secret(&whole);
        String::from_utf8(server.requests().pop().unwrap().body).unwrap()
    };
    assert_eq!(send(&without, "application/json", &body), body);
    assert_eq!(
        send(&with, "application/json; charset=utf-8", &body),
        "{\"k\": \"sk-canary/+\\\"&7\"}"
    );
    let form = format!("a=1&client_secret={PLACEHOLDER}");
    assert_eq!(
        send(&with, "application/x-www-form-urlencoded", &form),
        "a=1&client_secret=sk-canary%2F%2B%22%267"
    );
    assert_eq!(send(&with, "text/plain", PLACEHOLDER), SECRET);
    assert_eq!(send(&with, "text/plain", "nothing"), "nothing");
}

#[test]
fn a_body_in_pieces_gets_a_secret_that_is_split_between_them() {
    let server = echo_server();
    let guest = Guest::new(policy(&[&server], secret_of(&server).in_bodies()));
    let (first, second) = PLACEHOLDER.split_at(9);
    for declared in [false, true] {
        let mut request = post(&server.url("/"), Body::Streamed);
        if declared {
            let length = PLACEHOLDER.len().to_string();
            request = with_headers(request, &[("Content-Length", &length)]);
        }
        let (number, head) = guest.begin(request);
        for piece in [first, second, ""] {
            guest.send(number, piece.as_bytes()).unwrap();
        }
        super::guest::wait(&head).unwrap();
        assert_eq!(server.requests().pop().unwrap().body, SECRET.as_bytes(), "{declared}");
        guest.network.close(number);
    }
}

#[test]
fn a_body_above_the_limit_is_sent_as_it_is() {
    let server = Server::fixed(ok(""));
    let guest = Guest::new(policy(&[&server], secret_of(&server).in_bodies()));
    let body = [PLACEHOLDER.as_bytes(), &vec![b'x'; 1 << 20]].concat();
    guest.fetch(post(&server.url("/"), Body::Bytes(body.clone()))).unwrap();
    assert!(server.requests().pop().unwrap().body == body);
    let length = body.len().to_string();
    for headers in [vec![], vec![("Content-Length", &*length)]] {
        let request = with_headers(post(&server.url("/"), Body::Streamed), &headers);
        let (number, head) = guest.begin(request);
        for piece in body.chunks(300_000).chain([&[][..]]) {
            guest.send(number, piece).unwrap();
        }
        super::guest::wait(&head).unwrap();
        assert!(server.requests().pop().unwrap().body == body);
        guest.network.close(number);
    }
}

#[test]
fn a_request_that_secrets_would_make_too_long_is_refused() {
    let server = Server::canary();
    let long = "s".repeat(4096);
    let secret = Secret::new(long).host(format!("http://{}", server.address)).in_bodies();
    let guest = Guest::new(policy(&[&server], secret));
    let many = PLACEHOLDER.repeat(600);
    let url = PLACEHOLDER.repeat(10);
    for (request, message) in [
        (
            with_headers(get(&server.url("/")), &[("x", &many)]),
            "bytes of a request's headers with its secrets: limit 65536, needed 2457600",
        ),
        (
            get(&server.url(&format!("/{url}"))),
            "bytes of a URL with its secrets: limit 32768, needed 40961",
        ),
        (
            post(&server.url("/"), Body::Bytes(many.clone().into_bytes())),
            "bytes of a body with its secrets: limit 2097152, needed 2457600",
        ),
    ] {
        let error = guest.fetch(request).unwrap_err();
        assert_eq!((error.kind, &*error.message), (NetErrorKind::Limit, message));
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn what_a_host_repeats_in_a_compressed_body_is_found() {
    let gzipped = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let body = gzipped(&format!("key {SECRET}, escaped sk-canary\\/+\\\"\\u00267"));
    let server = Server::new(move |seen, stream| {
        assert_eq!(seen.header("range"), None);
        assert_eq!(seen.header("accept-encoding"), Some("gzip, deflate"));
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(&body).unwrap();
        Then::KeepAlive
    });
    let guest = Guest::new(policy(&[&server], secret_of(&server)));
    let headers = [("Accept-Encoding", "br, gzip, zstd"), ("Range", "bytes=3-9")];
    for decode in [false, true] {
        let request = Request { decode, ..get(&server.url("/")) };
        let whole = guest.fetch(with_headers(request, &headers)).unwrap();
        let expected = format!("key {PLACEHOLDER}, escaped {PLACEHOLDER}");
        assert_eq!(String::from_utf8_lossy(&whole.body), expected);
        let names: Vec<_> = whole.head.headers.iter().map(|(name, _)| &**name).collect();
        assert!(!names.contains(&"content-encoding") && !names.contains(&"content-length"));
    }
}

#[test]
fn a_body_whose_encoding_hides_secrets_is_refused() {
    for (name, value) in [
        ("Content-Encoding", "br"),
        ("Content-Encoding", "gzip, gzip"),
        ("Transfer-Encoding", "gzip, chunked"),
    ] {
        let response = format!("HTTP/1.1 200 OK\r\n{name}: {value}\r\n\r\n5\r\nabcde\r\n0\r\n\r\n");
        let server = Server::new(move |_, stream| {
            stream.write_all(response.as_bytes()).unwrap();
            Then::Close
        });
        let guest = Guest::new(policy(&[&server], secret_of(&server)));
        let error = guest.get(&server.url("/")).unwrap_err().message;
        let shown = format!("`{}: {value}`", name.to_lowercase());
        assert!(error.contains(&shown) && error.contains("gzip and deflate"), "{error}");
    }
}

#[test]
fn a_host_cannot_hide_a_secret_in_the_head_of_its_response() {
    let response = "HTTP/1.1 200 sk-simple-canary\r\nX-sk-SIMPLE-canary: 1\r\n\
                    X-Value: c2stc2ltcGxlLWNhbmFyeQ==\r\nContent-Length: 0\r\n\r\n";
    let server = Server::fixed(response);
    let secret = Secret::new("sk-simple-canary").host(format!("http://{}", server.address));
    let guest = Guest::new(policy(&[&server], secret));
    let head = guest.get(&server.url("/")).unwrap().head;
    assert_eq!(head.reason, PLACEHOLDER);
    let mut headers: Vec<_> = head.headers.iter().map(|(name, _)| &**name).collect();
    headers.sort_unstable();
    assert_eq!(headers, ["content-length", "x-value"]);
    let value = head.headers.iter().find(|(name, _)| name == "x-value");
    let value = String::from_utf8_lossy(&value.unwrap().1);
    assert!(value.starts_with(PLACEHOLDER) && !value.contains("Y2FuYXJ"), "{value}");
}

#[test]
fn secrets_that_cannot_be_kept_are_refused_without_being_shown() {
    let secret = || Secret::new("sk-canary").host("a.test");
    let refusal = |name: &str, secret: Secret| {
        let error = NetPolicy::default().add_secret(name, secret).unwrap_err();
        assert!(!error.contains("canary"), "{error}");
        error
    };
    let cases = [
        (refusal("", secret()), "the secret `` has no name of a variable"),
        (refusal("A-B", secret()), "1 to 64 letters, digits and `_`"),
        (refusal("K", Secret::new("canary").host("a.test")), "has 6 bytes, it needs 8 to 4096"),
        (refusal("K", Secret::new("canary\ncanary").host("a.test")), "has control characters"),
        (refusal("K", Secret::new("sk-canary")), "is for 0 hosts, name 1 to 32"),
        (refusal("K", secret().host("*.com")), "covers a whole public suffix"),
        (refusal("K", secret().host("ftp://a.test")), "a scheme other than http and https"),
        (refusal("K", secret().host("https://a.test/x")), "has a path"),
    ];
    for (error, expected) in cases {
        assert!(error.contains(expected), "{error}");
    }
    let mut policy = NetPolicy::default();
    policy.add_secret("K", secret()).unwrap();
    assert!(policy.add_secret("K", secret()).unwrap_err().contains("is there twice"));
    let long = |number| Secret::new(format!("{number}{}", "x".repeat(4095))).host("a.test");
    for number in 0..3 {
        policy.add_secret(&format!("K{number}"), long(number)).unwrap();
    }
    let error = policy.add_secret("K3", long(3)).unwrap_err();
    assert!(error.contains("16393 bytes in all, the limit is 16384"), "{error}");
    assert!(!format!("{policy:?} {:?}", secret()).contains("canary"));
}
