//! Refusals as RFC 9457's `application/problem+json`, with a code for programs and a hint.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;

use super::body::line;
use super::openapi;
use super::request_log::ProblemCode;
use isolet_service::core::{Failure, FailureKind};
use isolet_service::node::{Awaited, Memory, Refusal, over_quota};

/// A refused request.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: Option<String>,
    /// The delay in seconds before a retry makes sense.
    retry_after: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), hint: None, retry_after: None }
    }

    fn retried(self) -> Self {
        Self { retry_after: Some(1), ..self }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// An invalid request.
    pub(super) fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail)
    }

    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_route", "there is no such route")
    }

    pub(super) fn no_method() -> Self {
        let detail = "the route has other methods, which `Allow` names";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "no_route", detail)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let detail = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    /// A body with too many values.
    pub(super) fn too_many_values(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
            .with_hint("send large data as a file, or as one string")
    }

    /// A client that stopped sending its body.
    pub(super) fn too_slow(seconds: u64) -> Self {
        let detail = format!("nothing of the body has come for {seconds} s");
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail)
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

    /// Something that cannot be done now.
    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "busy", detail)
    }

    pub(super) fn paused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "paused", detail)
    }

    /// A feature that isolet does not have.
    pub(super) fn unsupported(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unsupported", detail)
    }

    /// Replaces the status by one that a client expects.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the message and the hint as one text.
    pub(super) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.detail),
            None => self.detail.clone(),
        }
    }

    /// Responds with another protocol's body.
    pub(super) fn answered_as(&self, body: &Json) -> Response {
        let mut response = (self.status, body.to_string()).into_response();
        response.extensions_mut().insert(ProblemCode(self.code));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Returns the body for clients.
    pub(super) fn to_body(&self) -> openapi::Problem {
        openapi::Problem {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.detail.clone(),
            hint: self.hint.clone(),
        }
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
            Refusal::Paused => Self::paused("the session is paused")
                .with_hint("`POST /v1/sessions/ID/resume` has it go on"),
            Refusal::NoContext(id) => Self::nothing(format!("there is no context `{id}`")),
            Refusal::NoRun(detail) => Self::nothing(detail),
            Refusal::Restoring => {
                let detail = "the node was started again, and is restoring the session";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "restoring", detail).retried()
            }
            Refusal::NoSnapshot(id) => Self::nothing(format!("there is no snapshot `{id}`")),
            Refusal::Full(limit) => {
                let detail = format!("the node is full: limit {limit} sessions");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "capacity", detail).retried()
            }
            Refusal::InFlight(limit) => {
                let detail = format!("bytes of requests and unread answers at once: limit {limit}");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "capacity", detail).retried()
            }
            Refusal::Unlogged(reason) => {
                let detail = format!("the audit log cannot be written: {reason}");
                let hint = "the node starts nothing and allows no access until it can be written";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "audit", detail)
                    .retried()
                    .with_hint(hint)
            }
            Refusal::AuditQuota(limit, after) => {
                let seconds = after.as_secs();
                let detail = format!("{}; there is room again in {seconds} s", over_quota(limit));
                let retry_after = u32::try_from(seconds).unwrap_or(u32::MAX).max(1);
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", detail);
                Self { retry_after: Some(retry_after), ..problem }
            }
            Refusal::Memory(Memory { available, total }) => {
                let detail =
                    format!("the node has {available} bytes of memory left, of {total} in all");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "capacity", detail).retried()
            }
            Refusal::TooFast(limit, after) => {
                let seconds = after.as_secs_f64();
                let detail = format!(
                    "sessions started in a second by this key: limit {limit}; the next one may \
                     start in {seconds:.1} s"
                );
                let retry_after = u32::try_from(after.as_secs()).unwrap_or(u32::MAX).max(1);
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", detail);
                Self { retry_after: Some(retry_after), ..problem }
            }
            Refusal::Quota(detail) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", detail).retried()
            }
            Refusal::Waited(turn, time) => {
                let seconds = time.as_secs_f64();
                let detail = match turn {
                    Awaited::Run => format!(
                        "the run has waited for its turn beside other runs for {seconds} s, as \
                         long as it may (`queue_time`)"
                    ),
                    Awaited::Session => format!(
                        "other requests have used the session for {seconds} s, and this one has \
                         waited for them as long as it may (`queue_time`)"
                    ),
                    Awaited::Packages => format!(
                        "packages of other starts of this key were made ready for {seconds} s, \
                         and this start has waited for them as long as it may (`package_time`); \
                         starts without packages do not wait"
                    ),
                };
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
            FailureKind::Denied => (StatusCode::FORBIDDEN, "denied"),
            FailureKind::Busy => (StatusCode::CONFLICT, "busy"),
            FailureKind::Closed => (StatusCode::GONE, "gone"),
            FailureKind::Died => (StatusCode::GONE, "died"),
            FailureKind::Limit => (StatusCode::UNPROCESSABLE_ENTITY, "limit"),
            FailureKind::Value => (StatusCode::UNPROCESSABLE_ENTITY, "value"),
            FailureKind::Packages => (StatusCode::UNPROCESSABLE_ENTITY, "packages"),
            FailureKind::Config | FailureKind::Journal => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid")
            }
            FailureKind::Start | FailureKind::Assets => (StatusCode::SERVICE_UNAVAILABLE, "start"),
            FailureKind::Protocol => (StatusCode::BAD_REQUEST, "invalid"),
        };
        Self { hint: failure.hint, ..Self::new(status, code, failure.message) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, line(self.to_body())).into_response();
        response.extensions_mut().insert(ProblemCode(self.code));
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
