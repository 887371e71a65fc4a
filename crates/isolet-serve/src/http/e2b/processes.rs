//! A sandbox's processes in Connect's protocol: commands of its shell.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, stream};
use isolet::Stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as AnyJson, json};
use tokio::sync::mpsc::Receiver;

use super::connect::{END, MESSAGE, RpcError, STREAM, answered, frame, streamed};
use super::{Failed, Reached, text};
use crate::http::body::{DialectJson, RawBody, count_values, in_turn};
use crate::http::problem::Problem;
use isolet_service::node::{
    CommandEnd, CommandEvent, CommandLine, Node, Refusal, RunningCommand, SessionLease,
};
use isolet_support::http_server::Patient;

/// The status of a command that was ended, as the clients' service has it.
const ENDED: i32 = -1;

const NO_TERMINALS: &str = "a sandbox of isolet has no terminals; run a command";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/process.Process/{method}", post(answer))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct StartRequest {
    process: ProcessConfig,
    #[serde(default)]
    pty: Option<AnyJson>,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    stdin: Option<bool>,
}

#[derive(Deserialize)]
pub(in crate::http) struct ProcessConfig {
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    envs: BTreeMap<String, String>,
    #[serde(default)]
    cwd: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::http) struct SelectRequest {
    process: ProcessSelector,
    #[serde(default)]
    input: ProcessInput,
    #[serde(default)]
    signal: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::http) struct ProcessSelector {
    #[serde(default)]
    pid: Option<u32>,
    #[serde(default)]
    tag: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct ProcessInput {
    stdin: Option<String>,
}

async fn answer(
    State(node): Served,
    reached: Reached,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Result<RawBody, Problem>,
) -> Response {
    let call = async |body: &[u8]| call(&node, &reached, &method, &headers, body).await;
    answered(&headers, body, call).await
}

async fn call(
    node: &Arc<Node>,
    reached: &Reached,
    method: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Result<Response, RpcError>, Failed> {
    let kind = text(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    let message = match (method, kind.as_str()) {
        ("Start" | "Connect", STREAM) => match only_message(body) {
            Some(message) => message,
            None => return Ok(Err(invalid("the body is no message of a stream"))),
        },
        ("List" | "SendInput" | "CloseStdin" | "SendSignal", kind) if kind.starts_with(MESSAGE) => {
            body
        }
        ("Update", _) => return Ok(Err(RpcError::unimplemented(NO_TERMINALS))),
        ("Start" | "Connect" | "List" | "SendInput" | "CloseStdin" | "SendSignal", _) => {
            let text = "this service is spoken to in JSON only";
            return Ok(Err(RpcError::unimplemented(text)));
        }
        (method, _) => {
            let text = format!("processes have no method `{}`", method.escape_debug());
            return Ok(Err(RpcError::unimplemented(&text)));
        }
    };
    let session = reached.find(node).await?;
    let same = reached.find(node).await?;
    if method == "List" {
        let all = session.session().commands().all();
        let shown: Vec<_> = all.iter().map(|command| process(command)).collect();
        return Ok(Ok(DialectJson(json!({"processes": shown})).into_response()));
    }
    if method == "Start" {
        let asked: StartRequest = match read(message).await? {
            Ok(asked) => asked,
            Err(error) => return Ok(Err(error)),
        };
        return Ok(start(node, [session, same], asked));
    }
    let asked: SelectRequest = match read(message).await? {
        Ok(asked) => asked,
        Err(error) => return Ok(Err(error)),
    };
    let Some(command) = selected(&session, &asked.process) else {
        let text = "there is no such process".to_owned();
        return Ok(Err(RpcError("not_found", text)));
    };
    Ok(match method {
        "Connect" => match command.listen() {
            Ok(heard) => Ok(events(command.number, heard)),
            Err(refusal) => Err(exhausted(refusal)),
        },
        "SendInput" => input(&command, asked.input.stdin.as_deref()),
        "CloseStdin" => {
            command.close_input();
            Ok(DialectJson(json!({})).into_response())
        }
        _ => signal(&command, asked.signal.as_deref()),
    })
}

/// Reads a message of a service.
async fn read<T: DeserializeOwned + Send + 'static>(
    message: &[u8],
) -> Result<Result<T, RpcError>, Failed> {
    let decode = || count_values("the message", message).map(|_| serde_json::from_slice(message));
    let read = in_turn(message.len(), decode).await.map_err(Failed)?;
    Ok(read.map_err(|error: serde_json::Error| invalid(&error.to_string())))
}

/// Returns the message of a stream that has one.
fn only_message(body: &[u8]) -> Option<&[u8]> {
    let (head, message) = body.split_first_chunk::<5>()?;
    let [flag, length @ ..] = head;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    (*flag == 0 && length == message.len()).then_some(message)
}

fn exhausted(refusal: Refusal) -> RpcError {
    RpcError("resource_exhausted", Problem::from(refusal).text())
}

fn invalid(text: &str) -> RpcError {
    RpcError("invalid_argument", text.to_owned())
}

fn selected(session: &SessionLease, selector: &ProcessSelector) -> Option<Arc<RunningCommand>> {
    let commands = session.session().commands();
    match (selector.pid, &selector.tag) {
        (Some(pid), _) => commands.get(pid),
        (None, Some(tag)) => commands.tagged(tag),
        (None, None) => None,
    }
}

fn start(
    node: &Arc<Node>,
    sessions: [SessionLease; 2],
    asked: StartRequest,
) -> Result<Response, RpcError> {
    if asked.pty.is_some() {
        return Err(RpcError::unimplemented(NO_TERMINALS));
    }
    let ProcessConfig { cmd, args, envs, cwd } = asked.process;
    let (script, argv) = script(cmd, args);
    let line = CommandLine {
        script,
        argv,
        environ: envs.into_iter().collect(),
        directory: cwd.filter(|directory| !directory.is_empty()),
        has_input: asked.stdin.unwrap_or(true),
        tag: asked.tag,
        timeout: None,
    };
    let (command, heard) = node.start_command(sessions, line).map_err(exhausted)?;
    Ok(events(command.number, heard))
}

/// Returns the script of a program with its arguments, and `$0`, `$1` and so on.
fn script(program: String, arguments: Vec<String>) -> (String, Vec<String>) {
    let name = program.rsplit('/').next().unwrap_or_default();
    if matches!(name, "sh" | "bash") {
        // Clients send `/bin/bash -l -c COMMAND`.
        let options = arguments.iter().take_while(|word| word.starts_with('-')).count();
        let has_script = arguments[..options].iter().any(|word| word.ends_with('c'));
        if let Some(script) = arguments.get(options).filter(|_| has_script) {
            let rest = arguments.get(options + 1..).unwrap_or_default().to_vec();
            return (script.clone(), if rest.is_empty() { vec![program] } else { rest });
        }
    }
    let argv = ["bash".to_owned(), program].into_iter().chain(arguments);
    ("\"$@\"".to_owned(), argv.collect())
}

fn input(command: &RunningCommand, data: Option<&str>) -> Result<Response, RpcError> {
    let Some(data) = data else { return Err(RpcError::unimplemented(NO_TERMINALS)) };
    let bytes = STANDARD.decode(data).map_err(|error| invalid(&error.to_string()))?;
    if !command.write(&bytes) {
        let text = "the process takes no input, or has not read 1 MiB of it".to_owned();
        return Err(RpcError("failed_precondition", text));
    }
    Ok(DialectJson(json!({})).into_response())
}

fn signal(command: &RunningCommand, signal: Option<&str>) -> Result<Response, RpcError> {
    match signal {
        Some("SIGNAL_SIGKILL" | "SIGNAL_SIGTERM") => {
            command.kill();
            Ok(DialectJson(json!({})).into_response())
        }
        other => {
            let text = format!("no signal `{}`", other.unwrap_or_default().escape_debug());
            Err(invalid(&text))
        }
    }
}

fn process(command: &RunningCommand) -> AnyJson {
    let CommandLine { script, environ, directory, tag, .. } = &command.line;
    let environ: serde_json::Map<_, _> =
        environ.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let mut config = json!({"cmd": "/bin/bash", "args": ["-l", "-c", script], "envs": environ});
    if let Some(directory) = directory {
        config["cwd"] = directory.as_str().into();
    }
    let mut shown = json!({"pid": command.number, "config": config});
    if let Some(tag) = tag {
        shown["tag"] = tag.as_str().into();
    }
    shown
}

/// Answers with the events of a command, from its start on.
fn events(number: u32, heard: Receiver<CommandEvent>) -> Response {
    let start = frame(0, &json!({"event": {"start": {"pid": number}}}));
    let told = stream::unfold(heard, async |mut heard| {
        let event = heard.recv().await?;
        Some((framed(event), heard))
    });
    let frames = stream::iter([start]).chain(told);
    let frames = frames.map(|frame| Ok::<_, Infallible>(Bytes::from(frame)));
    let mut response = streamed(Body::from_stream(frames));
    // The guest waits for a client that does not read.
    response.extensions_mut().insert(Patient);
    response
}

fn framed(event: CommandEvent) -> Vec<u8> {
    match event {
        CommandEvent::Output(stream, text) => {
            let name = if stream == Stream::Stderr { "stderr" } else { "stdout" };
            frame(0, &json!({"event": {"data": {name: STANDARD.encode(text)}}}))
        }
        CommandEvent::End(end) => [frame(0, &ended(&end)), frame(END, &json!({}))].concat(),
    }
}

fn ended(end: &CommandEnd) -> AnyJson {
    let (status, reason) = match end {
        CommandEnd::Exited(status) => {
            let text = format!("exit status {status}");
            let mut end = json!({"exitCode": status, "exited": true, "status": text});
            if *status != 0 {
                end["error"] = text.into();
            }
            return json!({"event": {"end": end}});
        }
        CommandEnd::Killed => ("signal: killed", "signal: killed".to_owned()),
        CommandEnd::SessionEnded => ("signal: killed", "the sandbox has ended".to_owned()),
        CommandEnd::Terminated(reason) => ("signal: killed", reason.clone()),
        CommandEnd::Refused(problem) => ("not started", problem.clone()),
    };
    let end = json!({"exitCode": ENDED, "exited": false, "status": status, "error": reason});
    json!({"event": {"end": end}})
}
