//! The request log: a line on standard error for each request once it is over, and lines about the
//! node itself. What clients send forges no line: it is escaped, without bodies, queries and keys.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::MatchedPath;
use axum::http::{Extensions, HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::{Frame, SizeHint};
use isolet_support::audit_line::seconds;
use isolet_support::http_server::Peer;
use isolet_support::text::on_one_line;
use serde::Serialize;

use super::otlp;
use super::standard_error::{LeftOut, StandardError};
use isolet_service::node::{Node, Operator, RequestLogFormat, Tenant};

/// The longest path, method or id of a client in a line, in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// The lines of a node about itself and its requests.
#[derive(Clone)]
pub(super) struct RequestLog {
    format: RequestLogFormat,
    to: StandardError,
}

impl RequestLog {
    /// Opens the log. Without a format, it is text if standard error is a terminal, else off.
    pub(super) fn open(format: Option<RequestLogFormat>) -> io::Result<Self> {
        let by_default = || {
            if io::stderr().is_terminal() { RequestLogFormat::Text } else { RequestLogFormat::Off }
        };
        let format = format.unwrap_or_else(by_default);
        let to = StandardError::open(move |left_out| said_of(format, &left_out))?;
        Ok(Self { format, to })
    }

    /// Returns the operator of a node, whose calls never block.
    pub(super) fn operator(&self) -> Operator {
        let Self { format, to } = self.clone();
        Box::new(move |line| to.paced(message(format, line)))
    }

    /// Tells the operator something that no client can cause.
    pub(super) fn say(&self, text: &str) {
        self.to.line(message(self.format, text));
    }

    /// Says where the node listens.
    pub(super) fn started(&self, node: &Node, address: &str) {
        let (name, version) = (node.name(), env!("CARGO_PKG_VERSION"));
        self.to.line(match self.format {
            RequestLogFormat::Json => json(&Started { name, version, address }),
            _ => format!("node `{name}` listening at {address}"),
        });
    }

    /// Says that the node waits for its runs before it ends.
    pub(super) fn draining(&self, node: &Node) {
        let load = node.load();
        let (runs, sessions) = (load.running + load.waiting, load.sessions);
        self.about(&Draining { runs, sessions }, || {
            format!("draining runs={runs} sessions={sessions}")
        });
    }

    /// Says that the node has ended, and waits until that is written.
    pub(super) fn ended(&self, node: &Node) {
        let uptime = node.uptime().as_secs_f64();
        self.about(&Ended { uptime }, || format!("ended uptime={uptime:.2}s"));
        self.to.end();
    }

    fn about(&self, event: &impl Event, text: impl FnOnce() -> String) {
        match self.format {
            RequestLogFormat::Off => {}
            RequestLogFormat::Text => self.to.line(format!("{} {}", now(), text())),
            RequestLogFormat::Json => self.to.line(json(event)),
        }
    }

    /// Has a request and its answer be logged, once the last byte of the answer is sent or its
    /// WebSocket has ended. Returns the request, and its record if there is a log.
    pub(super) fn begin<B>(&self, request: Request<B>) -> (Request<Body>, Option<Arc<Record>>)
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        if self.format == RequestLogFormat::Off {
            return (request.map(Body::new), None);
        }
        let record = Arc::new(Record::new(self.clone(), &request));
        let of_body = Arc::clone(&record);
        let mut request = request.map(|body| {
            // A body that is there already ends at once, and needs no count.
            let body = Body::new(body);
            if body.is_end_stream() { body } else { Body::new(Counted::request(body, of_body)) }
        });
        request.extensions_mut().insert(Arc::clone(&record));
        (request, Some(record))
    }
}

/// The time of a line of text.
fn now() -> humantime::Rfc3339Timestamp {
    humantime::format_rfc3339_millis(SystemTime::now())
}

/// A line of JSON.
trait Event: Serialize {
    const NAME: &'static str;
}

#[derive(Serialize)]
struct Started<'a> {
    name: &'a str,
    version: &'static str,
    address: &'a str,
}

#[derive(Serialize)]
struct Draining {
    runs: usize,
    sessions: usize,
}

#[derive(Serialize)]
struct Ended {
    uptime: f64,
}

#[derive(Serialize)]
struct Message<'a> {
    message: &'a str,
}

#[derive(Serialize)]
struct Dropped {
    lines: u64,
}

