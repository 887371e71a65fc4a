//! Runs: in a session, with a single answer or a stream of events, and in a new session.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use isolet::{Stream, Syntax, ToolError, Value};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answers::{fit, fit_for};
use super::body::{ApiResponse, JsonBody, PathParam, line, variables};
use super::openapi::{self, Refusals};
use super::paths::{CallPath, RunPath, SessionPath};
use super::problem::Problem;
use super::sessions::SessionRequest;
use crate::http::credentials::Credentials;
use isolet_service::core::{
    Answer, Display, Execution, Failure, Input, Plain, Policy, Run, RunOptions,
};
use isolet_service::node::{
    Cursor, DurableRun, Event, NewSession, Node, Reader, Refusal, RunEnd, SessionLease, StreamItem,
    Streamed, Tenant, Told,
};
use isolet_support::http_server::Patient;

/// The media type of events: an object of JSON on each line.
pub(super) const EVENTS: &str = "application/x-ndjson";

/// The header with the number of a durable session's run.
const RUN: HeaderName = HeaderName::from_static("isolet-run");

type Served = State<Arc<Node>>;

pub(super) fn routes() -> OpenApiRouter<Arc<Node>> {
    OpenApiRouter::new()
        .routes(routes!(run_code))
        .routes(routes!(get_run))
        .routes(routes!(answer_tool_call))
        .routes(routes!(run_code_once))
}

/// Defines both requests that run code. They share fields by macro and not by `#[serde(flatten)]`,
/// which would accept unknown keys.
macro_rules! run_requests {
    ($($(#[$meta:meta])* $field:ident: $type:ty,)*) => {
        /// Code to run.
        #[derive(Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct RunRequest {
            $($(#[$meta])* $field: $type,)*
        }

        /// Code to run in a session of its own.
        #[derive(Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct RunOnceRequest {
            /// The policy of the session.
            #[serde(default)]
            #[schema(value_type = Policy)]
            policy: Value,
            /// Whether the run outlives the node's process and its client: the answer has its
            /// address at once.
            #[serde(default)]
            durable: bool,
            $($(#[$meta])* $field: $type,)*
        }

        impl RunOnceRequest {
            /// Splits it into a new session and the run.
            fn split(self) -> Result<(NewSession, RunRequest), Problem> {
                let new = SessionRequest::of(self.policy).new_session()?;
                let new = NewSession { policy: new.policy.ended_with_interpreter(), ..new };
                Ok((new, RunRequest { $($field: self.$field,)* }))
            }
        }
    };
}

run_requests! {
    code: String,
    /// Variables to set before the run.
    #[serde(default)]
    #[schema(value_type = Object)]
    inputs: Value,
    /// The time limit of the run, in seconds.
    #[serde(default)]
    timeout: Option<f64>,
    /// Standard input.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    stdin: Option<Input>,
    /// `sys.argv` after the program's name.
    #[serde(default)]
    argv: Option<Vec<String>>,
    /// The file name in tracebacks.
    #[serde(default)]
    name: Option<String>,
    /// As `python FILE` runs it, without a value of the last expression; at its end its variables
    /// are deleted.
    #[serde(default)]
    program: bool,
    /// The working directory. Later runs keep it; a program of the shell has it for itself.
    working_directory: Option<String>,
    /// A program's variables stay in the session.
    #[serde(default)]
    keep_variables: bool,
    /// A `return` at the top level ends the code, with its value.
    #[serde(default)]
    allow_return: bool,
    /// How the code is read: `python`, `command` as by `python -c`, `ipython`, with its commands,
    /// or `shell`, as by bash.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    syntax: Option<Syntax>,
    /// Displays of pandas' tables also have their data, by column.
    #[serde(default)]
    table_data: bool,
    /// Displays of charts of plotly and altair also have a picture.
    #[serde(default)]
    chart_pictures: bool,
}

impl RunRequest {
    pub(super) fn new_run(self, stream: bool) -> Result<Run, Problem> {
        let Self {
            code,
            inputs,
            timeout,
            stdin,
            argv,
            name,
            working_directory,
            program,
            keep_variables,
            allow_return,
            syntax,
            table_data,
            chart_pictures,
        } = self;
        let options = RunOptions {
            timeout,
            stream,
            stdin,
            argv,
            name,
            working_directory,
            program,
            keep_variables,
            allow_return,
            table_data,
            chart_pictures,
            syntax: syntax.unwrap_or_default(),
        };
        Ok(Run { code, inputs: variables(inputs)?, options, input: None })
    }
}

/// Runs code in a session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/runs",
    params(SessionPath),
    request_body = RunRequest,
    responses(
        (
            status = 200,
            description = "The execution, or its events as they occur",
            content((openapi::Execution), (String = "application/x-ndjson")),
            headers(("Isolet-Run" = u64, description = "The run's number in a durable session")),
        ),
        Refusals,
    ),
)]
async fn run_code(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    let session = node.find(&credentials, &id)?;
    let is_streamed = accepts_events(&headers);
    if session.session().is_durable() {
        let run = request.new_run(true)?;
        let run = node.start_run(session, run).await?;
        return if is_streamed {
            Ok(streamed(node, run.read(Cursor::default())))
        } else {
            ended(&node, &run, run.ended().await)
        };
    }
    if !is_streamed {
        let execution = node.run(&session, request.new_run(false)?).await?;
        let execution = fit(&node, &session, execution);
        return Ok(ApiResponse(StatusCode::OK, execution).into_response());
    }
    // A second lease for the stream of events.
    let same = node.find(&credentials, &id)?;
    let streamed = node.stream(session, request.new_run(true)?).await?;
    let mut response = Response::new(Body::from_stream(lines(node, same, streamed)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    // The guest waits for a client that does not read.
    response.extensions_mut().insert(Patient);
    Ok(response)
}

/// Returns `true` if a client asks for events.
fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains(EVENTS))
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the query")]
struct After {
    /// The `cursor` of the last line that the client has seen.
    after: Option<String>,
}

/// Reads the cursor of a query; without one, all events are unseen.
fn after(query: Option<&str>) -> Result<Cursor, Problem> {
    let mut after = Cursor::default();
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if name != "after" {
            return Err(Problem::unreadable(format!(
                "there is no parameter `{name}`, but `after`"
            )));
        }
        after = value.parse()?;
    }
    Ok(after)
}

/// Returns the last run of a durable session: its execution, or its events.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/runs/{run}",
    params(RunPath, After),
    responses(
        (
            status = 200,
            description = "The execution, or the events after the cursor, as they occur",
            content((openapi::Execution), (String = "application/x-ndjson")),
            headers(("Isolet-Run" = u64, description = "The run's number")),
        ),
        (status = 202, description = "The run is under way", body = openapi::RunUnderWay),
        Refusals,
    ),
)]
async fn get_run(
    State(node): Served,
    credentials: Credentials,
    PathParam(RunPath { id, run }): PathParam<RunPath>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = node.find_run(&credentials, &id, run).await?;
    if accepts_events(&headers) {
        return Ok(streamed(node, run.read(after(query.as_deref())?)));
    }
    if let Ok(end) = tokio::time::timeout(node.queue_time(), run.ended()).await {
        return ended(&node, &run, end);
    }
    let answer = openapi::RunUnderWay { run: run.number() };
    Ok(numbered(run.number(), ApiResponse(StatusCode::ACCEPTED, answer).into_response()))
}

