//! Tests of the limits: each error has both numbers, and a run starts with fresh budgets.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use super::super::NetLimits;
use super::super::request::Body;
use super::super::tls::Tls;
use super::guest::{Guest, allowing, denied, get, post, wait};
use super::server::{Server, Then, ok, wait_for_close};

fn limited(server: &Server, limits: NetLimits) -> Guest {
    Guest::with(allowing(&[server], &[]), limits, Tls::trusting(&[]))
}

#[test]
fn requests_are_counted_denied_ones_too_and_anew_in_each_run() {
    let server = Server::fixed(ok("fine"));
    let guest = limited(&server, NetLimits { requests: 3, ..NetLimits::default() });
    for _ in 0..2 {
        guest.network.begin_run();
        guest.get(&server.url("/")).unwrap();
        for _ in 0..2 {
            assert_eq!(guest.get("http://evil.test/").unwrap_err().message, denied("evil.test:80"));
        }
        let error = guest.get(&server.url("/")).unwrap_err();
        assert_eq!(error.message, "requests of a run: limit 3, needed 4");
        assert_eq!(error.python_type(), "RuntimeError");
    }
    assert_eq!(server.requests().len(), 2);
    assert_eq!(guest.events().len(), 6);
}

#[test]
fn bytes_are_counted_over_all_the_requests_of_a_run() {
    let server = Server::fixed(ok("1234567890"));
    let guest = limited(&server, NetLimits { response_bytes: 25, ..NetLimits::default() });
    for _ in 0..2 {
        guest.network.begin_run();
        guest.get(&server.url("/")).unwrap();
        guest.get(&server.url("/")).unwrap();
        let error = guest.get(&server.url("/")).unwrap_err();
        assert_eq!(error.message, "bytes of the responses of a run: limit 25, needed 30");
    }
    let guest = limited(&server, NetLimits { request_bytes: 10_000, ..NetLimits::default() });
    let error = guest.fetch(post(&server.url("/"), Body::Bytes(vec![0; 10_000]))).unwrap_err();
    assert!(
        error.message.starts_with("bytes of the requests of a run: limit 10000, needed 10"),
        "{error}"
    );
    let (exchange, _head) = guest.begin(post(&server.url("/"), Body::Streamed));
    guest.send(exchange, &[0; 5000]).unwrap();
    let error = guest.send(exchange, &[0; 5000]).unwrap_err();
    assert!(
        error.message.starts_with("bytes of the requests of a run: limit 10000, needed 10"),
        "{error}"
    );
}

#[test]
fn so_many_exchanges_are_under_way_and_the_others_wait() {
    let (arrived, arrivals) = channel();
    let (release, released) = channel::<()>();
    let (arrived, released) = (Mutex::new(arrived), Mutex::new(released));
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (count, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::new(move |_, stream| {
        let others = count.fetch_add(1, Ordering::SeqCst);
        peak.fetch_max(others + 1, Ordering::SeqCst);
        arrived.lock().unwrap().send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        count.fetch_sub(1, Ordering::SeqCst);
        stream.write_all(ok("").as_bytes()).unwrap();
        Then::KeepAlive
    });
    let limits = NetLimits { concurrent: 2, waiting: 3, ..NetLimits::default() };
    let guest = limited(&server, limits);
    let heads: Vec<_> = (0..5).map(|_| guest.begin(get(&server.url("/")))).collect();
    let error = guest.start(get(&server.url("/"))).unwrap_err();
    assert_eq!(error.message, "waiting exchanges: limit 3, needed 4");
    for _ in 0..2 {
        arrivals.recv().unwrap();
    }
    assert!(arrivals.try_recv().is_err());
    for _ in 0..5 {
        release.send(()).unwrap();
    }
    for (_, head) in &heads {
        assert_eq!(wait(head).unwrap().status, 200);
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn so_many_exchanges_are_open_until_they_are_closed() {
    let server = Server::fixed(ok("body"));
    let guest = limited(&server, NetLimits { open: 2, requests: u64::MAX, ..NetLimits::default() });
    let (first, _) = guest.start(get(&server.url("/"))).unwrap();
    guest.start(get(&server.url("/"))).unwrap();
    let error = guest.start(get(&server.url("/"))).unwrap_err();
    assert_eq!(error.message, "open exchanges: limit 2, needed 3");
    guest.network.close(first);
    // The task frees its place when it ends, which may be a moment later.
    let again = (0..).find_map(|_| guest.start(get(&server.url("/"))).ok());
    assert!(again.is_some());
}

#[test]
fn a_flood_leaves_no_connection_behind_when_it_is_over() {
    let server = Server::new(|_, stream| {
        wait_for_close(stream);
        Then::Close
    });
    let guest = limited(&server, NetLimits::default());
    let heads: Vec<_> = (0..1000).map(|_| guest.begin(get(&server.url("/")))).collect();
    assert_eq!(
        guest.start(get(&server.url("/"))).unwrap_err().message,
        "requests of a run: limit 1000, needed 1001"
    );
    drop(guest);
    for (_, head) in &heads {
        assert_eq!(wait(head).unwrap_err().message, "the exchange was closed");
    }
    assert!(server.connections() <= NetLimits::DEFAULT_CONCURRENT);
}
