//! `POST /execute`: runs a cell, and streams its events as lines of JSON.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::{StreamExt, stream};
use isolet::{Stream, Syntax, ToolError, Value};
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::contexts::check_language;
use super::pip::{self, Cell};
use super::results::{self, failed};
use super::{Failed, Reached};
use crate::http::answers::{checked, fit};
use isolet_service::core::{Execution, Package, Run, RunOptions};
use isolet_service::node::{Event, Node, Refusal, SessionLease, StreamItem};
use isolet_support::http_server::Patient;

#[derive(Deserialize)]
pub(in crate::http) struct CellRequest {
    code: String,
    #[serde(default)]
    context_id: Option<String>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
}

/// Runs the cell in a request's body.
pub(in super::super) async fn execute(
    node: Arc<Node>,
    mut parts: Parts,
    body: Value,
) -> Result<Response, Response> {
    use axum::response::IntoResponse;
    let lines = async {
        let Ok(reached) = Reached::from_request_parts(&mut parts, &node).await;
        let wanted: CellRequest = isolet::from_value(body)
            .map_err(|error| Failed::unreadable(format!("the body is invalid: {error}")))?;
        check_language(wanted.language.as_deref())?;
        let sessions = [reached.find(&node).await?, reached.find(&node).await?];
        run(node, sessions, wanted).await
    };
    lines.await.map_err(Failed::into_response)
}

/// Runs the cell in a session. Both leases are of this session.
async fn run(
    node: Arc<Node>,
    [session, same]: [SessionLease; 2],
    wanted: CellRequest,
) -> Result<Response, Failed> {
    let turn = node.hold(&session).await.map_err(Failed::data)?;
    let mut first = Vec::new();
    let code = match pip::split(&wanted.code) {
        Ok(Cell { code, requirements }) => {
            match install(&node, &session, requirements).await.map_err(Failed::data)? {
                Ok(said) => first.extend(said.map(|said| Ok(output("stdout", &said)))),
                Err(error) => return Ok(answered(stream::iter(ended(error)))),
            }
            code
        }
        Err(error) => return Ok(answered(stream::iter(ended(failed("PackageError", &error))))),
    };
    let options = RunOptions {
        stream: true,
        syntax: Syntax::Ipython,
        table_data: true,
        ..RunOptions::default()
    };
    let run = Run { code, inputs: Vec::new(), options, input: None };
    let environ = wanted.env_vars.unwrap_or_default().into_iter().collect();
    let context = wanted.context_id.as_deref();
    let streamed = node.stream_in(session, turn, context, environ, run).await;
    let (streamed, number) = streamed.map_err(Failed::data)?;
    let lines = streamed.items().flat_map(move |item| {
        stream::iter(match item {
            StreamItem::Event(event) => {
                event_to_json(&node, &same, event).into_iter().map(Ok).collect()
            }
            // For clients, a truncated answer means that the sandbox was killed.
            StreamItem::End(_) if node.was_ended(&same) => vec![Err(killed())],
            StreamItem::End(result) => {
                last(&node, &same, result, number).into_iter().map(Ok).collect::<Vec<_>>()
            }
        })
    });
    Ok(answered(stream::iter(first).chain(lines)))
}

/// Loads packages. Returns `pip`'s output, or the error for the client.
async fn install(
    node: &Node,
    session: &SessionLease,
    requirements: Vec<String>,
) -> Result<Result<Option<String>, AnyJson>, Refusal> {
    if requirements.is_empty() {
        return Ok(Ok(None));
    }
    let asked = requirements.join(" ");
    let loaded = match node.install(session, requirements).await {
        Ok(loaded) => loaded,
        Err(Refusal::Failure(failure)) if failure.session_alive => {
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            return Ok(Err(failed("PackageError", &format!("{}{hint}", failure.message))));
        }
        Err(refusal) => return Err(refusal),
    };
    let name = |package: &Package| format!("{}-{}", package.name, package.version);
    let named: Vec<_> = loaded.iter().map(name).collect();
    Ok(Ok(Some(if named.is_empty() {
        format!("Requirement already satisfied: {asked}\n")
    } else {
        format!("Successfully installed {}\n", named.join(" "))
    })))
}

/// Returns the line for an event, if clients get one.
fn event_to_json(node: &Node, session: &SessionLease, event: Event) -> Option<AnyJson> {
    match event {
        Event::Output(Stream::Stderr, text) => Some(output("stderr", &text)),
        Event::Output(_, text) => Some(output("stdout", &text)),
        // The value of the cell is sent at the end, with its text.
        Event::Display(display) if display.is_result => None,
        Event::Display(display) => Some(match checked(node, display) {
            Ok(display) => results::of_display(&display),
            Err(problem) => {
                output("stderr", &format!("a display is left out: {}\n", problem.text()))
            }
        }),
        Event::Call { call, tool, .. } => {
            let text = format!("nobody answers `{tool}`: E2B's clients have no tools");
            node.answer(session, call, Err(ToolError::new("RuntimeError", text)));
            None
        }
        Event::Uncall(_) => None,
    }
}

fn output(kind: &str, text: &str) -> AnyJson {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
    json!({"type": kind, "text": text, "timestamp": nanoseconds})
}

/// Returns the last lines of a run.
fn last(
    node: &Node,
    session: &SessionLease,
    result: Result<Box<Execution>, Refusal>,
    number: u64,
) -> Vec<AnyJson> {
    let mut lines = Vec::new();
    match result {
        Ok(execution) => {
            let execution = fit(node, session, *execution);
            let loss = execution.loss().filter(|_| !execution.session_ended);
            lines.extend(loss.map(|loss| output("stderr", &format!("{loss}\n"))));
            lines.extend(results::main(&execution));
            lines.extend(results::error(&execution));
        }
        Err(refusal) => {
            let Failed(problem) = Failed::data(refusal);
            lines.push(failed("SandboxError", &problem.text()));
        }
    }
    lines.push(json!({"type": "number_of_executions", "execution_count": number}));
    lines.push(json!({"type": "end_of_execution"}));
    lines
}

fn ended(error: AnyJson) -> [io::Result<AnyJson>; 2] {
    [Ok(error), Ok(json!({"type": "end_of_execution"}))]
}

fn killed() -> io::Error {
    io::Error::other("the sandbox was killed while the cell ran")
}

fn answered(lines: impl stream::Stream<Item = io::Result<AnyJson>> + Send + 'static) -> Response {
    let lines = lines.map(|line| line.map(|line| Bytes::from(format!("{line}\n"))));
    let mut response = Response::new(Body::from_stream(lines));
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    // The guest waits for a client that does not read.
    response.extensions_mut().insert(Patient);
    response
}
