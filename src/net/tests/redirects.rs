//! Tests of redirects: every hop is decided separately, and their number is limited.

use std::io::Write;

use super::super::request::{Body, Redirect};
use super::super::{NetLimits, Request};
use super::guest::{Guest, allowing, denied, get, post, with_headers};
use super::server::{Server, Then, ok, redirect};

#[test]
fn a_redirect_to_what_is_denied_connects_to_nothing() {
    let canary = Server::canary();
    let port = canary.port();
    let targets = [
        (format!("http://127.0.0.1:{port}/"), format!("127.0.0.1:{port}")),
        (format!("//127.0.0.1:{port}/"), format!("127.0.0.1:{port}")),
        (format!("http://2130706433:{port}/"), format!("127.0.0.1:{port}")),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), format!("127.0.0.1:{port}")),
        (format!("http://[::1]:{port}/"), format!("[::1]:{port}")),
        (format!("http://localhost:{port}/"), format!("localhost:{port}")),
        (format!("http://b.test:{port}/"), format!("b.test:{port}")),
        (format!("http://a.test:{port}/"), format!("a.test:{port}")),
        (format!("http://xa.test:{port}/"), format!("xa.test:{port}")),
        (format!("http://a.test.evil.test:{port}/"), format!("a.test.evil.test:{port}")),
        (format!("\\\\127.0.0.1:{port}/"), format!("127.0.0.1:{port}")),
        ("http://169.254.169.254/latest/".to_owned(), "169.254.169.254:80".to_owned()),
        ("http://[64:ff9b::a9fe:a9fe]/".to_owned(), "[64:ff9b::a9fe:a9fe]:80".to_owned()),
        (format!("ftp://127.0.0.1:{port}/"), format!("127.0.0.1:{port}")),
        ("file:///etc/passwd".to_owned(), "(no host)".to_owned()),
    ];
    for (location, server) in targets {
        let origin = Server::fixed(redirect(302, &location));
        let mut policy = allowing(&[&origin], &["a.test"]);
        // The name is allowed, but its address is not.
        policy.allow("b.test").unwrap();
        policy.resolve_to("b.test", vec!["127.0.0.1".parse().unwrap()]).unwrap();
        let guest = Guest::new(policy);
        let error = guest.get(&origin.url("/")).expect_err(&location);
        assert_eq!((error.python_type(), error.message), ("PermissionError", denied(&server)));
        let events = guest.events();
        assert_eq!(
            events.iter().map(|e| (e.allowed, e.hop)).collect::<Vec<_>>(),
            [(true, 0), (false, 1)]
        );
    }
    assert_eq!(canary.connections(), 0);
}

#[test]
fn the_eleventh_redirect_is_not_followed() {
    let server = Server::new(|seen, stream| {
        let hops: u32 = seen.path.trim_start_matches('/').parse().unwrap();
        stream.write_all(redirect(302, &format!("/{}", hops + 1)).as_bytes()).unwrap();
        Then::KeepAlive
    });
    let guest = Guest::of(&server, &[]);
    let error = guest.get(&server.url("/0")).unwrap_err();
    assert_eq!(error.message, "redirects: limit 10, needed 11");
    assert_eq!(error.python_type(), "RuntimeError");
    assert_eq!(server.requests().len(), 11);

    let last = Server::new(|seen, stream| {
        let hops: u32 = seen.path.trim_start_matches('/').parse().unwrap();
        let next = redirect(301, &format!("/{}", hops + 1));
        let response = if hops < 10 { next } else { ok("there") };
        stream.write_all(response.as_bytes()).unwrap();
        Then::KeepAlive
    });
    let whole = Guest::of(&last, &[]).get(&last.url("/0#part")).unwrap();
    assert_eq!(whole.body, b"there");
    assert!(whole.head.redirected);
    assert_eq!(whole.head.url, last.url("/10#part"));
}

#[test]
fn credentials_stay_with_their_origin_and_injected_ones_follow_theirs() {
    let last = Server::fixed(ok("done"));
    let middle = Server::fixed(redirect(307, &last.named("a.test", "/back")));
    let first = Server::fixed(redirect(307, &middle.named("b.test", "/")));
    let mut policy = allowing(&[&first, &middle, &last], &["a.test", "b.test"]);
    let key = |server: &Server, name: &str| format!("http://{name}:{}", server.port());
    policy.inject_header(&key(&first, "a.test"), "x-key", "canary-first").unwrap();
    policy.inject_header(&key(&last, "a.test"), "authorization", "canary-last").unwrap();
    // Origins that resemble the middle one.
    policy.inject_header(&key(&middle, "a.test"), "x-key", "canary-wrong").unwrap();
    policy.inject_header(&key(&last, "b.test"), "x-key", "canary-wrong").unwrap();
    policy
        .inject_header(&format!("https://b.test:{}", middle.port()), "x-key", "canary-wrong")
        .unwrap();
    let guest = Guest::new(policy);
    let guest_headers = [
        ("Authorization", "guest"),
        ("Cookie", "guest=1"),
        ("X-Key", "guest"),
        ("X-Other", "stays"),
    ];
    guest.fetch(with_headers(get(&first.named("a.test", "/")), &guest_headers)).unwrap();

    let seen = |server: &Server| {
        let seen = server.requests().remove(0);
        ["authorization", "cookie", "x-key", "x-other"].map(|name| {
            let values = seen.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str());
            values.collect::<Vec<_>>().join("|")
        })
    };
    assert_eq!(seen(&first), ["guest", "guest=1", "canary-first", "stays"]);
    assert_eq!(seen(&middle), ["", "", "guest", "stays"]);
    assert_eq!(seen(&last), ["canary-last", "", "guest", "stays"]);
}

