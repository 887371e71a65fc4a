//! Tests of exchanges from start to end: every answer is given exactly once.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::super::request::Body;
use super::super::tls::Tls;
use super::super::{Answer, NetLimits, ResponseHead};
use super::guest::{Guest, answer, get, post, wait};
use super::server::{Server, Then, ok, wait_for_close};

/// Starts a server that sends this response and reports when the peer closes the connection.
fn telling(response: &'static str) -> (Server, std::sync::mpsc::Receiver<()>) {
    let (sender, closed) = channel();
    let sender = Mutex::new(sender);
    let server = Server::new(move |_, stream| {
        stream.write_all(response.as_bytes()).unwrap();
        wait_for_close(stream);
        sender.lock().unwrap().send(()).unwrap();
        Then::Close
    });
    (server, closed)
}

const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf";

#[test]
fn closing_ends_an_exchange_wherever_it_is() {
    let (silent, closed) = telling("");
    let guest = Guest::of(&silent, &[]);
    let (exchange, head) = guest.begin(get(&silent.url("/")));
    guest.network.close(exchange);
    assert_eq!(wait(&head).unwrap_err().message, "the exchange was closed");

    let (server, half_closed) = telling(HALF);
    let guest = Guest::of(&server, &[]);
    let (exchange, _) = guest.start(get(&server.url("/"))).unwrap();
    assert_eq!(guest.read(exchange, 100).unwrap(), b"half");
    let (tell, read) = answer();
    guest.network.read(exchange, 100, tell);
    guest.network.close(exchange);
    assert_eq!(wait(&read).unwrap_err().message, "the exchange was closed");
    half_closed.recv().unwrap();
    guest.network.close(exchange);
    let error = guest.read(exchange, 100).unwrap_err();
    assert_eq!(error.message, format!("exchange {exchange} is not open"));
    drop(closed);
}

#[test]
fn the_end_of_a_run_ends_what_is_waited_for_and_nothing_else() {
    let (silent, _silent_closed) = telling("");
    let (server, closed) = telling(HALF);
    let mut policy = super::guest::allowing(&[&silent, &server], &[]);
    policy.strict_ports();
    let guest = Guest::new(policy);
    let (waiting, head) = guest.begin(get(&silent.url("/")));
    let (read_from, _) = guest.start(get(&server.url("/"))).unwrap();
    assert_eq!(guest.read(read_from, 100).unwrap(), b"half");
    let (tell, read) = answer();
    guest.network.read(read_from, 100, tell);
    let (open, _) = guest.start(get(&server.url("/"))).unwrap();
    let (sending, upload) = guest.begin(post(&silent.url("/"), Body::Streamed));
    guest.network.end_run();
    for answer in [wait(&head), wait(&upload)] {
        assert_eq!(answer.unwrap_err().message, "the exchange was closed");
    }
    wait(&read).unwrap_err();
    closed.recv().unwrap();
    for ended in [waiting, read_from, sending] {
        assert!(guest.read(ended, 1).unwrap_err().message.ends_with("is not open"));
    }
    guest.network.begin_run();
    assert_eq!(guest.read(open, 100).unwrap(), b"half");
    guest.network.close(open);
    closed.recv().unwrap();
}

#[test]
fn what_waits_for_its_turn_is_not_sent_after_the_end_of_a_run() {
    let (silent, _closed) = telling("");
    let canary = Server::canary();
    let policy = super::guest::allowing(&[&silent, &canary], &[]);
    let limits = NetLimits { concurrent: 1, ..NetLimits::default() };
    let guest = Guest::with(policy, limits, Tls::trusting(&[]));
    let first = guest.begin(get(&silent.url("/")));
    let waiting: Vec<_> = (0..50).map(|_| guest.begin(get(&canary.url("/")))).collect();
    guest.network.end_run();
    for (_, head) in std::iter::once(first).chain(waiting) {
        assert_eq!(wait(&head).unwrap_err().message, "the exchange was closed");
    }
    assert_eq!(canary.connections(), 0);
}

#[test]
fn dropping_the_network_ends_everything() {
    let (server, closed) = telling(HALF);
    let kept = Server::fixed(ok("kept"));
    let guest = Guest::new(super::guest::allowing(&[&server, &kept], &[]));
    guest.get(&kept.url("/")).unwrap();
    let (exchange, _) = guest.start(get(&server.url("/"))).unwrap();
    assert_eq!(guest.read(exchange, 100).unwrap(), b"half");
    let (tell, read) = answer();
    guest.network.read(exchange, 100, tell);
    drop(guest);
    assert_eq!(wait(&read).unwrap_err().message, "the exchange was closed");
    closed.recv().unwrap();
}

#[test]
fn calls_that_make_no_sense_are_answered_with_errors() {
    let (server, _closed) = telling(HALF);
    let guest = Guest::of(&server, &[]);
    assert_eq!(guest.read(99, 1).unwrap_err().message, "exchange 99 is not open");
    assert_eq!(guest.send(99, b"x").unwrap_err().message, "exchange 99 is not open");
    guest.network.close(99);
    let (exchange, _) = guest.start(get(&server.url("/"))).unwrap();
    let (tell, head) = answer();
    guest.network.start(exchange, get(&server.url("/")), tell);
    assert_eq!(wait(&head).unwrap_err().message, format!("exchange {exchange} is open already"));
    assert_eq!(guest.read(exchange, 0).unwrap_err().python_type(), "ValueError");
    assert!(guest.send(exchange, b"x").unwrap_err().message.ends_with("takes no more of a body"));
    assert_eq!(guest.read(exchange, 100).unwrap(), b"half");
    let (tell, read) = answer();
    guest.network.read(exchange, 100, tell);
    let error = guest.read(exchange, 100).unwrap_err();
    assert_eq!(error.message, format!("exchange {exchange} has a read under way already"));
    guest.network.close(exchange);
    wait(&read).unwrap_err();
}

#[test]
fn a_failed_start_frees_its_number_before_it_is_answered() {
    let guest = std::sync::Arc::new(Guest::new(crate::net::rules::NetPolicy::default()));
    let (sender, receiver) = channel();
    let (again, last) = (std::sync::Arc::clone(&guest), sender.clone());
    let second: Answer<ResponseHead> = Box::new(move |result| last.send(result).unwrap());
    let first: Answer<ResponseHead> = Box::new(move |result| {
        sender.send(result).unwrap();
        again.network.start(7, get("http://b.test/"), second);
    });
    guest.network.start(7, get("http://a.test/"), first);
    for name in ["a.test", "b.test"] {
        let error = receiver.recv().unwrap().unwrap_err();
        assert_eq!(error.message, super::guest::denied(&format!("{name}:80")));
    }
    // Both senders are dropped, so there cannot be a third answer.
    assert_eq!(
        receiver.recv_timeout(Duration::from_mins(2)).err(),
        Some(RecvTimeoutError::Disconnected)
    );
}