impl Event for Started<'_> {
    const NAME: &'static str = "started";
}

impl Event for Draining {
    const NAME: &'static str = "draining";
}

impl Event for Ended {
    const NAME: &'static str = "ended";
}

impl Event for Message<'_> {
    const NAME: &'static str = "message";
}

impl Event for Dropped {
    const NAME: &'static str = "dropped";
}

fn json<E: Event>(event: &E) -> String {
    line_of(SystemTime::now(), E::NAME, event)
}

/// Returns an event as a line of JSON.
fn line_of(time: SystemTime, event: &'static str, fields: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        time: f64,
        event: &'static str,
        #[serde(flatten)]
        fields: &'a T,
    }
    // Texts and numbers always have a JSON form.
    serde_json::to_string(&Line { time: seconds(time), event, fields }).unwrap_or_default()
}

/// Returns a line for the operator. Parts of it come from clients.
fn message(format: RequestLogFormat, text: &str) -> String {
    let text = on_one_line(text);
    if format == RequestLogFormat::Json { json(&Message { message: &text }) } else { text }
}

fn said_of(format: RequestLogFormat, left_out: &LeftOut) -> String {
    match (left_out, format) {
        (LeftOut::Unread(lines), RequestLogFormat::Json) => json(&Dropped { lines: *lines }),
        (LeftOut::Unread(lines), _) => {
            format!("{lines} lines were left out: nobody has read standard error")
        }
        (LeftOut::Alike(lines), _) => {
            message(format, &format!("{lines} lines like the next one were left out"))
        }
    }
}

/// A request under way. When the last part of the node is done with it, its line is written.
pub(super) struct Record {
    log: RequestLog,
    time: SystemTime,
    since: Instant,
    method: Method,
    path: String,
    peer: Option<SocketAddr>,
    request_id: Option<String>,
    trace: Option<String>,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    found: Mutex<Found>,
}

/// What the node finds out about a request.
#[derive(Default)]
struct Found {
    route: Option<String>,
    tenant: Option<Arc<Tenant>>,
    session: Option<String>,
    status: Option<StatusCode>,
    code: Option<&'static str>,
    refused: Option<&'static str>,
    /// Set once all of the answer was sent.
    is_whole: bool,
}

/// In the extensions of an answer: the code of its problem.
#[derive(Clone, Copy)]
pub(super) struct ProblemCode(pub(super) &'static str);

impl Record {
    fn new<B>(log: RequestLog, request: &Request<B>) -> Self {
        let headers = request.headers();
        let peer = request.extensions().get::<Peer>();
        Self {
            log,
            time: SystemTime::now(),
            since: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            peer: peer.and_then(Peer::address),
            request_id: request_id(headers),
            trace: trace(headers),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            found: Mutex::default(),
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes whose request it is, and about which session, as the path or a header says.
    pub(super) fn of(&self, tenant: &Arc<Tenant>, session: Option<&str>) {
        let mut found = self.found();
        found.tenant = Some(Arc::clone(tenant));
        found.session = session.filter(|id| is_id(id)).map(str::to_owned);
    }

    /// Notes that the request has started a session.
    pub(super) fn started(&self, session: &str) {
        self.found().session = Some(session.to_owned());
    }

    /// Notes why the node has refused the client.
    pub(super) fn refused(&self, why: &'static str) {
        self.found().refused = Some(why);
    }

    /// Notes the end of a WebSocket in order.
    pub(super) fn is_over(&self) {
        self.found().is_whole = true;
    }

    /// Notes the answer, and has its bytes be counted.
    pub(super) fn answered(self: Arc<Self>, answer: Response<Body>) -> Response<Body> {
        {
            let mut found = self.found();
            found.status = Some(answer.status());
            found.code = answer.extensions().get().map(|ProblemCode(code)| *code);
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                return answer;
            }
        }
        answer.map(|body| Body::new(Counted::answer(body, self)))
    }
}

/// Returns the record of a request, if there is a log.
pub(super) fn record(of: &Extensions) -> Option<&Arc<Record>> {
    of.get()
}

/// Notes the route of a request.
pub(super) fn note_route(of: &Extensions) {
    if let (Some(record), Some(route)) = (record(of), of.get::<MatchedPath>()) {
        record.found().route = Some(route.as_str().to_owned());
    }
}

/// Returns `true` for what may be a session's id. Others are not logged.
fn is_id(id: &str) -> bool {
    id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns the id that a client, or a proxy, has given a request.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    (id.len() <= MAX_TEXT_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic()))
        .then(|| id.to_owned())
}

/// Returns the id of the trace that a request belongs to.
fn trace(headers: &HeaderMap) -> Option<String> {
    headers.get("traceparent")?;
    let parent = otlp::parent(headers);
    parent.is_valid().then(|| parent.trace_id().to_string())
}

/// Returns a client's text as it may be in a line.
fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    let cut = if end < text.len() { "..." } else { "" };
    on_one_line(text.get(..end).unwrap_or_default()) + cut
}

