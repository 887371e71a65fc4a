//! WebSockets: the handshake, and messages of text both ways. A peer that does not read makes its
//! sender wait, and one that is not heard of is taken for gone.

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
use super::transfer::Transfer;
use isolet_service::node::Node;

/// What a server appends to a client's key (RFC 6455, section 1.3).
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// How many messages of a client wait for their turn.
const MAX_WAITING: usize = 16;

/// How many answers to pings wait for the peer to read.
const MAX_PONGS: usize = 16;

/// The longest time between two pings. Proxies close connections that are silent for a minute.
const PING_EVERY: Duration = Duration::from_secs(20);

/// How long the end of a connection may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// The most bytes of the reason for a close.
const MAX_REASON_BYTES: usize = 123;

/// A request for a WebSocket.
pub(super) struct Upgrade {
    connection: OnUpgrade,
    accept: HeaderValue,
    transfer: Transfer,
}

impl<S: Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        check_origin(&parts.headers)?;
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
        Ok(Self { connection, accept, transfer })
    }
}

/// Refuses web pages of other hosts. Browsers send what they know of a user's password with
/// WebSockets, and let the page read what comes, whatever its host.
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
    /// Accepts the connection, on which `serve` speaks then. A longer message than `max_bytes` ends
    /// it.
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
        let Self { connection, accept, transfer } = self;
        tokio::spawn(async move {
            let _held = held;
            // It fails if the client has gone meanwhile.
            if let Ok(connection) = connection.await {
                serve(Socket::new(connection, max_bytes, silence, transfer)).await;
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

/// What happens next on a socket.
pub(super) enum Turn {
    /// A message has come.
    Message(Payload),
    /// There is room for another message.
    Sent,
    /// The peer has gone, or has to go.
    Gone,
}

/// A connection that has been accepted.
pub(super) struct Socket {
    stream: WebSocketStream<Metered<TokioIo<Upgraded>>>,
    /// Counts what has come and not been carried out, and what is being sent.
    meter: Meter,
    /// The bytes of the message that was taken last, and of the one that is being sent.
    taken: usize,
    sending: usize,
    max_bytes: usize,
    /// Set while something waits for the peer to read.
    is_sending: bool,
    /// How many answers to pings wait for it.
    pongs: usize,
    pings: Interval,
    /// After how long without a sign of the peer it is taken for gone.
    silence: Duration,
    heard: Instant,
    /// Messages whose turn has not come.
    waiting: VecDeque<Payload>,
    /// Why the peer has to go.
    fault: Option<(CloseCode, String)>,
}

impl Socket {
    fn new(connection: Upgraded, max_bytes: usize, silence: Duration, transfer: Transfer) -> Self {
        let meter = Meter::new(transfer);
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

    /// Whether a message can be [sent](Self::send).
    pub(super) fn has_room(&self) -> bool {
        !self.is_sending
    }

    /// Begins to send a message, which [`turn`](Self::turn) goes on with.
    pub(super) fn send(&mut self, text: Vec<u8>) {
        self.sending = text.len();
        self.hold();
        // It fails once the connection is closed, which is what `turn` says then.
        let _ = self.stream.start_send_unpin(Message::text(text));
        self.is_sending = true;
    }

    /// Waits for what happens next. Dropping the future loses nothing.
    pub(super) async fn turn(&mut self) -> Turn {
        loop {
            let Self { stream, meter, is_sending, pongs, pings, heard, fault, .. } = self;
            let max_bytes = self.max_bytes;
            let mut link = Link { stream, meter, is_sending, pongs, heard, fault, max_bytes };
            let turn = tokio::select! {
                turn = poll_fn(|context| link.poll(context)) => Some(turn),
                _ = pings.tick() => None,
            };
            if self.has_room() && std::mem::take(&mut self.sending) > 0 {
                self.hold();
            }
            if let Some(turn) = turn {
                return turn;
            }
            if self.heard.elapsed() >= self.silence {
                let seconds = self.silence.as_secs_f64();
                let reason = format!("nothing was heard for {seconds} s");
                self.fault = Some((CloseCode::POLICY_VIOLATION, reason));
                return Turn::Gone;
            }
            // What waits to be read is as good as a ping.
            if self.has_room() && self.stream.start_send_unpin(Message::ping("")).is_ok() {
                self.is_sending = true;
            }
        }
    }

    /// Waits for the next message; `None` if the peer has gone.
    pub(super) async fn next(&mut self) -> Option<Payload> {
        // The one before has been carried out.
        let waiting = self.waiting.pop_front();
        self.taken = waiting.as_ref().map_or(0, |message| message.len());
        self.hold();
        if waiting.is_some() {
            return waiting;
        }
        loop {
            match self.turn().await {
                Turn::Message(message) => {
                    self.taken = message.len();
                    self.hold();
                    return Some(message);
                }
                Turn::Sent => {}
                Turn::Gone => return None,
            }
        }
    }

    /// Sends a message. Returns `None` if the peer has gone.
    pub(super) async fn deliver(&mut self, text: Vec<u8>) -> Option<()> {
        loop {
            if self.has_room() {
                break;
            }
            let turn = self.turn().await;
            self.keep(turn)?;
        }
        self.send(text);
        while !self.has_room() {
            let turn = self.turn().await;
            self.keep(turn)?;
        }
        Some(())
    }

    /// Does something while the peer is there, else returns `None`.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                turn = self.turn() => self.keep(turn)?,
            }
        }
    }

    /// Keeps a message for its turn. Returns `None` if the peer has gone.
    fn keep(&mut self, turn: Turn) -> Option<()> {
        match turn {
            Turn::Message(message) => self.keep_message(message),
            Turn::Sent => Some(()),
            Turn::Gone => None,
        }
    }

    /// Keeps a message for its turn. Returns `None` if there are too many.
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

    /// Counts the messages that are there.
    fn hold(&self) {
        let waiting: usize = self.waiting.iter().map(|waiting| waiting.len()).sum();
        self.meter.hold((waiting + self.taken + self.sending) as u64);
    }

    /// Ends the connection. A fault of the peer is the reason, if there is one.
    pub(super) async fn close(mut self, code: CloseCode, reason: &str) {
        let (code, mut reason) = self.fault.take().unwrap_or((code, reason.to_owned()));
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        // It is too late if the peer does not read.
        let _ = timeout(FAREWELL, async {
            let _ = self.stream.start_send_unpin(Message::close(Some(code), &reason));
            if self.meter.problem().is_none() {
                let _ = self.stream.close().await;
            } else {
                // Its answer may come after what there is no room for.
                let _ = self.stream.flush().await;
            }
            // What is not read would have the kernel take back what the peer has not read.
            let (mut connection, mut rest) = (self.stream.into_inner().into_inner(), [0; 8192]);
            let _ = connection.shutdown().await;
            while connection.read(&mut rest).await.is_ok_and(|length| length > 0) {}
        })
        .await;
    }
}

/// The parts of a socket that reading and writing need.
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
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        loop {
            if *self.is_sending
                && let Poll::Ready(flushed) = self.stream.poll_flush_unpin(context)
            {
                (*self.is_sending, *self.pongs) = (false, 0);
                return Poll::Ready(if flushed.is_ok() { Turn::Sent } else { Turn::Gone });
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
                    return Poll::Ready(Turn::Message(message.into_payload()));
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
                _ => return Poll::Ready(Turn::Gone),
            }
        }
    }

    fn gone(&mut self, code: CloseCode, reason: String) -> Poll<Turn> {
        *self.fault = Some((code, reason));
        Poll::Ready(Turn::Gone)
    }
}
