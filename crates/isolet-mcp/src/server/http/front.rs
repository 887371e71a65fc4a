//! Checks requests before the protocol sees them: their sender, their form, and the types that the
//! client accepts.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use rmcp::model::ErrorCode;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::Value as Json;

use super::cross_origin::{self, Origins};
use super::{PATH, Principal, Token};
use crate::server::handler::Server;
use crate::server::incoming::{self, MAX_BYTES, refusal};
use isolet_support::http_server::Peer;

/// The time that a client with a valid token may take to send a request.
const SENDING: Duration = Duration::from_mins(2);

/// The most bytes of an answer that is collected for a client that reads no events.
const MAX_COLLECTED_BYTES: usize = 64 << 20;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";

#[derive(Clone)]
pub(super) struct Front {
    pub(super) service: StreamableHttpService<Server, LocalSessionManager>,
    pub(super) token: Option<Token>,
    pub(super) origins: Arc<Origins>,
}

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

impl Front {
    pub(super) async fn answer(self, request: Request<Incoming>) -> Answer {
        let origin = self.origins.allowed(request.headers());
        let is_preflight = request.method() == Method::OPTIONS && origin.is_some();
        let mut answer = if is_preflight {
            // A browser sends no token with it.
            let mut answer = with_status(StatusCode::NO_CONTENT, Bytes::new());
            cross_origin::permit(request.headers(), answer.headers_mut());
            answer
        } else {
            in_json(self.served(request).await).await
        };
        cross_origin::expose(origin, answer.headers_mut());
        answer
    }

    async fn served(mut self, mut request: Request<Incoming>) -> Answer {
        if request.uri().path() != PATH {
            return refused(StatusCode::NOT_FOUND, "the only path is /mcp");
        }
        let principal = match self.token {
            None => "unix".to_owned(),
            Some(token) if token.is_sent_by(request.headers()) => "token".to_owned(),
            Some(_) => {
                let mut answer = refused(
                    StatusCode::UNAUTHORIZED,
                    "the request needs the header `Authorization: Bearer TOKEN` with the token of \
                     this server",
                );
                answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return answer;
            }
        };
        if let Some(peer) = request.extensions().get::<Peer>() {
            peer.is_known();
        }
        request.extensions_mut().insert(Principal(principal));
        let method = request.method().clone();
        let accepted = Accepted::of(request.headers());
        // The protocol requires an `Accept` with both types, which some clients do not send.
        let accepts = match (&method, accepted) {
            (_, Accepted::Nothing) => None,
            (&Method::POST, _) => Some(BOTH),
            (&Method::GET, Accepted::Events | Accepted::Both) => Some(EVENTS),
            _ => None,
        };
        if let Some(accepts) = accepts {
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accepts));
        }
        let request = match self.read(request).await {
            Ok(request) => request,
            Err(answer) => return answer,
        };
        let mut answer = match tower_service::Service::call(&mut self.service, request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        if method == Method::DELETE && answer.status() == StatusCode::ACCEPTED {
            // Clients that check it know this one.
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        if method == Method::POST && accepted == Accepted::Json {
            return collected(answer).await;
        }
        answer
    }

    /// Reads the body of a request, as far as it is a message that the protocol can take.
    async fn read(&self, request: Request<Incoming>) -> Result<Request<Full<Bytes>>, Answer> {
        let (mut head, body) = request.into_parts();
        let body = Limited::new(body, MAX_BYTES).collect();
        let body = match tokio::time::timeout(SENDING, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let reason = format!("the request is longer than the limit, {MAX_BYTES} bytes");
                return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &reason));
            }
            Ok(Err(error)) => {
                return Err(refused(
                    StatusCode::BAD_REQUEST,
                    &format!("the body broke off: {error}"),
                ));
            }
            Err(_) => {
                let reason = format!("the request took longer than {} s", SENDING.as_secs());
                return Err(refused(StatusCode::REQUEST_TIMEOUT, &reason));
            }
        };
        if head.method != Method::POST {
            return Ok(Request::from_parts(head, Full::new(Bytes::new())));
        }
        let body = match incoming::read(body.into()) {
            incoming::Incoming::Message(message) => serde_json::to_vec(&message)
                .map_err(|error| refused(StatusCode::BAD_REQUEST, &error.to_string()))?,
            incoming::Incoming::Refused(answer) => {
                return Err(with_json(StatusCode::BAD_REQUEST, &answer));
            }
            incoming::Incoming::Nothing => {
                return Err(with_status(StatusCode::ACCEPTED, Bytes::new()));
            }
        };
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        Ok(Request::from_parts(head, Full::new(Bytes::from(body))))
    }
}

