//! How a node refuses: RFC 9457, `application/problem+json`, with a code for programs and what
//! helps.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use isolet::Value;
use serde_json::{Value as Json, json};

use crate::service::Failure;
use crate::service::node::Refusal;

/// A refused request.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: Option<String>,
    /// After how many seconds the request may be sent again.
    retry_after: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), hint: None, retry_after: None }
    }

    fn retried(self) -> Self {
        Self { retry_after: Some(1), ..self }
    }

    fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A request that cannot be read.
    pub(super) fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail)
    }

    pub(super) fn no_route() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "no_route",
            "there is no such route, or not by this method",
        )
    }

    pub(super) fn nothing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    pub(super) fn draining() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "the node ends").retried()
    }

    pub(super) fn denied(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "denied", detail)
    }

    /// What isolet does not have.
    pub(super) fn unsupported(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unsupported", detail)
    }

    /// The same with the status that a client expects.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// The problem as a value.
    pub(super) fn value(&self) -> Value {
        // JSON is a value.
        isolet::to_value(&self.json()).unwrap_or_default()
    }

    /// The problem as a line of a stream has it.
    pub(super) fn json(&self) -> Json {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(hint) = &self.hint {
            body["hint"] = hint.as_str().into();
        }
        body
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Key => {
                Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "no key of this node")
                    .with_hint("send `Authorization: Bearer KEY` or `X-API-Key: KEY`")
            }
            Refusal::Unknown => Self::nothing("there is no such session"),
            Refusal::Gone(reason) => {
                Self::new(StatusCode::GONE, "gone", format!("the session is gone: {reason}"))
            }
            Refusal::Full(limit) => {
                let detail = format!("the node is full: limit {limit} sessions");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "capacity", detail).retried()
            }
            Refusal::Quota(detail) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", detail).retried()
            }
            Refusal::Waited(time) => {
                let seconds = time.as_secs_f64();
                let detail = format!("the run has waited for its turn for {seconds} s");
                Self::new(StatusCode::GATEWAY_TIMEOUT, "queue", detail).retried()
            }
            Refusal::Draining => Self::draining(),
            Refusal::Unreadable(detail) => Self::unreadable(detail),
            Refusal::Failure(failure) => failure.into(),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let (status, code) = match failure.kind {
            "denied" => (StatusCode::FORBIDDEN, "denied"),
            "busy" => (StatusCode::CONFLICT, "busy"),
            "closed" => (StatusCode::GONE, "gone"),
            "died" => (StatusCode::GONE, "died"),
            "limit" => (StatusCode::UNPROCESSABLE_ENTITY, "limit"),
            "value" => (StatusCode::UNPROCESSABLE_ENTITY, "value"),
            "packages" => (StatusCode::UNPROCESSABLE_ENTITY, "packages"),
            "config" => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            "start" | "assets" => (StatusCode::SERVICE_UNAVAILABLE, "start"),
            _ => (StatusCode::BAD_REQUEST, "invalid"),
        };
        Self { hint: failure.hint, ..Self::new(status, code, failure.message) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