#[test]
fn credentials_are_kept_within_an_origin() {
    let server = Server::new(|seen, stream| {
        let response = if seen.path == "/" { redirect(302, "/next") } else { ok("") };
        stream.write_all(response.as_bytes()).unwrap();
        Then::KeepAlive
    });
    let headers = [("Authorization", "guest"), ("Cookie", "guest=1")];
    Guest::of(&server, &[]).fetch(with_headers(get(&server.url("/")), &headers)).unwrap();
    for seen in server.requests() {
        assert_eq!(
            (seen.header("authorization"), seen.header("cookie")),
            (Some("guest"), Some("guest=1"))
        );
    }
}

#[test]
fn methods_and_bodies_are_rewritten_as_fetch_does() {
    let table = [
        ("POST", 301, "GET", false),
        ("POST", 302, "GET", false),
        ("POST", 303, "GET", false),
        ("PUT", 303, "GET", false),
        ("DELETE", 303, "GET", false),
        ("HEAD", 303, "HEAD", false),
        ("HEAD", 302, "HEAD", false),
        ("PUT", 301, "PUT", true),
        ("PUT", 302, "PUT", true),
        ("POST", 307, "POST", true),
        ("POST", 308, "POST", true),
        ("PATCH", 307, "PATCH", true),
    ];
    for (method, status, expected, keeps_body) in table {
        let server = Server::new(move |seen, stream| {
            let response = if seen.path == "/" { redirect(status, "/next") } else { ok("") };
            stream.write_all(response.as_bytes()).unwrap();
            Then::KeepAlive
        });
        let body = if method == "HEAD" { Body::None } else { Body::Bytes(b"body".to_vec()) };
        let request = Request { method: method.to_owned(), ..post(&server.url("/"), body) };
        let headers = [("Content-Type", "text/plain"), ("Content-Language", "en")];
        Guest::of(&server, &[]).fetch(with_headers(request, &headers)).unwrap();
        let next = &server.requests()[1];
        let case = format!("{method} {status}");
        assert_eq!(next.method, expected, "{case}");
        assert_eq!(next.body, if keeps_body { b"body".to_vec() } else { Vec::new() }, "{case}");
        let about_the_body =
            ["content-type", "content-language"].map(|name| next.header(name).is_some());
        assert_eq!(about_the_body, [keeps_body || expected == "HEAD"; 2], "{case}");
    }
}

#[test]
fn a_streamed_body_is_not_sent_twice() {
    for (status, follows) in [(307, false), (308, false), (303, true)] {
        let server = Server::new(move |seen, stream| {
            let response = if seen.path == "/" { redirect(status, "/next") } else { ok("done") };
            stream.write_all(response.as_bytes()).unwrap();
            Then::KeepAlive
        });
        let guest = Guest::of(&server, &[]);
        let (exchange, head) = guest.begin(post(&server.url("/"), Body::Streamed));
        guest.send(exchange, b"once").unwrap();
        guest.send(exchange, b"").unwrap();
        match super::guest::wait(&head) {
            Ok(head) => assert!(follows && head.status == 200),
            Err(error) => {
                assert!(!follows);
                assert!(error.message.contains("streamed body cannot be sent again"), "{error}");
            }
        }
        assert_eq!(server.requests()[0].body, b"once");
        assert_eq!(server.requests().len(), if follows { 2 } else { 1 });
    }
}

#[test]
fn redirects_are_answered_or_refused_if_the_guest_wants_that() {
    let canary = Server::canary();
    let server = Server::fixed(redirect(302, &canary.url("/")));
    let guest = Guest::new(allowing(&[&server, &canary], &[]));
    let asked = |redirect| guest.fetch(Request { redirect, ..get(&server.url("/")) });
    let whole = asked(Redirect::Manual).unwrap();
    assert_eq!((whole.head.status, whole.head.redirected), (302, false));
    assert_eq!(asked(Redirect::Error).unwrap_err().python_type(), "ConnectionError");
    assert_eq!(canary.connections(), 0);
    assert_eq!(asked(Redirect::Follow).unwrap().body, b"canary");

    let nowhere = Server::fixed("HTTP/1.1 302 Found\r\nContent-Length: 4\r\n\r\nbody");
    let guest = Guest::of(&nowhere, &[]);
    for redirect in [Redirect::Follow, Redirect::Error] {
        let whole = guest.fetch(Request { redirect, ..get(&nowhere.url("/")) }).unwrap();
        assert_eq!((whole.head.status, &*whole.body), (302, &b"body"[..]));
    }
    let nonsense = Server::fixed(redirect(302, "http://[::1"));
    let error = Guest::of(&nonsense, &[]).get(&nonsense.url("/")).unwrap_err();
    assert!(error.message.contains("redirects to what is no URL"), "{error}");
    assert_eq!(NetLimits::default().redirects, 10);
}