/// The form of an answer that a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    Both,
    Json,
    Events,
    Nothing,
}

impl Accepted {
    fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let Some(first) = values.next() else { return Self::Both };
        let (mut json, mut events) = (false, false);
        for range in std::iter::once(first).chain(values).flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let is_refused = parts.any(|part| {
                let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
                weight.and_then(|weight| weight.trim().parse().ok()) == Some(0.0)
            });
            if !is_refused {
                json |= matches!(&*media, "*/*" | "application/*" | JSON | "");
                events |= matches!(&*media, "*/*" | "text/*" | EVENTS | "");
            }
        }
        match (json, events) {
            (true, true) => Self::Both,
            (true, false) => Self::Json,
            (false, true) => Self::Events,
            (false, false) => Self::Nothing,
        }
    }
}

/// Returns an answer of events as the one message that answers the request, for a client that reads
/// no events.
async fn collected(answer: Answer) -> Answer {
    if !has_type(&answer, EVENTS) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(body) = Limited::new(body, MAX_COLLECTED_BYTES).collect().await else {
        let reason = format!("the answer is longer than the limit, {MAX_COLLECTED_BYTES} bytes");
        return refused(StatusCode::INTERNAL_SERVER_ERROR, &reason);
    };
    let body = body.to_bytes();
    let events = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let mut messages = events.filter_map(|data| serde_json::from_slice::<Json>(data).ok());
    let is_answer = |message: &Json| message.get("result").or(message.get("error")).is_some();
    let Some(message) = messages.rfind(is_answer) else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "the request has no answer");
    };
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    head.headers.remove(CONTENT_LENGTH);
    let body = Full::new(Bytes::from(message.to_string())).boxed();
    Response::from_parts(head, body)
}

/// Returns an answer whose error is a message of the protocol.
async fn in_json(answer: Answer) -> Answer {
    if answer.status().as_u16() < 400 {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    let said = if let Ok(Json::Object(mut message)) = serde_json::from_slice(&body) {
        message.entry("id").or_insert(Json::Null);
        Json::Object(message)
    } else {
        let text = String::from_utf8_lossy(&body);
        let reason = if text.trim().is_empty() { head.status.as_str() } else { text.trim() };
        refusal(None, ErrorCode::INVALID_REQUEST, reason)
    };
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Full::new(Bytes::from(said.to_string())).boxed())
}

fn has_type(answer: &Answer, wanted: &str) -> bool {
    let given = answer.headers().get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    given.is_some_and(|given| given.starts_with(wanted))
}

fn refused(status: StatusCode, reason: &str) -> Answer {
    with_json(status, &refusal(None, ErrorCode::INVALID_REQUEST, reason))
}

fn with_json(status: StatusCode, message: &Json) -> Answer {
    let mut answer = with_status(status, Bytes::from(message.to_string()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    answer
}

fn with_status(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body).boxed());
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_reads_is_taken_widely() {
        for (accept, expected) in [
            (None, Accepted::Both),
            (Some("*/*"), Accepted::Both),
            (Some("application/json, text/event-stream"), Accepted::Both),
            (Some("text/*;q=0.5, application/*"), Accepted::Both),
            (Some("Application/JSON; charset=utf-8"), Accepted::Json),
            (Some("application/json, text/event-stream;q=0"), Accepted::Json),
            (Some("text/event-stream"), Accepted::Events),
            (Some("image/png"), Accepted::Nothing),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Accepted::of(&headers), expected, "{accept:?}");
        }
    }
}
