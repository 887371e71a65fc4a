//! The routes of Dify's sandbox, which runs the code nodes of workflows: programs, each in its own
//! session. Clients read a code of the body, and no body of another status than 200.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use isolet::Value;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::body::{DialectJson, JsonBody};
use super::lenient;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::core::{Execution, Policy, Run, RunOptions, Status};
use isolet_service::node::{ImplicitGrants, NewSession, Node, Refusal};

/// How long a request waits for a slot. Clients wait for 60 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the body says of a request that was refused.
const REFUSED: i32 = -400;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/v1/sandbox/run", post(run))
        .route("/v1/sandbox/dependencies", get(dependencies))
}

/// The rights that the client asks for (`enable_network`) are the node's to give.
#[derive(Deserialize)]
pub(super) struct RunRequest {
    language: String,
    code: String,
    /// Code before the other one.
    #[serde(default)]
    preload: String,
}

async fn run(
    State(node): Served,
    credentials: Credentials,
    JsonBody(body): JsonBody<Value>,
) -> Response {
    match execute(&node, &credentials, body).await {
        Ok(execution) => succeeded(&data(&execution)),
        Err(problem) => refused(&problem),
    }
}

async fn execute(
    node: &Arc<Node>,
    credentials: &Credentials,
    body: Value,
) -> Result<Execution, Problem> {
    let tenant = node.tenant(credentials)?;
    let RunRequest { language, code, preload } = lenient::read(body, &[])?;
    if language != "python3" {
        return Err(Problem::unsupported(format!(
            "the language is {language:?}, and has to be python3"
        )));
    }
    let new = NewSession {
        policy: Policy::without_checkpoints(),
        grants: ImplicitGrants { packages: true, ..ImplicitGrants::default() },
        ..NewSession::default()
    };
    let session = node.create_own(&tenant, new, PATIENCE).await?;
    let code = if preload.is_empty() { code } else { format!("{preload}\n{code}") };
    let options = RunOptions { program: true, ..RunOptions::default() };
    let run = Run { code, inputs: Vec::new(), options, input: None };
    let ran = node.run(session.used(), run).await;
    session.end().await;
    Ok(ran?)
}

/// Clients take any error for a failure, so the standard error is part of one only.
fn data(execution: &Execution) -> AnyJson {
    let mut error = String::new();
    if let Some(failure) = failure(execution) {
        error = format!("{}{failure}", execution.stderr);
    }
    json!({"error": error, "stdout": execution.stdout})
}

/// Returns why the code failed, if it did.
pub(super) fn failure(execution: &Execution) -> Option<String> {
    match execution.status {
        Status::Completed | Status::Submitted => None,
        Status::Raised => {
            let traceback = execution.exception.as_ref().map(|raised| raised.traceback.clone());
            Some(traceback.unwrap_or_default())
        }
        Status::Exited => {
            let status = execution.exit_code.filter(|status| *status != 0)?;
            Some(format!("the code exited with status {status}\n"))
        }
        Status::Terminated => {
            let message = execution.termination.as_ref().map(|ended| ended.message.as_str());
            Some(format!("{}\n", message.unwrap_or_default()))
        }
    }
}

/// The packages that clients offer their users. Those of a node are the policy's.
async fn dependencies(State(node): Served, credentials: Credentials) -> Response {
    match node.tenant(&credentials) {
        Ok(_) => succeeded(&json!({"dependencies": []})),
        Err(refusal) => refused(&refusal.into()),
    }
}

fn succeeded(data: &AnyJson) -> Response {
    DialectJson(json!({"code": 0, "message": "success", "data": data})).into_response()
}

/// Clients show the message of a body with status 200. With 503 they say that the sandbox is not
/// available, and may try again.
fn refused(problem: &Problem) -> Response {
    let body = |code: i32| json!({"code": code, "message": problem.text(), "data": null});
    match problem.status() {
        StatusCode::UNAUTHORIZED => problem.answered_as(&body(-401)),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => {
            let unavailable = problem.answered_as(&body(-503));
            with_status(unavailable, StatusCode::SERVICE_UNAVAILABLE)
        }
        _ => DialectJson(body(REFUSED)).into_response(),
    }
}

fn with_status(mut response: Response, status: StatusCode) -> Response {
    *response.status_mut() = status;
    response
}

/// Returns `true` for a refusal that says that the node has no room.
pub(super) fn is_full(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Full(_)
            | Refusal::Memory(_)
            | Refusal::Quota(_)
            | Refusal::TooFast(..)
            | Refusal::Waited(..)
            | Refusal::Draining
    )
}
