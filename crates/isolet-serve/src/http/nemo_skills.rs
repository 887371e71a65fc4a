//! The routes of NeMo-Skills' sandbox: cells in sessions that clients name, and programs. Clients
//! expect output in every answer, so a refusal is output with its own status.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::delete;
use isolet::{Syntax, Value};
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::body::DialectJson;
use super::exits::Shown;
use super::lenient;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::core::{Execution, Input, Policy, Run, RunOptions, TerminationKind};
use isolet_service::node::{ImplicitGrants, MOST_SECONDS, NewSession, Node, Tenant};

/// The header with the name of a session.
const SESSION: &str = "x-session-id";

/// How long a request waits for a slot. Clients wait for the code's timeout and 5 s.
const PATIENCE: Duration = Duration::from_secs(4);

/// Marks truncated output.
const CUT: &str = "<output cut>";

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/sessions/{name}", delete(end))
}

#[derive(Deserialize)]
pub(super) struct ExecuteRequest {
    generated_code: String,
    #[serde(default)]
    std_input: String,
    #[serde(default = "ten_seconds")]
    timeout: f64,
    #[serde(default = "cell")]
    language: String,
    #[serde(default = "thousand_characters")]
    max_output_characters: usize,
    /// The session's name, from older clients.
    #[serde(default)]
    session_id: Option<String>,
}

fn ten_seconds() -> f64 {
    10.0
}

fn cell() -> String {
    "ipython".to_owned()
}

fn thousand_characters() -> usize {
    1000
}

/// Returns a refusal.
pub(super) fn refused(problem: &Problem) -> Response {
    let stderr = format!("{}\n", problem.text());
    problem.answered_as(&json!({"process_status": "error", "stdout": "", "stderr": stderr}))
}

/// Runs the code in a request's body.
pub(super) async fn execute(
    node: Arc<Node>,
    mut parts: Parts,
    body: Value,
) -> Result<Response, Response> {
    let Ok(credentials) = Credentials::from_request_parts(&mut parts, &node).await;
    let wanted: Result<ExecuteRequest, _> =
        lenient::read(body, &["timeout", "max_output_characters"]);
    let ran = async {
        let wanted = wanted?;
        let tenant = node.tenant(&credentials)?;
        let header = parts.headers.get(SESSION).and_then(|name| name.to_str().ok());
        let name = header.map(str::to_owned).or_else(|| wanted.session_id.clone());
        match (wanted.language.as_str(), name) {
            ("ipython", Some(name)) => run_cell(&node, &tenant, &name, wanted).await,
            ("ipython", None) => Err(Problem::unreadable(
                "the header `X-Session-ID` is missing, which names the session",
            )),
            ("python" | "python3", _) => run_program(&node, &tenant, wanted).await,
            (other, _) => Err(Problem::unsupported(format!(
                "the language is {other:?}, and has to be ipython or python"
            ))),
        }
    };
    let output = ran.await.map_err(|problem| refused(&problem))?;
    Ok(DialectJson(output).into_response())
}

async fn run_cell(
    node: &Arc<Node>,
    tenant: &Arc<Tenant>,
    name: &str,
    wanted: ExecuteRequest,
) -> Result<AnyJson, Problem> {
    let grants = grants(MOST_SECONDS);
    // After the end of a session its client repeats all cells, which is for one that is empty.
    let policy = Policy::without_checkpoints();
    let new = NewSession { grants, policy, ..NewSession::default() };
    let (session, is_new) = node.named(tenant, name, new, PATIENCE).await?;
    let options = RunOptions {
        timeout: Some(wanted.timeout),
        syntax: Syntax::Ipython,
        ..RunOptions::default()
    };
    let run = Run { code: wanted.generated_code.clone(), inputs: Vec::new(), options, input: None };
    let execution = node.run_in_turn(&session, run).await?;
    let mut output = output(&wanted, &execution, Kind::Cell);
    output["new_session_created"] = (is_new || execution.session_ended).into();
    Ok(output)
}

async fn run_program(
    node: &Arc<Node>,
    tenant: &Arc<Tenant>,
    wanted: ExecuteRequest,
) -> Result<AnyJson, Problem> {
    let (grants, policy) = (grants(wanted.timeout), Policy::without_checkpoints());
    let new = NewSession { grants, policy, ..NewSession::default() };
    let session = node.create_own(tenant, new, PATIENCE).await?;
    let options = RunOptions {
        timeout: Some(wanted.timeout),
        stdin: Some(Input::Text(wanted.std_input.clone())),
        program: true,
        ..RunOptions::default()
    };
    let run = Run { code: wanted.generated_code.clone(), inputs: Vec::new(), options, input: None };
    let ran = node.run(session.used(), run).await;
    session.end().await;
    Ok(output(&wanted, &ran?, Kind::Program))
}

fn grants(seconds: f64) -> ImplicitGrants {
    let (run_time, most_run_time) = (Some(seconds), Some(MOST_SECONDS));
    ImplicitGrants { packages: true, run_time, most_run_time, ..ImplicitGrants::default() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cell,
    Program,
}

fn output(wanted: &ExecuteRequest, execution: &Execution, kind: Kind) -> AnyJson {
    let (mut stdout, mut stderr) = (execution.stdout.clone(), execution.stderr.clone());
    let mut status = "completed";
    if let Some(exception) = &execution.exception {
        stderr += &exception.traceback;
        // A failed program still counts as completed.
        status = if kind == Kind::Cell { "error" } else { "completed" };
    } else if let Some(termination) = &execution.termination {
        let is_timeout = termination.kind == TerminationKind::Timeout;
        status = if is_timeout { "timeout" } else { "error" };
        let reason = if is_timeout {
            format!("Execution timed out after {} seconds", wanted.timeout)
        } else {
            termination.message.clone()
        };
        stderr.extend([&*reason, "\n"]);
    } else if execution.exit_code.is_some() {
        if kind == Kind::Cell
            && let Some(exit) = Shown::of(execution)
        {
            status = "error";
            stderr.extend([&*exit.line(), "\n"]);
        }
    } else if kind == Kind::Cell && execution.has_value() {
        stdout += execution.repr();
        stdout.push('\n');
    }
    let most = wanted.max_output_characters;
    json!({"process_status": status, "stdout": cut(stdout, most), "stderr": cut(stderr, most)})
}

/// Truncates a text to this many characters.
fn cut(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text += CUT;
    }
    text
}

async fn end(
    State(node): State<Arc<Node>>,
    credentials: Credentials,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let tenant = node.tenant(&credentials)?;
    let Some(session) = node.find_named(&tenant, &name).await? else {
        let body = json!({"error": format!("there is no session `{name}`")});
        return Ok((StatusCode::NOT_FOUND, DialectJson(body)).into_response());
    };
    node.end(&session).await;
    let body = json!({"message": format!("the session `{name}` has ended")});
    Ok(DialectJson(body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_by_characters_and_says_so() {
        assert_eq!(cut("äöü".to_owned(), 3), "äöü");
        assert_eq!(cut("äöüä".to_owned(), 3), "äöü<output cut>");
        assert_eq!(cut(String::new(), 0), "");
    }
}
