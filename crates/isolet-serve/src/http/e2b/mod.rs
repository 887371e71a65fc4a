//! The routes of E2B: its API, which makes and ends sandboxes, and those of a sandbox itself, which
//! E2B's clients reach by headers. Its clients raise what an error's status says: 502 is a sandbox
//! that is gone.

mod connect;
mod contexts;
mod control;
mod execute;
mod files;
mod pip;
mod results;
mod snapshots;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::body::JsonBody;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::node::{Node, Refusal, SessionLease};

pub(super) use self::execute::execute;

/// The version of E2B's server in a sandbox whose files and contexts these routes have.
const ENVD_VERSION: &str = "0.5.7";

/// The header that names a sandbox.
pub(super) const SANDBOX_ID: &str = "e2b-sandbox-id";

/// How long a sandbox lives that goes on because it is used, in seconds.
const RESUMED_SECONDS: f64 = 300.0;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .merge(control::routes())
        .merge(snapshots::routes())
        .merge(contexts::routes())
        .merge(files::routes())
        .merge(connect::routes())
}

/// Why a request fails, as E2B's clients read it.
#[derive(Debug)]
struct Failed(Problem);

impl Failed {
    /// A request to the API.
    fn control(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::Gone(reason) => Problem::nothing(format!("the sandbox is gone: {reason}")),
            Refusal::Paused => Problem::paused("the sandbox is paused; connect to have it go on"),
            other => other.into(),
        })
    }

    /// A request to a sandbox.
    fn data(refusal: Refusal) -> Self {
        let reason = match refusal {
            Refusal::Unknown => "there is none".to_owned(),
            Refusal::Gone(reason) => reason,
            Refusal::Paused => "it is paused".to_owned(),
            Refusal::Failure(failure) if !failure.session_alive => failure.message,
            other => return Self(other.into()),
        };
        // Clients look for these words.
        let text = format!("the sandbox was not found: {reason}");
        Self(Problem::nothing(text).with_status(StatusCode::BAD_GATEWAY))
    }

    fn unreadable(text: impl Into<String>) -> Self {
        Self(Problem::unreadable(text))
    }

    fn nothing(text: impl Into<String>) -> Self {
        Self(Problem::nothing(text))
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (code, message) = (self.0.status().as_u16(), self.0.text());
        self.0.answered_as(&json!({"code": code, "message": message}))
    }
}

/// A body of JSON. One that cannot be read is refused as E2B does.
struct E2bBody<T>(T);

impl<T: serde::de::DeserializeOwned + Send, S: Send + Sync> axum::extract::FromRequest<S>
    for E2bBody<T>
{
    type Rejection = Failed;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Failed> {
        let JsonBody(value) = JsonBody::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// Returns what proves who sends a request to a sandbox.
pub(super) async fn credentials(parts: &mut Parts) -> Credentials {
    let Ok(reached) = Reached::from_request_parts(parts, &()).await;
    reached.credentials
}

/// Refuses a request to the API.
pub(super) fn refused_by_api(refusal: Refusal) -> Response {
    Failed::control(refusal).into_response()
}

/// Refuses a request to a sandbox.
pub(super) fn refused_by_sandbox(refusal: Refusal) -> Response {
    Failed::data(refusal).into_response()
}

/// The sandbox that a request is about, and what proves that its client may use it.
struct Reached {
    id: Option<String>,
    credentials: Credentials,
}

impl<S: Sync> FromRequestParts<S> for Reached {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let mut credentials = Credentials::from_request_parts(parts, state).await?;
        // Not all requests have the first.
        let token = text(&parts.headers, "x-access-token")
            .or_else(|| text(&parts.headers, "e2b-traffic-access-token"));
        credentials.0.token = token.or(credentials.0.token);
        Ok(Self { id: text(&parts.headers, SANDBOX_ID), credentials })
    }
}

impl Reached {
    /// Finds the sandbox. One that is paused goes on if its owner wants that.
    async fn find(&self, node: &Arc<Node>) -> Result<SessionLease, Failed> {
        let id = self.id.as_deref().unwrap_or_default();
        let find = || node.find(&self.credentials, id);
        let used = find().map_err(Failed::data)?;
        if !used.session().is_paused() {
            return Ok(used);
        }
        if !used.session().resumes_on_use() {
            return Err(Failed::data(Refusal::Paused));
        }
        node.resume(used, Some(RESUMED_SECONDS)).await.map_err(Failed::data)?;
        find().map_err(Failed::data)
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Says whether a sandbox runs. Without one, that the node does.
pub(super) async fn health(node: &Arc<Node>, parts: &mut Parts) -> Response {
    let Ok(reached) = Reached::from_request_parts(parts, node).await;
    if reached.id.is_none() {
        return super::body::DialectJson(json!({"status": "healthy"})).into_response();
    }
    match reached.find(node).await {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(failed) => failed.into_response(),
    }
}
