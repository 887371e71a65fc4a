//! Runs: in a session, with one answer or with events as they come, and in a session of their own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use isolet::{Stream, ToolError, Value};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answers::fit;
use super::body::{ApiResponse, JsonBody, PathParam, line, variables};
use super::openapi::{self, Refusals};
use super::problem::Problem;
use super::sessions::SessionRequest;
use crate::cli::http_server::Patient;
use crate::service::Answer;
use crate::service::node::{
    Credentials, Event, NewRun, Node, SessionLease, StreamItem, Streamed, Tenant,
};

/// The media type of events: an object of JSON on each line.
pub(super) const EVENTS: &str = "application/x-ndjson";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> OpenApiRouter<Arc<Node>> {
    OpenApiRouter::new()
        .routes(routes!(run_code))
        .routes(routes!(answer_tool_call))
        .routes(routes!(run_code_once))
}

/// Code to run.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct RunRequest {
    #[schema(required, value_type = String)]
    code: Option<String>,
    /// Variables that are set before.
    #[schema(value_type = Object)]
    inputs: Value,
    /// How many seconds it may take.
    timeout_s: Option<f64>,
    /// What it reads from standard input.
    #[schema(value_type = String)]
    stdin: Value,
    /// `sys.argv` after the program's name.
    argv: Option<Vec<String>>,
    /// The file name in tracebacks.
    name: Option<String>,
    /// As `python FILE` runs it, without a value of the last expression; at its end its variables
    /// are deleted.
    program: bool,
    /// A program's variables stay in the session.
    keep_variables: bool,
    /// A `return` at the top level ends the code, with its value.
    allow_return: bool,
    /// How the code is read: `python`, `command` as by `python -c`, or `ipython`, with its
    /// commands.
    syntax: Option<String>,
    /// Displays of pandas' tables also have their data, by column.
    table_data: bool,
}

impl RunRequest {
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
        if let Some(syntax) = self.syntax {
            options.push(("syntax", syntax.into()));
        }
        options.push(("program", self.program.into()));
        options.push(("keep_variables", self.keep_variables.into()));
        options.push(("allow_return", self.allow_return.into()));
        options.push(("table_data", self.table_data.into()));
        let inputs = variables(self.inputs)?;
        Ok(NewRun { code, inputs, options: Value::dict(options) })
    }
}