/// A request as a line of JSON.
#[derive(Serialize)]
struct Fields<'a> {
    method: &'a str,
    route: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Until the last byte of the answer, in seconds.
    duration: f64,
    received_bytes: u64,
    sent_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl Fields<'_> {
    /// Returns the line of text.
    fn text(&self, time: SystemTime, event: &'static str) -> String {
        let mut line = humantime::format_rfc3339_millis(time).to_string();
        if event != REQUEST {
            line.push(' ');
            line.push_str(event);
        }
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let milliseconds = self.duration * 1000.0;
        let Self { method, route, received_bytes, sent_bytes, .. } = self;
        // Writing to a string does not fail.
        let _ = write!(line, " {method} {route} {status} {milliseconds:.2}ms");
        let _ = write!(line, " received={received_bytes} sent={sent_bytes}");
        let peer = self.peer.map(|peer| peer.to_string());
        for (name, value) in [
            ("tenant", self.tenant),
            ("session", self.session),
            ("peer", peer.as_deref()),
            ("request_id", self.request_id),
            ("trace", self.trace),
            ("code", self.code),
            ("reason", self.reason),
        ] {
            let Some(value) = value else { continue };
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
            let _ = if !value.is_empty() && value.bytes().all(is_plain) {
                write!(line, " {name}={value}")
            } else {
                write!(line, " {name}={value:?}")
            };
        }
        if self.incomplete {
            line.push_str(" incomplete");
        }
        line
    }
}

/// The events of requests: answered ones, refused clients, and WebSockets.
const REQUEST: &str = "request";
const REFUSED: &str = "refused";
const SOCKET: &str = "socket";

impl Drop for Record {
    fn drop(&mut self) {
        let found = std::mem::take(self.found.get_mut().unwrap_or_else(PoisonError::into_inner));
        let is_socket = found.status == Some(StatusCode::SWITCHING_PROTOCOLS);
        let event = match found.refused {
            Some(_) => REFUSED,
            None if is_socket => SOCKET,
            None => REQUEST,
        };
        // An unknown path is the client's text.
        let route = found.route.unwrap_or_else(|| shown(&self.path));
        let fields = Fields {
            method: &shown(self.method.as_str()),
            route: &route,
            status: found.status.map(|status| status.as_u16()),
            duration: self.since.elapsed().as_secs_f64(),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            tenant: found.tenant.as_ref().map(|tenant| &*tenant.name),
            session: found.session.as_deref(),
            peer: self.peer,
            request_id: self.request_id.as_deref(),
            trace: self.trace.as_deref(),
            code: found.code,
            reason: found.refused,
            incomplete: !found.is_whole,
        };
        self.log.to.line(match self.log.format {
            RequestLogFormat::Json => line_of(self.time, event, &fields),
            _ => fields.text(self.time, event),
        });
    }
}

/// A body whose bytes are counted.
struct Counted {
    body: Body,
    record: Arc<Record>,
    is_answer: bool,
    is_over: bool,
}

impl Counted {
    fn request(body: Body, record: Arc<Record>) -> Self {
        Self { body, record, is_answer: false, is_over: false }
    }

    fn answer(body: Body, record: Arc<Record>) -> Self {
        Self { body, record, is_answer: true, is_over: false }
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                if self.is_answer {
                    self.record.sent(length);
                } else {
                    self.record.received(length);
                }
            }
            None => self.is_over = true,
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Of an answer to `HEAD`, nothing is sent.
        let is_whole = self.is_over || self.is_end_stream() || self.record.method == Method::HEAD;
        if self.is_answer && is_whole {
            self.record.is_over();
        }
    }
}
