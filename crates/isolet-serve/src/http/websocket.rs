//! WebSockets: the handshake and text messages. Sending waits for a peer that does not read, and a
//! connection on which nothing arrives is closed.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::{
    CONNECTION, HOST, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_websockets::{
    CloseCode, Error, Limits, Message, Payload, ServerBuilder, WebSocketStream,
};

use super::meter::{Meter, Metered};
use super::problem::Problem;
use super::request_log::{self, Record};
use super::transfer::Transfer;
use isolet_service::node::Node;

/// The GUID that a server appends to the client's key (RFC 6455, section 1.3).
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The maximum number of a client's queued messages.
const MAX_WAITING: usize = 16;

/// The maximum number of queued pongs.
const MAX_PONGS: usize = 16;

/// The longest time between pings. Proxies close connections that are silent for a minute.
const PING_EVERY: Duration = Duration::from_secs(20);

/// The timeout of the closing handshake.
const FAREWELL: Duration = Duration::from_secs(5);

/// The maximum length of a close reason, in bytes.
const MAX_REASON_BYTES: usize = 123;

/// A request for a WebSocket.
pub(super) struct Upgrade {
    connection: OnUpgrade,
    accept: HeaderValue,
    transfer: Transfer,
    record: Option<Arc<Record>>,
}

impl<S: Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let record = request_log::record(&parts.extensions).cloned();
        check_origin(&parts.headers).inspect_err(|_| {
            if let Some(record) = &record {
                record.refused("the request is another web page's");
            }
        })?;
        let unreadable = || {
            Problem::unreadable(
                "this route is for WebSockets, version 13, and this is no request for one",
            )
        };
        let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let has = |name: HeaderName, token: &str| {
            let value = text(name).unwrap_or_default();
            value.split(',').any(|one| one.trim().eq_ignore_ascii_case(token))
        };
        let is_handshake = has(CONNECTION, "upgrade")
            && has(UPGRADE, "websocket")
            && text(SEC_WEBSOCKET_VERSION) == Some("13");
        let key = text(SEC_WEBSOCKET_KEY).filter(|_| is_handshake).ok_or_else(unreadable)?;
        let accept = [key.as_bytes(), ACCEPT_SUFFIX].concat();
        let accept = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &accept);
        let accept = HeaderValue::from_str(&STANDARD.encode(accept)).map_err(|_| unreadable())?;
        let connection = parts.extensions.remove::<OnUpgrade>().ok_or_else(unreadable)?;
        let transfer = parts.extensions.get::<Transfer>().cloned().ok_or_else(unreadable)?;
        Ok(Self { connection, accept, transfer, record })
    }
}

/// Refuses web pages of other origins. Browsers attach stored credentials to WebSocket requests of
/// any page, and let the page read the messages.
fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin_host = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if origin_host.is_some_and(|(_, its)| Some(its) == host) || super::is_local(headers) {
        return Ok(());
    }
    Err(Problem::denied("web pages of other hosts get no WebSocket"))
}

impl Upgrade {
    /// Accepts the connection and runs `serve` on it. A message longer than `max_bytes` closes it.
    ///
    /// # Errors
    ///
    /// Fails if there are too many WebSockets.
    pub(super) fn accept<F: Future<Output = ()> + Send + 'static>(
        self,
        node: &Arc<Node>,
        max_bytes: usize,
        serve: impl FnOnce(Socket) -> F + Send + 'static,
    ) -> Result<Response, Problem> {
        let held = node.sockets().take()?;
        let silence = node.idle().max(Duration::from_secs(1));
        let Self { connection, accept, transfer, record } = self;
        tokio::spawn(async move {
            let _held = held;
            // Fails if the client has disconnected.
            if let Ok(connection) = connection.await {
                let meter = Meter::new(transfer, record.clone());
                serve(Socket::new(connection, max_bytes, silence, meter)).await;
                if let Some(record) = record {
                    record.is_over();
                }
            }
        });
        let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        Ok(response)
    }
}

/// The next event on a socket.
pub(super) enum SocketEvent {
    /// A message has arrived.
    Message(Payload),
    /// Another message can be sent.
    Sent,
    /// The peer has disconnected, or the connection must be closed.
    Gone,
}