/// Answers with the execution of a durable run.
fn ended(node: &Node, run: &DurableRun, end: RunEnd) -> Result<Response, Problem> {
    let execution = fit_for(node, run.max_value(), end.execution()?);
    Ok(numbered(run.number(), ApiResponse(StatusCode::OK, execution).into_response()))
}

fn numbered(run: u64, mut response: Response) -> Response {
    response.headers_mut().insert(RUN, HeaderValue::from(run));
    response
}

/// Answers with the events of a durable run that a reader has not seen.
fn streamed(node: Arc<Node>, reader: Reader) -> Response {
    let (run, max_value) = (reader.run().number(), reader.run().max_value());
    let lines = stream::unfold((node, reader), move |(node, mut reader)| async move {
        let (told, cursor) = reader.next().await?;
        let event = match told {
            Told::Event(event) => EventMessage::from(event),
            Told::Dropped => EventMessage::Dropped,
            Told::End(end) => match end.execution() {
                Ok(execution) => {
                    let execution = fit_for(&node, max_value, execution);
                    EventMessage::End { execution: Box::new(execution) }
                }
                Err(refusal) => EventMessage::Error { problem: Problem::from(refusal).to_body() },
            },
        };
        let line = line(DurableLine { run, cursor: cursor.to_string(), event });
        Some((Ok::<_, Infallible>(Bytes::from(line)), (node, reader)))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    // The client may take its time: the run does not wait for it.
    response.extensions_mut().insert(Patient);
    numbered(run, response)
}

/// A line of a durable run.
#[derive(Serialize)]
struct DurableLine {
    #[serde(flatten)]
    event: EventMessage,
    run: u64,
    /// What a client has seen with this line.
    cursor: String,
}

/// The lines of a streamed run. The last one has the result.
fn lines(
    node: Arc<Node>,
    session: SessionLease,
    streamed: Streamed,
) -> impl stream::Stream<Item = Result<Bytes, Infallible>> {
    streamed.items().map(move |item| {
        Ok(match item {
            StreamItem::Event(event) => line(EventMessage::from(event)).into(),
            StreamItem::End(Ok(execution)) => {
                let execution = Box::new(fit(&node, &session, *execution));
                line(EventMessage::End { execution }).into()
            }
            StreamItem::End(Err(refusal)) => {
                line(EventMessage::Error { problem: Problem::from(refusal).to_body() }).into()
            }
        })
    })
}

/// The events of a run, and its end, as clients get them.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum EventMessage {
    Stdout {
        text: String,
    },
    Stderr {
        text: String,
    },
    Display {
        display: Display,
    },
    ToolCall {
        call_id: u64,
        name: String,
        arguments: Plain,
    },
    ToolCancelled {
        call_id: u64,
    },
    /// Events of a durable run that are not kept any more, up to the cursor.
    Dropped,
    End {
        execution: Box<Execution>,
    },
    Error {
        problem: openapi::Problem,
    },
}

impl From<Event> for EventMessage {
    fn from(event: Event) -> Self {
        match event {
            Event::Output(Stream::Stderr, text) => Self::Stderr { text },
            Event::Output(_, text) => Self::Stdout { text },
            Event::Display(display) => Self::Display { display },
            Event::Call { call, tool, arguments } => {
                Self::ToolCall { call_id: call, name: tool, arguments: Plain(arguments) }
            }
            Event::Uncall(call_id) => Self::ToolCancelled { call_id },
        }
    }
}

/// The value that a tool has returned, or the exception that it has raised.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolResult {
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    value: Value,
    #[serde(default)]
    error: Option<ToolException>,
}

