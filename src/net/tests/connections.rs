//! Tests of connections that are made before their request.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use super::super::resolve::{Lookup, Resolve};
use super::super::tls::Tls;
use super::super::{NetErrorKind, NetEvent, NetLimits, Network};
use super::guest::{Guest, HANG, allowing, answer, get, wait};
use super::server::{Server, ok, read_head};

fn connect(guest: &Guest, host: &str, port: u16) -> Result<(), super::super::NetError> {
    let (answer, receiver) = answer();
    guest.network.connect(1000, host, port.into(), answer);
    wait(&receiver)
}

#[test]
fn the_next_request_uses_the_connection() {
    let server = Server::fixed(ok("body"));
    let guest = Guest::of(&server, &["a.test"]);
    for host in ["127.0.0.1", "a.test"] {
        let before = server.connections();
        connect(&guest, host, server.port()).unwrap();
        guest.get(&server.named(host, "/")).unwrap();
        // The connection is idle now, and serves the next pair too.
        connect(&guest, host, server.port()).unwrap();
        guest.get(&server.named(host, "/")).unwrap();
        assert_eq!(server.connections(), before + 1, "{host}");
    }
    let methods: Vec<_> = guest.events().into_iter().map(|event| event.method).collect();
    assert_eq!(methods, ["CONNECT", "GET", "CONNECT", "GET"].repeat(2));
}

#[test]
fn a_server_that_is_not_there_refuses_and_one_that_is_not_allowed_sees_nothing() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (server, canary) = (Server::fixed(ok("")), Server::canary());
    let mut policy = allowing(&[&server], &[]);
    policy.allow(&format!("127.0.0.1:{gone}")).unwrap();
    policy.allow("inner.test").unwrap();
    policy.resolve_to("inner.test", vec!["127.0.0.1".parse().unwrap()]).unwrap();
    let guest = Guest::new(policy);
    assert_eq!(connect(&guest, "127.0.0.1", gone).unwrap_err().kind, NetErrorKind::Refused);
    assert_eq!(connect(&guest, "nobody.test", 80).unwrap_err().kind, NetErrorKind::Denied);
    // What the guest says is a host may be more than one, and a name may lead inside.
    let trick = format!("127.0.0.1:{}/", server.port());
    for (host, port) in
        [("127.0.0.1", canary.port()), ("inner.test", canary.port()), (&*trick, canary.port())]
    {
        let error = connect(&guest, host, port).unwrap_err();
        assert_eq!(error.kind, NetErrorKind::Denied, "{host}: {error}");
    }
    assert_eq!((canary.connections(), server.connections()), (0, 0));
    let denied = guest.events().iter().filter(|event| !event.allowed).count();
    assert_eq!(denied, 4);
}

#[test]
fn a_connection_that_its_server_has_closed_is_made_again() {
    // The first connection is closed at once, all others are answered.
    let (closed, is_closed) = mpsc::channel();
    let server = Server::raw("127.0.0.1:0", move |server, mut stream| {
        if server.connections() == 1 {
            drop(stream);
            closed.send(()).unwrap();
        } else {
            read_head(&mut BufReader::new(stream.try_clone().unwrap()));
            stream.write_all(ok("body").as_bytes()).unwrap();
        }
    });
    let guest = Guest::of(&server, &[]);
    connect(&guest, "127.0.0.1", server.port()).unwrap();
    is_closed.recv_timeout(HANG).unwrap();
    assert_eq!(guest.get(&server.url("/")).unwrap().body, b"body");
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_run_opens_no_more_connections_than_it_may_make_requests() {
    let server = Server::fixed(ok(""));
    let limits = NetLimits { requests: 2, ..NetLimits::default() };
    let guest = Guest::with(allowing(&[&server], &[]), limits, Tls::trusting(&[]));
    for _ in 0..2 {
        connect(&guest, "127.0.0.1", server.port()).unwrap();
    }
    let error = connect(&guest, "127.0.0.1", server.port()).unwrap_err();
    assert_eq!(error.to_string(), "connections of a run: limit 2, needed 3");
    guest.network.begin_run();
    connect(&guest, "127.0.0.1", server.port()).unwrap();
}

/// A resolver that counts.
struct Counting(Arc<AtomicUsize>);

impl Resolve for Counting {
    fn lookup<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) })
    }
}

#[test]
fn a_request_whose_decision_cannot_be_reported_is_not_made() {
    let server = Server::canary();
    let guest = Guest::of(&server, &["a.test"]);
    guest.is_shut.store(true, Ordering::Relaxed);
    let error = guest.get(&server.url("/")).unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Denied);
    assert!(error.message.contains("the host cannot log it"), "{error}");
    let events = guest.events();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].allowed, &*events[0].reason), (false, "the log is full"));
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_name_is_looked_up_once_for_a_connection_and_its_request() {
    let server = Server::fixed(ok(""));
    let mut policy = allowing(&[&server], &[]);
    policy.allow(&format!("a.test:{}", server.port())).unwrap();
    policy.allow("127.0.0.0/8").unwrap();
    let lookups = Arc::new(AtomicUsize::new(0));
    let events: Arc<Mutex<Vec<NetEvent>>> = Arc::default();
    let sink = Arc::clone(&events);
    let network = Network::with_parts(
        Arc::new(policy),
        NetLimits::default(),
        (Arc::new(move |event| sink.lock().unwrap().push(event)), Arc::new(|| Ok(()))),
        Arc::new(Counting(Arc::clone(&lookups))),
        Tls::trusting(&[]),
    );
    let (reached, receiver) = answer();
    network.connect(1, "a.test", server.port().into(), reached);
    wait(&receiver).unwrap();
    let (head, receiver) = answer();
    network.start(2, get(&server.named("a.test", "/")), head);
    assert_eq!(wait(&receiver).unwrap().status, 200);
    assert_eq!((lookups.load(Ordering::SeqCst), server.connections()), (1, 1));
    assert!(events.lock().unwrap().iter().all(|event| event.allowed));
}