/// An accepted connection.
pub(super) struct Socket {
    stream: WebSocketStream<Metered<TokioIo<Upgraded>>>,
    /// Charges received messages that are not carried out yet, and messages being sent.
    meter: Meter,
    /// The bytes of the message taken last, and of the message being sent.
    taken: usize,
    sending: usize,
    max_bytes: usize,
    /// Set while a message waits for the peer to read.
    is_sending: bool,
    /// The number of pongs that wait for the peer to read.
    pongs: usize,
    pings: Interval,
    /// The connection is closed after this time without anything received.
    silence: Duration,
    heard: Instant,
    /// Queued messages.
    waiting: VecDeque<Payload>,
    /// The reason for closing the connection.
    fault: Option<(CloseCode, String)>,
}

impl Socket {
    fn new(connection: Upgraded, max_bytes: usize, silence: Duration, meter: Meter) -> Self {
        let limits = Limits::default().max_payload_len(Some(max_bytes));
        let stream = ServerBuilder::new()
            .limits(limits)
            .serve(Metered::new(TokioIo::new(connection), meter.clone()));
        let period = PING_EVERY.min(silence / 4);
        let mut pings = interval_at(Instant::now() + period, period);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            stream,
            meter,
            taken: 0,
            sending: 0,
            max_bytes,
            is_sending: false,
            pongs: 0,
            pings,
            silence,
            heard: Instant::now(),
            waiting: VecDeque::new(),
            fault: None,
        }
    }

    /// Notes in the log that the socket has started a session.
    pub(super) fn started(&self, session: &str) {
        if let Some(record) = self.meter.record() {
            record.started(session);
        }
    }

    /// Returns `true` if a message can be [sent](Self::send).
    pub(super) fn has_room(&self) -> bool {
        !self.is_sending
    }

    /// Starts to send a message. [`next_event`](Self::next_event) continues.
    pub(super) fn send(&mut self, text: Vec<u8>) {
        self.sending = text.len();
        self.hold();
        // Fails once the connection is closed, which `next_event` reports.
        let _ = self.stream.start_send_unpin(Message::text(text));
        self.is_sending = true;
    }

    /// Waits for the next event. Cancel safe.
    pub(super) async fn next_event(&mut self) -> SocketEvent {
        loop {
            let Self { stream, meter, is_sending, pongs, pings, heard, fault, .. } = self;
            let max_bytes = self.max_bytes;
            let mut link = Link { stream, meter, is_sending, pongs, heard, fault, max_bytes };
            let event = tokio::select! {
                event = poll_fn(|context| link.poll(context)) => Some(event),
                _ = pings.tick() => None,
            };
            if self.has_room() && std::mem::take(&mut self.sending) > 0 {
                self.hold();
            }
            if let Some(event) = event {
                return event;
            }
            if self.heard.elapsed() >= self.silence {
                let seconds = self.silence.as_secs_f64();
                let reason = format!("nothing was heard for {seconds} s");
                self.fault = Some((CloseCode::POLICY_VIOLATION, reason));
                return SocketEvent::Gone;
            }
            // A queued message serves as a ping.
            if self.has_room() && self.stream.start_send_unpin(Message::ping("")).is_ok() {
                self.is_sending = true;
            }
        }
    }

    /// Waits for the next message; `None` if the connection must be closed.
    pub(super) async fn next(&mut self) -> Option<Payload> {
        // The previous message has been carried out.
        let waiting = self.waiting.pop_front();
        self.taken = waiting.as_ref().map_or(0, |message| message.len());
        self.hold();
        if waiting.is_some() {
            return waiting;
        }
        loop {
            match self.next_event().await {
                SocketEvent::Message(message) => {
                    self.taken = message.len();
                    self.hold();
                    return Some(message);
                }
                SocketEvent::Sent => {}
                SocketEvent::Gone => return None,
            }
        }
    }

    /// Sends a message. Returns `None` if the connection must be closed.
    pub(super) async fn deliver(&mut self, text: Vec<u8>) -> Option<()> {
        loop {
            if self.has_room() {
                break;
            }
            let event = self.next_event().await;
            self.keep(event)?;
        }
        self.send(text);
        while !self.has_room() {
            let event = self.next_event().await;
            self.keep(event)?;
        }
        Some(())
    }

    /// Does work while the connection is open; otherwise returns `None`.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                event = self.next_event() => self.keep(event)?,
            }
        }
    }

    /// Queues a message. Returns `None` if the connection must be closed.
    fn keep(&mut self, event: SocketEvent) -> Option<()> {
        match event {
            SocketEvent::Message(message) => self.keep_message(message),
            SocketEvent::Sent => Some(()),
            SocketEvent::Gone => None,
        }
    }

    /// Queues a message. Returns `None` if the queue is full.
    pub(super) fn keep_message(&mut self, message: Payload) -> Option<()> {
        let bytes: usize = self.waiting.iter().map(|waiting| waiting.len()).sum();
        if self.waiting.len() == MAX_WAITING || bytes + message.len() > self.max_bytes {
            let most = self.max_bytes;
            let reason = format!("waiting messages: limit {MAX_WAITING}, of {most} bytes together");
            self.fault = Some((CloseCode::POLICY_VIOLATION, reason));
            return None;
        }
        self.waiting.push_back(message);
        self.hold();
        Some(())
    }

    /// Updates the charge of messages.
    fn hold(&self) {
        let waiting: usize = self.waiting.iter().map(|waiting| waiting.len()).sum();
        self.meter.hold((waiting + self.taken + self.sending) as u64);
    }

    /// Closes the connection. A fault of the peer replaces the reason.
    pub(super) async fn close(mut self, code: CloseCode, reason: &str) {
        let (code, mut reason) = self.fault.take().unwrap_or((code, reason.to_owned()));
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        // Too late if the peer does not read.
        let _ = timeout(FAREWELL, async {
            let _ = self.stream.start_send_unpin(Message::close(Some(code), &reason));
            if self.meter.problem().is_none() {
                let _ = self.stream.close().await;
            } else {
                // The close frame may be queued behind a message without room.
                let _ = self.stream.flush().await;
            }
            // Unread bytes would make the kernel reset the connection and discard what was sent.
            let (mut connection, mut rest) = (self.stream.into_inner().into_inner(), [0; 8192]);
            let _ = connection.shutdown().await;
            while connection.read(&mut rest).await.is_ok_and(|length| length > 0) {}
        })
        .await;
    }
}

