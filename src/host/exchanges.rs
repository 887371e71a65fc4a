//! The HTTP exchanges of one session: takes the guest's requests and answers its calls.

use std::sync::{Arc, OnceLock, Weak};

use url::Url;

use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::audit::{Access, AuditLog};
use crate::net::rules::NetPolicy;
use crate::net::{
    Answer, EventGate, EventSink, NetError, NetEvent, NetLimits, Network, decode_request,
    fetch_request, response_head,
};
use crate::protocol::codec;
use crate::protocol::{Message, NetRequest};

/// Where answers go: the isolate's messages. Weak, because the isolate itself holds the host.
pub(super) type Answers = Arc<OnceLock<Weak<dyn Fn(Message) + Send + Sync>>>;

/// The network, as one session's guest can use it.
pub(super) struct Exchanges {
    network: Network,
    answers: Answers,
}

impl Exchanges {
    pub(super) fn new(policy: &NetPolicy, audit: &AuditLog, answers: Answers) -> Self {
        let (audit, gate) = (audit.clone(), audit.clone());
        let events = move |event: NetEvent| {
            audit.tell(event.allowed, event.reason, || Access::Network {
                method: event.method,
                scheme: event.scheme,
                host: event.host,
                port: event.port,
                addresses: event.addresses,
                hop: event.hop,
            });
        };
        let policy = Arc::new(policy.clone());
        let reports: (EventSink, EventGate) = (Arc::new(events), Arc::new(move || gate.check()));
        Self { network: Network::new(policy, NetLimits::default(), reports), answers }
    }

    pub(super) fn check(&self, host: &str, port: u32) -> Result<(), ToolError> {
        self.network.check(host, port).map_err(|error| tool_error(&error))
    }

    /// Starts an exchange. Fails if the guest's description is not a valid request.
    pub(super) fn start(&self, call: u32, request: &NetRequest<'_>) -> Result<(), ToolError> {
        let request = match *request {
            NetRequest::Connect { host, port } => {
                self.network.connect(call, host, port, self.answer(call, |()| Value::None));
                return Ok(());
            }
            NetRequest::Encoded(bytes) => decode_request(bytes),
            NetRequest::Fetch { method, url, headers, has_body, body, redirect } => {
                fetch_request(method, url, headers, has_body.then_some(body), redirect)
            }
        };
        let request = request.map_err(|reason| ToolError::new("ValueError", reason))?;
        self.network.start(call, request, self.answer(call, response_head));
        Ok(())
    }

    /// Fails if a request that was made before would not be allowed now, as far as that can be
    /// decided without a DNS lookup.
    pub(super) fn permit_again(&self, request: &NetRequest<'_>) -> Result<(), ToolError> {
        if let NetRequest::Connect { host, port } = request {
            return self.check(host, *port);
        }
        // What is no request was refused then, too.
        let Some(url) = url_of(request) else { return Ok(()) };
        let port = u32::from(url.port_or_known_default().unwrap_or_default());
        url.host_str().map_or(Ok(()), |host| self.check(host, port))
    }

    pub(super) fn send(&self, call: u32, exchange: u32, chunk: &[u8]) {
        self.network.send(exchange, chunk.to_vec(), self.answer(call, |()| Value::None));
    }

    pub(super) fn read(&self, call: u32, exchange: u32, max: u32) {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        self.network.read(exchange, max, self.answer(call, Value::Bytes));
    }

    pub(super) fn close(&self, exchange: u32) {
        self.network.close(exchange);
    }

    pub(super) fn begin_run(&self) {
        self.network.begin_run();
    }

    pub(super) fn end_run(&self) {
        self.network.end_run();
    }

    fn answer<T: 'static>(&self, call: u32, encode: fn(T) -> Value) -> Answer<T> {
        let answers = Arc::clone(&self.answers);
        Box::new(move |result: Result<T, NetError>| {
            send(&answers, call, result.map(encode).map_err(|error| tool_error(&error)));
        })
    }
}

/// Returns `true` if a request changes nothing at its server, so that it may be made again.
pub(super) fn is_safe(request: &NetRequest<'_>) -> bool {
    let is_safe = |method: &str| matches!(method, "GET" | "HEAD" | "OPTIONS");
    match request {
        NetRequest::Connect { .. } => true,
        NetRequest::Encoded(bytes) => {
            decode_request(bytes).is_ok_and(|request| is_safe(&request.method))
        }
        NetRequest::Fetch { method, .. } => is_safe(method),
    }
}

/// Returns the method and the URL of a request, or the server of a connection.
pub(super) fn request_line(request: &NetRequest<'_>) -> String {
    match request {
        NetRequest::Connect { host, port } => format!("connect to {host}:{port}"),
        NetRequest::Encoded(bytes) => decode_request(bytes)
            .map_or_else(|_| "?".to_owned(), |it| format!("{} {}", it.method, it.url)),
        NetRequest::Fetch { method, url, .. } => format!("{method} {url}"),
    }
}

fn url_of(request: &NetRequest<'_>) -> Option<Url> {
    match request {
        NetRequest::Connect { .. } => None,
        NetRequest::Encoded(bytes) => Url::parse(&decode_request(bytes).ok()?.url).ok(),
        NetRequest::Fetch { url, .. } => Url::parse(url).ok(),
    }
}

fn tool_error(error: &NetError) -> ToolError {
    ToolError::new(error.python_type(), error.to_string())
}

/// Answers a call, if the isolate still exists.
pub(super) fn send(answers: &Answers, call: u32, result: Result<Value, ToolError>) {
    if let Some(messages) = answers.get().and_then(Weak::upgrade) {
        let result = result.map_err(ToolError::shortened);
        let answer = codec::encode_answer(result, u64::MAX);
        messages(Message::Answer(call, answer.into()));
    }
}
