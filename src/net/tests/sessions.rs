//! Tests that sessions and targets share nothing, and that connections go nowhere else.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use super::super::connection::check_peer;
use super::guest::{Guest, allowing, get, with_headers};
use super::server::{Server, ok, redirect};

#[test]
fn a_connection_is_kept_for_its_own_session_and_target() {
    let server =
        Server::fixed("HTTP/1.1 200 OK\r\nSet-Cookie: canary=1\r\nContent-Length: 4\r\n\r\nbody");
    let guest = Guest::of(&server, &["a.test", "b.test"]);
    for _ in 0..3 {
        guest.get(&server.named("a.test", "/")).unwrap();
    }
    assert_eq!(server.connections(), 1);
    // The same address and port under another name, and the address itself.
    guest.get(&server.named("b.test", "/")).unwrap();
    assert_eq!(server.connections(), 2);
    guest.get(&server.url("/")).unwrap();
    assert_eq!(server.connections(), 3);
    // The same name in another session.
    let other = Guest::of(&server, &["a.test"]);
    other.get(&server.named("a.test", "/")).unwrap();
    assert_eq!(server.connections(), 4);
    guest.get(&server.named("a.test", "/")).unwrap();
    assert_eq!(server.connections(), 4);
    // No cookie was sent back, and no answer came from a cache.
    assert_eq!(server.requests().len(), 7);
    assert!(server.requests().iter().all(|seen| seen.header("cookie").is_none()));
}

#[test]
fn the_same_name_with_other_addresses_gets_another_connection() {
    let server = Server::fixed(ok(""));
    let policy = |addresses: &[&str]| {
        let mut policy = allowing(&[&server], &["a.test"]);
        policy.allow("127.0.0.0/8").unwrap();
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        policy.resolve_to("a.test", addresses).unwrap();
        policy
    };
    let key = |addresses: &[&str]| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = server.named("a.test", "/");
        let time = super::super::NetLimits::DEFAULT_RESOLVE_TIME;
        let policy = policy(addresses);
        let decision = runtime.block_on(async {
            super::super::target::decide(&policy, &super::guest::NoNames, time, &url).await
        });
        super::super::pool::Key::of(&decision.unwrap())
    };
    assert_eq!(key(&["127.0.0.1", "127.0.0.2"]), key(&["127.0.0.2", "127.0.0.1", "127.0.0.2"]));
    assert_ne!(key(&["127.0.0.1"]), key(&["127.0.0.1", "127.0.0.2"]));
    assert_ne!(key(&["127.0.0.1"]), key(&["127.0.0.2"]));
}

#[test]
fn a_connection_is_kept_after_every_kind_of_end() {
    for response in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        let server = Server::fixed(response);
        let guest = Guest::of(&server, &[]);
        for _ in 0..3 {
            guest.get(&server.url("/")).unwrap();
        }
        assert_eq!(server.connections(), 1, "{response}");
    }
}

#[test]
fn a_connection_with_an_unread_body_is_not_kept() {
    let server = Server::fixed(ok("body"));
    let guest = Guest::of(&server, &[]);
    let (exchange, _) = guest.start(get(&server.url("/"))).unwrap();
    guest.network.close(exchange);
    guest.get(&server.url("/")).unwrap();
    assert_eq!(server.connections(), 2);
}

#[test]
fn an_idle_connection_that_the_server_has_closed_is_replaced() {
    let server = Server::new(|_, stream| {
        use std::io::Write;
        stream.write_all(ok("once").as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Both);
        super::server::Then::Close
    });
    let guest = Guest::of(&server, &[]);
    // If the close is noticed late, the request fails. It never hangs and is never sent twice.
    let answers = (0..10).filter(|_| guest.get(&server.url("/")).is_ok()).count();
    assert!(answers >= 1);
    assert!(server.requests().len() <= 10);
}

#[test]
fn a_peer_that_was_not_vetted_is_refused() {
    let (vetted, other) = (Server::canary(), Server::canary());
    let stream = TcpStream::connect(other.address).unwrap();
    let peer = stream.peer_addr().unwrap();
    assert!(check_peer(peer, &[other.address], "a.test:80").is_ok());
    let error = check_peer(peer, &[vetted.address], "a.test:80").unwrap_err();
    assert_eq!(error.message, "the connection to a.test:80 went to another address");
    assert!(check_peer(peer, &[], "a.test:80").is_err());
    let mapped = SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), peer.port());
    assert!(check_peer(mapped, &[other.address], "a.test:80").is_ok());
    assert_eq!(other.requests().len() + vetted.requests().len(), 0);
}

/// Runs the tests of redirects in a process whose environment names a proxy, which must receive
/// nothing.
#[test]
fn proxies_of_the_environment_are_not_used() {
    let proxy = Server::canary();
    let address = format!("http://{}", proxy.address);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["net::tests::redirects::credentials_are_kept_within_an_origin", "--exact"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        child.env(name, &address).env(name.to_lowercase(), &address);
    }
    let output = child.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn every_decision_is_told_before_its_connection() {
    let last = Server::fixed(ok(""));
    let first = Server::fixed(redirect(302, &last.named("b.test", "/")));
    let guest = Guest::new(allowing(&[&first, &last], &["a.test", "b.test"]));
    guest.fetch(with_headers(get(&first.named("a.test", "/")), &[("x", "y")])).unwrap();
    guest.get("http://evil.test:8080/").unwrap_err();
    let told: Vec<_> = guest
        .events()
        .into_iter()
        .map(|e| (e.allowed, e.host, e.port, e.hop, e.addresses.len(), e.reason))
        .collect();
    let allowed = |name: &str, server: &Server, hop| {
        (true, name.to_owned(), server.port(), hop, 1, String::new())
    };
    let denied = (false, "evil.test".to_owned(), 8080, 0, 0, "no rule allows it".to_owned());
    assert_eq!(told, [allowed("a.test", &first, 0), allowed("b.test", &last, 1), denied]);
}