/// The fields of a socket that reading and writing need.
struct Link<'a> {
    stream: &'a mut WebSocketStream<Metered<TokioIo<Upgraded>>>,
    meter: &'a Meter,
    is_sending: &'a mut bool,
    pongs: &'a mut usize,
    heard: &'a mut Instant,
    fault: &'a mut Option<(CloseCode, String)>,
    max_bytes: usize,
}

impl Link<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<SocketEvent> {
        loop {
            if *self.is_sending
                && let Poll::Ready(flushed) = self.stream.poll_flush_unpin(context)
            {
                (*self.is_sending, *self.pongs) = (false, 0);
                return Poll::Ready(if flushed.is_ok() {
                    SocketEvent::Sent
                } else {
                    SocketEvent::Gone
                });
            }
            if *self.pongs == MAX_PONGS {
                return Poll::Pending;
            }
            let Poll::Ready(next) = self.stream.poll_next_unpin(context) else {
                return match self.meter.problem() {
                    Some(problem) => {
                        self.gone(CloseCode::POLICY_VIOLATION, problem.detail().to_owned())
                    }
                    None => Poll::Pending,
                };
            };
            *self.heard = Instant::now();
            match next {
                Some(Ok(message)) if message.is_text() => {
                    self.meter.arrived();
                    return Poll::Ready(SocketEvent::Message(message.into_payload()));
                }
                Some(Ok(message)) if message.is_ping() => {
                    self.meter.passed(message.as_payload().len());
                    *self.pongs += 1;
                    *self.is_sending = true;
                }
                Some(Ok(message)) if message.is_pong() => {
                    self.meter.passed(message.as_payload().len());
                }
                Some(Ok(message)) if message.is_binary() => {
                    let reason = "messages have to be text".to_owned();
                    return self.gone(CloseCode::UNSUPPORTED_DATA, reason);
                }
                Some(Err(Error::PayloadTooLong { .. })) => {
                    let reason = format!("a message: limit {} bytes", self.max_bytes);
                    return self.gone(CloseCode::MESSAGE_TOO_BIG, reason);
                }
                _ => return Poll::Ready(SocketEvent::Gone),
            }
        }
    }

    fn gone(&mut self, code: CloseCode, reason: String) -> Poll<SocketEvent> {
        *self.fault = Some((code, reason));
        Poll::Ready(SocketEvent::Gone)
    }
}