/// Combines a value and an exception into the answer of a tool call.
pub(super) fn answer_of(value: Value, error: Option<ToolException>) -> Answer {
    match error {
        Some(failure) => Err(failure.error()),
        None => Ok(value),
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolException {
    #[serde(rename = "type", default = "runtime_error")]
    type_name: String,
    message: String,
    /// Its base classes from Python's standard library, the nearest first.
    #[serde(default)]
    bases: Vec<String>,
    /// The exceptions in an exception group.
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

/// Answers a tool call.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/calls/{call}",
    params(CallPath),
    request_body = ToolResult,
    responses((status = 204, description = "The call was answered"), Refusals),
)]
async fn answer_tool_call(
    State(node): Served,
    credentials: Credentials,
    PathParam(CallPath { id, call }): PathParam<CallPath>,
    JsonBody(ToolResult { value, error }): JsonBody<ToolResult>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    if node.answer_call(&session, call, answer_of(value, error))? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("nobody waits for an answer to the call {call}")))
    }
}

impl RunOnceRequest {
    /// Runs code in a new session, waiting for a slot for at most `patience`.
    pub(super) async fn run(
        self,
        node: &Arc<Node>,
        tenant: &Arc<Tenant>,
        patience: Duration,
    ) -> Result<Execution, Problem> {
        if self.durable {
            let message = "a run of a batch cannot be durable: it ends with its request";
            return Err(Refusal::Failure(Failure::config(message)).into());
        }
        let (new, request) = self.split()?;
        let run = request.new_run(false)?;
        let session = node.create_own(tenant, new, patience).await?;
        let ran = node.run(session.used(), run).await;
        let ran = ran.map(|execution| fit(node, session.used(), execution));
        session.end().await;
        Ok(ran?)
    }

    /// Starts a durable run in a new session, and answers with its address.
    async fn begin(self, node: &Arc<Node>, tenant: &Arc<Tenant>) -> Result<Response, Problem> {
        let (new, request) = self.split()?;
        let (session, run) = node.start_one_run(tenant, new, request.new_run(true)?).await?;
        let path = format!("/v1/sessions/{session}/runs/{}", run.number());
        let answer = openapi::BegunRun { token: node.token(&session), session, run: run.number() };
        let answer = ApiResponse(StatusCode::ACCEPTED, answer);
        Ok(numbered(run.number(), ([(LOCATION, path)], answer).into_response()))
    }
}

/// Runs code in a session of its own.
#[utoipa::path(
    post,
    path = "/v1/run",
    request_body = RunOnceRequest,
    responses(
        (status = 200, description = "The execution", body = openapi::Execution),
        (
            status = 202,
            description = "The durable run has begun",
            body = openapi::BegunRun,
            headers(("Location" = String, description = "The run's path")),
        ),
        Refusals,
    ),
)]
async fn run_code_once(
    State(node): Served,
    credentials: Credentials,
    JsonBody(request): JsonBody<RunOnceRequest>,
) -> Result<Response, Problem> {
    let tenant = node.tenant(&credentials)?;
    if request.durable {
        return request.begin(&node, &tenant).await;
    }
    let execution = request.run(&node, &tenant, Duration::ZERO).await?;
    Ok(ApiResponse(StatusCode::OK, execution).into_response())
}