/// Runs code in a session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/runs",
    params(
        ("id" = String, Path, description = "The session's id"),
    ),
    request_body = RunRequest,
    responses(
        (status = 200, content((openapi::Execution), (String = "application/x-ndjson"))),
        Refusals,
    ),
)]
async fn run_code(
    State(node): Served,
    credentials: Credentials,
    PathParam(id): PathParam<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    let session = node.find(&credentials, &id)?;
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepted.contains(EVENTS) {
        let execution = node.run(&session, request.new_run(false)?).await?;
        let execution = fit(&node, &session, execution);
        return Ok(ApiResponse(StatusCode::OK, execution).into_response());
    }
    // The same session, for as long as its events are told.
    let same = node.find(&credentials, &id)?;
    let streamed = node.stream(session, request.new_run(true)?).await?;
    let mut response = Response::new(Body::from_stream(lines(node, same, streamed)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    // The guest waits for a client that does not read.
    response.extensions_mut().insert(Patient);
    Ok(response)
}

/// The lines of a run that is listened to; the last one has its result.
fn lines(
    node: Arc<Node>,
    session: SessionLease,
    streamed: Streamed,
) -> impl stream::Stream<Item = Result<Bytes, Infallible>> {
    streamed.items().map(move |item| {
        Ok(match item {
            StreamItem::Event(event) => line(event_to_json(event)).into(),
            StreamItem::End(Ok(execution)) => {
                let execution = fit(&node, &session, execution);
                line(Value::dict([("type", Value::from("end")), ("execution", execution)])).into()
            }
            StreamItem::End(Err(refusal)) => {
                let problem = Problem::from(refusal).value();
                line(Value::dict([("type", Value::from("error")), ("problem", problem)])).into()
            }
        })
    })
}

/// Returns an event as the object that clients get.
pub(super) fn event_to_json(event: Event) -> Value {
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
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolResult {
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    value: Value,
    #[serde(default)]
    error: Option<ToolException>,
}

impl ToolResult {
    pub(super) fn answer(self) -> Answer {
        match self.error {
            Some(failure) => Err(failure.error()),
            None => Ok(self.value),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ToolException {
    #[serde(rename = "type", default = "runtime_error")]
    type_name: String,
    message: String,
    /// Exceptions of Python's standard library that it is based on, the nearest first.
    #[serde(default)]
    bases: Vec<String>,
    /// The exceptions that it is a group of.
    #[serde(default)]
    #[schema(no_recursion)]
    exceptions: Vec<Self>,
}

impl ToolException {
    fn error(self) -> ToolError {
        let error = ToolError::new(self.type_name, self.message);
        let error = self.bases.into_iter().fold(error, ToolError::based_on);
        let exceptions = self.exceptions.into_iter().map(Self::error);
        exceptions.fold(error, ToolError::with_exception)
    }
}

fn runtime_error() -> String {
    "RuntimeError".to_owned()
}

/// Answers a call of a tool.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/calls/{call}",
    params(
        ("id" = String, Path, description = "The session's id"),
        ("call" = u64, Path, description = "The number of the call"),
    ),
    request_body = ToolResult,
    responses((status = 204), Refusals),
)]
async fn answer_tool_call(
    State(node): Served,
    credentials: Credentials,
    PathParam((id, call)): PathParam<(String, u64)>,
    JsonBody(answer): JsonBody<ToolResult>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    if node.answer(&session, call, answer.answer()) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("nobody waits for an answer to the call {call}")))
    }
}

/// A session for one run.
pub(super) struct RunOnceRequest {
    policy: Value,
    request: RunRequest,
}

/// Not by `flatten`, which lets keys pass that nobody knows.
impl<'de> Deserialize<'de> for RunOnceRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (policy, rest) = taken(Value::deserialize(deserializer)?, "policy");
        let request = isolet::from_value(rest).map_err(D::Error::custom)?;
        Ok(Self { policy: policy.unwrap_or_default(), request })
    }
}

/// Takes a field away from those that another type has.
pub(super) fn taken(fields: Value, name: &str) -> (Option<Value>, Value) {
    let Value::Dict(mut fields) = fields else { return (None, fields) };
    let at = fields.iter().position(|(key, _)| key.as_str() == Some(name));
    let field = at.map(|at| fields.remove(at).1);
    (field, Value::Dict(fields))
}

impl PartialSchema for RunOnceRequest {
    fn schema() -> RefOr<Schema> {
        openapi::with_property(RunRequest::schema(), "policy", openapi::any())
    }
}

impl ToSchema for RunOnceRequest {}

impl RunOnceRequest {
    /// Runs the code in a session of its own, for which it waits for so long.
    pub(super) async fn run(
        self,
        node: &Arc<Node>,
        tenant: &Arc<Tenant>,
        patience: Duration,
    ) -> Result<Value, Problem> {
        let run = self.request.new_run(false)?;
        let new = SessionRequest::of(self.policy).new_session()?;
        let session = node.create_own(tenant, new, patience).await?;
        let ran = node.run(session.used(), run).await;
        let ran = ran.map(|execution| fit(node, session.used(), execution));
        session.end().await;
        Ok(ran?)
    }
}

/// Runs code in a session of its own.
#[utoipa::path(
    post,
    path = "/v1/run",
    request_body = RunOnceRequest,
    responses((status = 200, body = openapi::Execution), Refusals),
)]
async fn run_code_once(
    State(node): Served,
    credentials: Credentials,
    JsonBody(request): JsonBody<RunOnceRequest>,
) -> Result<ApiResponse, Problem> {
    let tenant = node.tenant(&credentials)?;
    Ok(ApiResponse(StatusCode::OK, request.run(&node, &tenant, Duration::ZERO).await?))
}
