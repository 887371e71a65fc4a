//! Runs: in a session, with one answer or with events as they come, and in a session of their own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream;
use isolet::{Stream, Value};
use serde::Deserialize;

use super::Who;
use super::body::{Answered, Given, line, variables};
use super::problem::Problem;
use super::sessions::Wanted;
use crate::service::Answer;
use crate::service::node::{Event, Events, NewRun, Node, Refusal, Streamed};

/// The media type of events: an object of JSON on each line.
const EVENTS: &str = "application/x-ndjson";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/v1/sessions/{id}/runs", post(run))
        .route("/v1/sessions/{id}/calls/{call}", post(answer))
        .route("/v1/run", post(run_once))
}

/// Code to run.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Job {
    code: Option<String>,
    inputs: Value,
    timeout_s: Option<f64>,
    stdin: Value,
    argv: Option<Vec<String>>,
    name: Option<String>,
    program: bool,
    allow_return: bool,
}

impl Job {
    pub(super) fn new_run(self, is_stream: bool) -> Result<NewRun, Problem> {
        let code = self.code.ok_or_else(|| Problem::unreadable("the string `code` is missing"))?;
        let mut options = vec![("stream", Value::from(is_stream))];
        if let Some(seconds) = self.timeout_s {
            options.push(("run_time", seconds.into()));
        }
        if !self.stdin.is_none() {
            options.push(("stdin", self.stdin));
        }
        if let Some(argv) = self.argv {
            options.push(("argv", Value::List(argv.into_iter().map(Value::from).collect())));
        }
        if let Some(name) = self.name {
            options.push(("name", name.into()));
        }
        options.push(("program", self.program.into()));
        options.push(("allow_return", self.allow_return.into()));
        let inputs = variables(self.inputs)?;
        Ok(NewRun { code, inputs, options: Value::dict(options) })
    }
}

async fn run(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
    headers: HeaderMap,
    Given(job): Given<Job>,
) -> Result<Response, Problem> {
    let session = node.find(&who.0, &id)?;
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepted.contains(EVENTS) {
        let execution = node.run(&session, job.new_run(false)?).await?;
        return Ok(Answered(StatusCode::OK, execution).into_response());
    }
    let streamed = node.stream(session, job.new_run(true)?).await?;
    let mut response = Response::new(Body::from_stream(lines(streamed)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    Ok(response)
}

/// The lines of a run that is listened to; the last one has its result.
fn lines(streamed: Streamed) -> impl stream::Stream<Item = Result<Bytes, Infallible>> {
    struct Under {
        events: Events,
        result: Option<futures_util::future::BoxFuture<'static, Result<Value, Refusal>>>,
        /// The result, while events that came before it are still to be told.
        ended: Option<Result<Value, Refusal>>,
    }
    let Streamed { events, result } = streamed;
    let under = Under { events, result: Some(result), ended: None };
    stream::unfold(under, async |mut under| {
        while let Some(result) = &mut under.result {
            tokio::select! {
                biased;
                Some(event) = under.events.next() => {
                    return Some((Ok(line(&told(event)).into()), under));
                }
                ended = result => {
                    under.ended = Some(ended);
                    under.result = None;
                }
            }
        }
        // After its answer nothing more is said by the run.
        if let Some(event) = under.events.try_next() {
            return Some((Ok(line(&told(event)).into()), under));
        }
        let last = match under.ended.take()? {
            Ok(execution) => {
                line(&Value::dict([("type", Value::from("end")), ("execution", execution)]))
            }
            Err(refusal) => {
                let problem = Problem::from(refusal).json();
                let mut text = serde_json::json!({"type": "error", "problem": problem}).to_string();
                text.push('\n');
                text.into_bytes()
            }
        };
        Some((Ok(last.into()), under))
    })
}

/// Returns an event as clients are told of it.
pub(super) fn told(event: Event) -> Value {
    match event {
        Event::Output(stream, text) => {
            let kind = if stream == Stream::Stderr { "stderr" } else { "stdout" };
            Value::dict([("type", Value::from(kind)), ("text", text.into())])
        }
        Event::Display(display) => {
            Value::dict([("type", Value::from("display")), ("display", display)])
        }
        Event::Call { call, tool, arguments } => Value::dict([
            ("type", Value::from("tool_call")),
            ("call_id", i128::from(call).into()),
            ("name", tool.into()),
            ("arguments", arguments),
        ]),
        Event::Uncall(call) => Value::dict([
            ("type", Value::from("tool_cancelled")),
            ("call_id", i128::from(call).into()),
        ]),
    }
}

/// What a tool has returned, or the exception that it has raised.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolAnswer {
    #[serde(default)]
    value: Value,
    #[serde(default)]
    error: Option<ToolFailure>,
}

impl ToolAnswer {
    pub(super) fn answer(self) -> Answer {
        match self.error {
            Some(failure) => Err((failure.type_name, failure.message)),
            None => Ok(self.value),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolFailure {
    #[serde(rename = "type", default = "runtime_error")]
    type_name: String,
    message: String,
}

fn runtime_error() -> String {
    "RuntimeError".to_owned()
}

async fn answer(
    State(node): Served,
    who: Who,
    Path((id, call)): Path<(String, u64)>,
    Given(answer): Given<ToolAnswer>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    if node.answer(&session, call, answer.answer()) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("nobody waits for an answer to the call {call}")))
    }
}

/// A session for one run.
#[derive(Deserialize)]
struct Once {
    #[serde(default)]
    policy: Value,
    #[serde(flatten)]
    job: Job,
}

async fn run_once(
    State(node): Served,
    who: Who,
    Given(Once { policy, job }): Given<Once>,
) -> Result<Answered, Problem> {
    let tenant = node.tenant(&who.0)?;
    let run = job.new_run(false)?;
    let new = Wanted::of(policy).new_session()?;
    let session = node.create_own(&tenant, new, Duration::ZERO).await?;
    let ran = node.run(session.used(), run).await;
    session.end().await;
    Ok(Answered(StatusCode::OK, ran?))
}
