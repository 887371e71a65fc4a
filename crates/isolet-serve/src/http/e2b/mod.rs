//! E2B's routes: its API, which creates and ends sandboxes, and the API of a sandbox, which clients
//! address by headers. Clients raise exceptions by status: 502 means that the sandbox is gone.

pub(super) mod connect;
pub(super) mod contexts;
pub(super) mod control;
pub(super) mod execute;
pub(super) mod files;
mod pip;
pub(super) mod processes;
pub(super) mod results;
mod snapshots;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::body::JsonBody;
use super::host_name;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::node::{Node, Refusal, SandboxName, SessionLease};

pub(super) use self::execute::execute;

/// The version of E2B's `envd` whose API these routes have.
const ENVD_VERSION: &str = "0.5.7";

/// The header with the sandbox's id.
pub(super) const SANDBOX_ID: &str = "e2b-sandbox-id";

/// The lifetime of a sandbox that a request has resumed, in seconds.
const RESUMED_SECONDS: f64 = 300.0;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .merge(control::routes())
        .merge(snapshots::routes())
        .merge(contexts::routes())
        .merge(files::routes())
        .merge(connect::routes())
        .merge(processes::routes())
}

/// The ports of a sandbox's services: `envd`, and the one that runs cells.
const PORTS: [u16; 2] = [49_983, 49_999];

/// Tells the sandbox of a request by the name of its host, `PORT-ID.DOMAIN`, as clients without a
/// header for it do.
pub(super) async fn by_host_name(
    State(node): State<Arc<Node>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let host = host_name(request.headers());
    let named = node.domain().zip(host.as_deref()).and_then(|(domain, host)| domain.sandbox(host));
    if let Some(SandboxName { port, id }) = named
        && !request.headers().contains_key(SANDBOX_ID)
    {
        if !PORTS.contains(&port) {
            let text = format!("a sandbox of isolet serves nothing on port {port}");
            let problem = Problem::nothing(text).with_status(StatusCode::BAD_GATEWAY);
            return Failed(problem).into_response();
        }
        if let Ok(id) = HeaderValue::from_str(id) {
            request.headers_mut().insert(SANDBOX_ID, id);
        }
    }
    next.run(request).await
}

/// A failed request, in E2B's form.
#[derive(Debug)]
struct Failed(Problem);

impl Failed {
    /// The failure of a request to the API.
    fn control(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::Gone(reason) => Problem::nothing(format!("the sandbox is gone: {reason}")),
            Refusal::Paused => Problem::paused("the sandbox is paused; connect to have it go on"),
            other => other.into(),
        })
    }

    /// The failure of a request to a sandbox.
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

/// A JSON body. If it is invalid, the failure has E2B's form.
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

/// Extracts the credentials of a request to a sandbox.
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

/// The sandbox of a request, and the client's credentials.
struct Reached {
    id: Option<String>,
    credentials: Credentials,
}

impl<S: Sync> FromRequestParts<S> for Reached {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let mut credentials = Credentials::from_request_parts(parts, state).await?;
        // Not all requests have the first header.
        let token = text(&parts.headers, "x-access-token")
            .or_else(|| text(&parts.headers, "e2b-traffic-access-token"));
        credentials.0.token = token.or(credentials.0.token);
        Ok(Self { id: text(&parts.headers, SANDBOX_ID), credentials })
    }
}

impl Reached {
    /// Finds the sandbox, and resumes it if its owner asked for that.
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

/// Reports that the sandbox is running. Without a sandbox's header, reports on the node.
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
