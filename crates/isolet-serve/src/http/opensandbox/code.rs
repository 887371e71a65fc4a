//! Code of a sandbox: cells of Python, with their contexts, and scripts of its shell.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, stream};
use isolet::{MimeData, Stream, Syntax, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value as AnyJson, json};

use super::{Failed, OpenSandboxBody, Sandbox, done, event, of_sandbox, streamed};
use crate::http::answers::{checked, fit};
use crate::http::body::DialectJson;
use crate::http::e2b::results;
use crate::http::problem::Problem;
use isolet_service::core::{Display, Execution, Run, RunOptions};
use isolet_service::node::{Context, Event, Node, Refusal, SessionLease, StreamItem};

/// The context of all scripts, which share a shell.
const SHELL: &str = "shell";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route(&of_sandbox("/ping"), get(ping))
        .route(&of_sandbox("/code"), post(run).delete(interrupt))
        .route(&of_sandbox("/code/context"), post(create_context))
        .route(&of_sandbox("/code/contexts"), get(list_contexts).delete(remove_contexts))
        .route(&of_sandbox("/code/contexts/{context}"), get(look_at_context).delete(remove_context))
}

#[derive(Deserialize)]
pub(in crate::http) struct CodeRequest {
    code: String,
    #[serde(default)]
    context: ContextRequest,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct ContextRequest {
    id: Option<String>,
    language: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Bash,
}

impl Language {
    fn read(name: Option<&str>) -> Result<Self, Failed> {
        match name {
            None | Some("" | "python") => Ok(Self::Python),
            Some("bash") => Ok(Self::Bash),
            Some(other) => Err(Failed::invalid(format!(
                "the language is {other:?}, and has to be `python` or `bash`: isolet runs no other"
            ))),
        }
    }
}

async fn ping(State(node): Served, sandbox: Sandbox) -> Result<DialectJson, Failed> {
    sandbox.find(&node)?;
    Ok(done())
}

async fn run(
    State(node): Served,
    sandbox: Sandbox,
    OpenSandboxBody(CodeRequest { code, context }): OpenSandboxBody<CodeRequest>,
) -> Result<Response, Failed> {
    let language = Language::read(context.language.as_deref())?;
    let id = context.id.filter(|id| !id.is_empty());
    let (syntax, id) = match language {
        Language::Python => (Syntax::Ipython, id),
        Language::Bash => (Syntax::Shell, None),
    };
    let [session, same] = [sandbox.find(&node)?, sandbox.find(&node)?];
    let turn = node.hold(&session).await?;
    let options = RunOptions { stream: true, syntax, ..RunOptions::default() };
    let run = Run { code, inputs: Vec::new(), options, input: None };
    let begun = Instant::now();
    let begun_run = node.stream_in(session, turn, id.as_deref(), Vec::new(), run).await;
    let (items, number) = begun_run?;
    let first = [event("init", json!({"text": number.to_string()}))];
    let events = items.items().flat_map(move |item| {
        stream::iter(match item {
            StreamItem::Event(told) => told_event(&node, &same, told).into_iter().collect(),
            StreamItem::End(ended) => last(&node, &same, ended, number, begun),
        })
    });
    Ok(streamed(stream::iter(first).chain(events)))
}

/// Returns the event for clients.
fn told_event(node: &Node, session: &SessionLease, told: Event) -> Option<AnyJson> {
    match told {
        Event::Output(Stream::Stderr, text) => Some(event("stderr", json!({"text": text}))),
        Event::Output(_, text) => Some(event("stdout", json!({"text": text}))),
        // The value comes at the end, with its text.
        Event::Display(display) if display.is_result => None,
        Event::Display(display) => Some(match checked(node, display) {
            Ok(display) => result(Some(&display), None),
            Err(problem) => {
                let text = format!("a display is left out: {}\n", problem.text());
                event("stderr", json!({"text": text}))
            }
        }),
        Event::Call { call, tool, .. } => {
            let text = format!("nobody answers `{tool}`: OpenSandbox's clients have no tools");
            node.answer(session, call, Err(ToolError::new("RuntimeError", text)));
            None
        }
        Event::Uncall(_) => None,
    }
}

/// Returns the last events of a run.
fn last(
    node: &Node,
    session: &SessionLease,
    ended: Result<Box<Execution>, Refusal>,
    number: u64,
    begun: Instant,
) -> Vec<AnyJson> {
    let mut events = vec![event("execution_count", json!({"execution_count": number}))];
    let error = match ended {
        Ok(execution) => {
            let execution = fit(node, session, *execution);
            if let Some(loss) = execution.loss() {
                events.push(event("stderr", json!({"text": format!("{loss}\n")})));
            }
            let shown = execution.displays.iter().find(|display| display.is_result);
            if shown.is_some() || execution.has_value() {
                events.push(result(shown, execution.repr.as_deref()));
            }
            results::error(&execution)
        }
        Err(refusal) => {
            let text = Problem::from(refusal).text();
            Some(results::failed("SandboxError", &text))
        }
    };
    events.push(match error {
        Some(error) => {
            let lines = error["traceback"].as_str().unwrap_or_default().lines();
            let traceback: Vec<_> = lines.collect();
            let error =
                json!({"ename": error["name"], "evalue": error["value"], "traceback": traceback});
            event("error", json!({"error": error}))
        }
        None => complete(begun),
    });
    events
}

/// The end of what has succeeded.
pub(super) fn complete(begun: Instant) -> AnyJson {
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    event("execution_complete", json!({"execution_time": milliseconds}))
}

/// A display, or a value with its text.
fn result(display: Option<&Display>, repr: Option<&str>) -> AnyJson {
    let mut formats = Map::new();
    for (format, data) in display.into_iter().flat_map(Display::formats) {
        let text = match data {
            MimeData::Bytes(bytes) => STANDARD.encode(bytes),
            data => data.as_str().unwrap_or_default().to_owned(),
        };
        formats.insert(format.to_owned(), text.into());
    }
    if let Some(text) = repr.map(AnyJson::from).or_else(|| formats.get("text/plain").cloned()) {
        formats.insert("text/plain".to_owned(), text.clone());
        // Where clients look for it.
        formats.insert("text".to_owned(), text);
    }
    event("result", json!({"results": formats}))
}

async fn interrupt(State(node): Served, sandbox: Sandbox) -> Result<DialectJson, Failed> {
    sandbox.find(&node)?.session().interrupt()?;
    Ok(done())
}

fn shown(context: &Context) -> AnyJson {
    json!({"id": context.id, "language": "python"})
}

fn of_shell() -> AnyJson {
    json!({"id": SHELL, "language": "bash"})
}

async fn create_context(
    State(node): Served,
    sandbox: Sandbox,
    OpenSandboxBody(wanted): OpenSandboxBody<ContextRequest>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    Ok(DialectJson(match Language::read(wanted.language.as_deref())? {
        Language::Python => shown(&node.add_context(&session, None).await?),
        Language::Bash => of_shell(),
    }))
}

/// Returns the language of a query.
fn language(query: Option<&str>) -> Result<Option<Language>, Failed> {
    let mut query = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let language = query.find(|(name, _)| name == "language").map(|(_, language)| language);
    language.map(|language| Language::read(Some(&language))).transpose()
}

async fn list_contexts(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    let mut contexts = Vec::new();
    let language = language(query.as_deref())?;
    if language != Some(Language::Bash) {
        contexts.extend(session.session().contexts().iter().map(shown));
    }
    if language != Some(Language::Python) {
        contexts.push(of_shell());
    }
    Ok(DialectJson(contexts.into()))
}

async fn look_at_context(
    State(node): Served,
    sandbox: Sandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    if id == SHELL {
        return Ok(DialectJson(of_shell()));
    }
    let contexts = session.session().contexts();
    let context = contexts.iter().find(|context| context.id == id);
    Ok(DialectJson(shown(context.ok_or(Refusal::NoContext(id))?)))
}

async fn remove_context(
    State(node): Served,
    sandbox: Sandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    node.remove_context(&session, &id).await?;
    Ok(done())
}

async fn remove_contexts(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    if language(query.as_deref())? != Some(Language::Bash) {
        for context in session.session().contexts() {
            node.remove_context(&session, &context.id).await?;
        }
    }
    Ok(done())
}
