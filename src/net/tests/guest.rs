//! A guest for tests: a network with a policy, used through blocking calls.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::request::{Body, Redirect};
use super::super::resolve::{Lookup, Resolve};
use super::super::tls::Tls;
use super::super::*;
use super::server::Server;

/// Long enough that only a hang reaches it.
pub(super) const HANG: Duration = Duration::from_mins(2);

pub(super) struct Guest {
    pub(super) network: Network,
    events: Arc<Mutex<Vec<NetEvent>>>,
    next: AtomicU32,
    /// Whether nothing can be reported.
    pub(super) is_shut: Arc<AtomicBool>,
}

/// A response whose body was read to its end.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) head: ResponseHead,
    pub(super) body: Vec<u8>,
}

/// A resolver that finds no names.
pub(super) struct NoNames;

impl Resolve for NoNames {
    fn lookup<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl Guest {
    pub(super) fn new(policy: NetPolicy) -> Self {
        Self::with(policy, NetLimits::default(), Tls::trusting(&[]))
    }

    /// Makes a guest that may request `server` by its address and by these names.
    pub(super) fn of(server: &Server, names: &[&str]) -> Self {
        Self::new(allowing(&[server], names))
    }

    pub(super) fn with(policy: NetPolicy, limits: NetLimits, tls: Tls) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let sink = Arc::new(move |event| sink.lock().unwrap().push(event));
        let is_shut = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&is_shut);
        let gate = Arc::new(move || {
            if gate.load(Ordering::Relaxed) { Err("the log is full".to_owned()) } else { Ok(()) }
        });
        let reports: (EventSink, EventGate) = (sink, gate);
        let (policy, names) = (Arc::new(policy), Arc::new(NoNames));
        let network = Network::with_parts(policy, limits, reports, names, tls);
        Self { network, events, next: AtomicU32::new(1), is_shut }
    }

    pub(super) fn events(&self) -> Vec<NetEvent> {
        self.events.lock().unwrap().clone()
    }

    /// Starts an exchange. Returns its number and the receiver of the answer.
    pub(super) fn begin(
        &self,
        request: Request,
    ) -> (u32, Receiver<Result<ResponseHead, NetError>>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = answer();
        self.network.start(number, request, answer);
        (number, receiver)
    }

    /// Starts an exchange and waits for its head.
    pub(super) fn start(&self, request: Request) -> Result<(u32, ResponseHead), NetError> {
        let (number, head) = self.begin(request);
        wait(&head).map(|head| (number, head))
    }

    pub(super) fn send(&self, exchange: u32, chunk: &[u8]) -> Result<(), NetError> {
        let (answer, receiver) = answer();
        self.network.send(exchange, chunk.to_vec(), answer);
        wait(&receiver)
    }

    pub(super) fn read(&self, exchange: u32, max: usize) -> Result<Vec<u8>, NetError> {
        let (answer, receiver) = answer();
        self.network.read(exchange, max, answer);
        wait(&receiver)
    }

    /// Makes a request and reads its body, then closes the exchange.
    pub(super) fn fetch(&self, request: Request) -> Result<Whole, NetError> {
        let (number, head) = self.start(request)?;
        let mut body = Vec::new();
        let read = loop {
            match self.read(number, usize::MAX) {
                Ok(bytes) if bytes.is_empty() => break Ok(()),
                Ok(bytes) => body.extend(bytes),
                Err(error) => break Err(error),
            }
        };
        self.network.close(number);
        read.map(|()| Whole { head, body })
    }

    pub(super) fn get(&self, url: &str) -> Result<Whole, NetError> {
        self.fetch(get(url))
    }
}

/// Makes a policy that allows these servers by address, and these names on their ports, with a
/// loopback address.
pub(super) fn allowing(servers: &[&Server], names: &[&str]) -> NetPolicy {
    let mut policy = NetPolicy::default();
    for server in servers {
        policy.allow(&server.address.to_string()).unwrap();
        for name in names {
            policy.allow(&format!("{name}:{}", server.port())).unwrap();
        }
    }
    for name in names {
        policy.resolve_to(name, vec!["127.0.0.1".parse().unwrap()]).unwrap();
    }
    policy
}

pub(super) fn answer<T: Send + 'static>() -> (Answer<T>, Receiver<Result<T, NetError>>) {
    let (sender, receiver) = channel();
    (Box::new(move |result| sender.send(result).unwrap_or_default()), receiver)
}

/// Waits for an answer, and checks that there is no second one.
pub(super) fn wait<T>(receiver: &Receiver<Result<T, NetError>>) -> Result<T, NetError> {
    receiver.recv_timeout(HANG).expect("an answer")
}

pub(super) fn get(url: &str) -> Request {
    Request {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: Body::None,
        redirect: Redirect::Follow,
        decode: false,
        timeout: None,
    }
}

pub(super) fn post(url: &str, body: Body) -> Request {
    Request { method: "POST".to_owned(), body, ..get(url) }
}

pub(super) fn with_headers(mut request: Request, headers: &[(&str, &str)]) -> Request {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
    request.headers.extend(headers.iter().map(owned));
    request
}

pub(super) fn denied(server: &str) -> String {
    format!("network access to {server} is not allowed; allow-net does not cover it")
}
