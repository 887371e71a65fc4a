//! `OpenSandbox`'s routes: its API, which creates and ends sandboxes, and the API of a sandbox,
//! which its service `execd` has. The first one tells clients the address of the second one.

pub(super) mod code;
pub(super) mod commands;
mod files;
pub(super) mod lifecycle;
mod portions;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::{Stream, StreamExt};
use isolet::Value;
use serde::de::DeserializeOwned;
use serde_json::{Value as AnyJson, json};

use super::body::{DialectJson, JsonBody};
use super::lenient;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::node::{Node, Raised, Refusal, SessionLease};
use isolet_support::http_server::Patient;

/// The first segment of the paths of sandboxes' own APIs.
pub(super) const PREFIX: &str = "opensandbox";

/// The path of the API.
const API: &str = "/v1/sandboxes";

pub(super) fn routes() -> Router<Arc<Node>> {
    lifecycle::routes()
        .merge(code::routes())
        .merge(commands::routes())
        .merge(files::routes())
        .route(&format!("{API}/{{id}}/{{*rest}}"), any(unsupported))
        .route(&of_sandbox("/{*rest}"), any(unsupported))
}

/// Returns the path of a route of a sandbox's own API.
fn of_sandbox(path: &str) -> String {
    format!("/{PREFIX}/{{id}}{path}")
}

/// Returns `true` for a path of the API.
pub(super) fn is_of_api(path: &str) -> bool {
    path.strip_prefix(API).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the id of the sandbox in a path.
pub(super) fn subject(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(API).or_else(|| path.strip_prefix('/')?.strip_prefix(PREFIX));
    rest?.split('/').nth(1).filter(|id| !id.is_empty())
}

/// A failed request, in `OpenSandbox`'s form.
#[derive(Debug)]
struct Failed(Problem);

impl Failed {
    fn invalid(text: impl Into<String>) -> Self {
        Self(Problem::unreadable(text))
    }

    fn unsupported(text: impl Into<String>) -> Self {
        Self(Problem::unsupported(text).with_status(StatusCode::NOT_IMPLEMENTED))
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::Unknown => Problem::nothing("there is no such sandbox"),
            Refusal::Gone(reason) => Problem::nothing(format!("the sandbox is gone: {reason}")),
            Refusal::Paused => Problem::paused("the sandbox is paused; resume it"),
            other => other.into(),
        })
    }
}

impl From<Raised> for Failed {
    fn from(Raised { type_name, message }: Raised) -> Self {
        let text = format!("{type_name}: {message}");
        Self(match type_name.as_str() {
            "FileNotFoundError" => Problem::nothing(text),
            "PermissionError" => Problem::denied(text),
            _ => Problem::unreadable(text),
        })
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let code = self.0.to_body().code.to_uppercase();
        self.0.answered_as(&json!({"code": code, "message": self.0.text()}))
    }
}

/// Refuses a request.
pub(super) fn refused(refusal: Refusal) -> Response {
    Failed::from(refusal).into_response()
}

async fn unsupported(method: Method, uri: Uri) -> Failed {
    let path = uri.path();
    let rest = path.strip_prefix(API).or_else(|| path.strip_prefix('/')?.strip_prefix(PREFIX));
    let rest = rest.and_then(|rest| rest.splitn(3, '/').nth(2)).unwrap_or_default();
    Failed::unsupported(format!("a sandbox of isolet has no `{method} /{rest}`"))
}

/// A body of JSON, whose failure has `OpenSandbox`'s form.
struct OpenSandboxBody<T>(T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequest<S> for OpenSandboxBody<T> {
    type Rejection = Failed;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Failed> {
        let JsonBody(value) = JsonBody::<Value>::from_request(request, state).await?;
        Ok(Self(lenient::read(value, &[])?))
    }
}

/// The sandbox of a request to its own API.
struct Sandbox {
    credentials: Credentials,
    id: String,
}

impl FromRequestParts<Arc<Node>> for Sandbox {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, node: &Arc<Node>) -> Result<Self, Failed> {
        let Ok(credentials) = Credentials::from_request_parts(parts, node).await;
        // The path may have more parameters.
        let params = Path::<Vec<(String, String)>>::from_request_parts(parts, node).await;
        let Path(params) = params.map_err(|error| Failed::invalid(error.body_text()))?;
        let id = params.into_iter().find(|(name, _)| name == "id").map(|(_, id)| id);
        Ok(Self { credentials, id: id.unwrap_or_default() })
    }
}

impl Sandbox {
    fn find(&self, node: &Node) -> Result<SessionLease, Failed> {
        Ok(node.find(&self.credentials, &self.id)?)
    }
}

/// Returns the milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An event of a kind with its fields.
fn event(kind: &str, fields: AnyJson) -> AnyJson {
    let mut event = fields;
    event["type"] = kind.into();
    event["timestamp"] = now().into();
    event
}

/// Answers with events.
fn streamed(events: impl Stream<Item = AnyJson> + Send + 'static) -> Response {
    let lines = events.map(|event| Ok::<_, Infallible>(Bytes::from(format!("data: {event}\n\n"))));
    let mut response = Response::new(Body::from_stream(lines));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    // The guest waits for a client that does not read.
    response.extensions_mut().insert(Patient);
    response
}

/// An answer without anything.
fn done() -> DialectJson {
    DialectJson(json!({}))
}
