//! The routes of `SandboxFusion`: programs and notebooks, each in its own session. Clients, such as
//! verl's reward functions, treat every status but 200 as a failure of the sandbox, so failing code
//! still has status 200.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::{MimeData, Syntax, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Value as AnyJson, json};

use super::answers::check_length;
use super::body::{DialectJson, JsonBody, in_turn};
use super::exits::Shown;
use super::lenient;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::core::{
    Command, Execution, Input, Policy, Run, RunOptions, Status, TerminationKind,
};
use isolet_service::node::{
    ImplicitGrants, MOST_SECONDS, NewSession, Node, OwnSession, Refusal, SessionLease,
};

/// How long a request waits for a slot. Clients wait for the program's timeout and 10 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// The guest's working directory, to which files are relative.
const HOME: &str = "/home/user";

/// The minimum memory of a session, in MiB.
const LEAST_MEGABYTES: i64 = 64;

/// The numeric fields of requests.
const NUMBERS: [&str; 4] = ["run_timeout", "memory_limit_MB", "cell_timeout", "total_timeout"];

/// The exit status of a killed process in a shell.
const KILLED: i64 = 137;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/run_code", post(run_code))
        .route("/run_jupyter", post(run_jupyter))
        .route("/v1/ping", get(async || DialectJson("pong".into())))
}

#[derive(Deserialize)]
pub(super) struct RunCodeRequest {
    code: String,
    language: String,
    #[serde(default)]
    stdin: Option<String>,
    #[serde(default = "ten_seconds")]
    run_timeout: f64,
    #[serde(default, rename = "memory_limit_MB")]
    memory_limit_mb: Option<i64>,
    #[serde(default)]
    files: BTreeMap<String, Option<String>>,
    #[serde(default)]
    fetch_files: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct RunJupyterRequest {
    cells: Vec<String>,
    #[serde(default)]
    cell_timeout: f64,
    #[serde(default = "most_seconds")]
    total_timeout: f64,
    #[serde(default)]
    kernel: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, Option<String>>,
    #[serde(default)]
    fetch_files: Vec<String>,
}

fn ten_seconds() -> f64 {
    10.0
}

fn most_seconds() -> f64 {
    45.0
}

/// The result of a program.
#[derive(Serialize)]
struct CommandResult {
    status: &'static str,
    execution_time: f64,
    return_code: Option<i64>,
    stdout: String,
    stderr: String,
}

async fn run_code(
    State(node): Served,
    credentials: Credentials,
    JsonBody(body): JsonBody<Value>,
) -> Result<DialectJson, Problem> {
    let program: RunCodeRequest = lenient::read(body, &NUMBERS)?;
    if !matches!(program.language.as_str(), "python" | "python3") {
        let language = &program.language;
        return Err(Problem::unsupported(format!(
            "the language is {language:?}, and has to be python"
        )));
    }
    let memory = program.memory_limit_mb.filter(|limit| *limit > 0);
    let session = match start(&node, &credentials, program.run_timeout, memory).await {
        Ok(session) => session,
        Err(refusal) => return failed(refusal),
    };
    let ran = async {
        put(&node, session.used(), &program.files).await?;
        let options = RunOptions {
            timeout: Some(program.run_timeout),
            stdin: Some(Input::Text(program.stdin.unwrap_or_default())),
            program: true,
            ..RunOptions::default()
        };
        let run = Run { code: program.code, inputs: Vec::new(), options, input: None };
        let result = CommandResult::of(&node.run(session.used(), run).await?);
        let files = fetch(&node, session.used(), &program.fetch_files).await?;
        Ok::<_, Refusal>((result, files))
    };
    let ran = ran.await;
    session.end().await;
    let (result, files) = match ran {
        Ok(ran) => ran,
        Err(refusal) => return failed(refusal),
    };
    Ok(DialectJson(json!({
        "status": if result.has_succeeded() { "Success" } else { "Failed" },
        "message": "",
        "compile_result": null,
        "run_result": result,
        "executor_pod_name": node.name(),
        "files": files,
    })))
}

async fn run_jupyter(
    State(node): Served,
    credentials: Credentials,
    JsonBody(body): JsonBody<Value>,
) -> Result<DialectJson, Problem> {
    let notebook: RunJupyterRequest = lenient::read(body, &NUMBERS)?;
    if let Some(kernel) = notebook.kernel.as_deref().filter(|kernel| *kernel != "python3") {
        return Err(Problem::unsupported(format!(
            "the kernel is {kernel:?}, and has to be python3"
        )));
    }
    let session = match start(&node, &credentials, notebook.total_timeout, None).await {
        Ok(session) => session,
        Err(refusal) => return failed(refusal),
    };
    let ran = async {
        put(&node, session.used(), &notebook.files).await?;
        let started = Instant::now();
        let (mut cells, mut driver, mut length) = (Vec::new(), CommandResult::finished(), 0);
        for code in &notebook.cells {
            let left = notebook.total_timeout - started.elapsed().as_secs_f64();
            let time = match notebook.cell_timeout {
                limit if limit > 0.0 => left.min(limit),
                _ => left,
            };
            let options = RunOptions {
                timeout: Some(time.max(0.0)),
                syntax: Syntax::Ipython,
                ..RunOptions::default()
            };
            let run = Run { code: code.clone(), inputs: Vec::new(), options, input: None };
            let execution = node.run(session.used(), run).await?;
            let shown = cell(&execution);
            length += shown.to_string().len() as u64;
            check_length(&node, length)?;
            cells.push(shown);
            let result = CommandResult::of(&execution);
            if execution.session_ended || result.return_code.is_none() {
                driver = CommandResult { stdout: String::new(), ..result };
                break;
            }
        }
        driver.execution_time = started.elapsed().as_secs_f64();
        // The files of a session that has ended are lost.
        let files = match driver.return_code {
            Some(0) => fetch(&node, session.used(), &notebook.fetch_files).await?,
            _ => BTreeMap::new(),
        };
        Ok::<_, Refusal>((cells, driver, files))
    };
    let ran = ran.await;
    session.end().await;
    let (cells, driver, files) = match ran {
        Ok(ran) => ran,
        Err(refusal) => return failed(refusal),
    };
    Ok(DialectJson(json!({
        "status": if driver.has_succeeded() { "Success" } else { "Failed" },
        "message": "",
        "driver": driver,
        "cells": cells,
        "executor_pod_name": node.name(),
        "files": files,
    })))
}

async fn start(
    node: &Arc<Node>,
    credentials: &Credentials,
    seconds: f64,
    megabytes: Option<i64>,
) -> Result<OwnSession, Refusal> {
    let tenant = node.tenant(credentials)?;
    let bytes = megabytes.map(|megabytes| {
        u64::try_from(megabytes.max(LEAST_MEGABYTES)).unwrap_or_default().saturating_mul(1 << 20)
    });
    let new = NewSession {
        policy: Policy::of_limits(Some(seconds), bytes).ended_with_interpreter(),
        grants: ImplicitGrants { most_run_time: Some(MOST_SECONDS), ..ImplicitGrants::default() },
        ..NewSession::default()
    };
    node.create_own(&tenant, new, PATIENCE).await
}

/// Converts a refusal. Clients retry after 504 only, or after any error.
fn failed(refusal: Refusal) -> Result<DialectJson, Problem> {
    match refusal {
        Refusal::Full(_)
        | Refusal::Quota(_)
        | Refusal::Waited(..)
        | Refusal::Unlogged(_)
        | Refusal::Draining => Err(Problem::from(refusal).with_status(StatusCode::GATEWAY_TIMEOUT)),
        other => Err(other.into()),
    }
}

async fn put(
    node: &Node,
    session: &SessionLease,
    files: &BTreeMap<String, Option<String>>,
) -> Result<(), Refusal> {
    for (path, contents) in files {
        let Some(contents) = contents else { continue };
        let decoded = in_turn(contents.len(), || STANDARD.decode(contents)).await;
        let contents = decoded.map_err(|error| {
            Refusal::Unreadable(format!("the file `{path}` is no base64: {error}"))
        })?;
        let path = place(path);
        node.carry_out(session, |reply| Command::PutFile { path, contents, reply }).await?;
    }
    Ok(())
}

/// Returns the existing files, in base64.
async fn fetch(
    node: &Node,
    session: &SessionLease,
    paths: &[String],
) -> Result<BTreeMap<String, String>, Refusal> {
    let (mut files, mut length) = (BTreeMap::new(), 0);
    for path in paths {
        let get = |reply| Command::GetFile { path: place(path), reply };
        if let Some(bytes) = node.carry_out(session, get).await? {
            length += bytes.len().div_ceil(3) as u64 * 4;
            check_length(node, length)?;
            files.insert(path.clone(), STANDARD.encode(bytes));
        }
    }
    Ok(files)
}

fn place(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{HOME}/{path}") }
}

impl CommandResult {
    fn finished() -> Self {
        let (stdout, stderr) = (String::new(), String::new());
        Self { status: "Finished", execution_time: 0.0, return_code: Some(0), stdout, stderr }
    }

    fn has_succeeded(&self) -> bool {
        self.status == "Finished" && self.return_code == Some(0)
    }

    /// Converts an execution to a process's result.
    fn of(execution: &Execution) -> Self {
        let (mut status, mut stderr) = ("Finished", execution.stderr.clone());
        let return_code = match execution.status {
            Status::Completed | Status::Submitted => Some(0),
            Status::Raised => {
                let traceback = execution.exception.as_ref().map(|its| its.traceback.as_str());
                stderr += traceback.unwrap_or_default();
                Some(1)
            }
            Status::Exited => execution.exit_code.map(i64::from),
            Status::Terminated => {
                let ended = execution.termination.as_ref();
                stderr += ended.map(|its| its.message.as_str()).unwrap_or_default();
                stderr.push('\n');
                if ended.is_some_and(|its| its.kind == TerminationKind::Timeout) {
                    status = "TimeLimitExceeded";
                    None
                } else {
                    Some(KILLED)
                }
            }
        };
        let execution_time = execution.usage.wall_time.as_secs_f64();
        let stdout = execution.stdout.clone();
        Self { status, execution_time, return_code, stdout, stderr }
    }
}

/// Returns the outputs of a notebook's cell.
fn cell(execution: &Execution) -> AnyJson {
    let mut display = Vec::new();
    for shown in &execution.displays {
        let formats = shown.formats().map(|(kind, data)| {
            let data = match data {
                MimeData::Bytes(bytes) => STANDARD.encode(bytes),
                data => data.as_str().unwrap_or_default().to_owned(),
            };
            (kind.to_owned(), AnyJson::from(data))
        });
        display.push(AnyJson::Object(formats.collect()));
    }
    let repr = execution.repr();
    if display.is_empty() && !repr.is_empty() && repr != "None" {
        display.push(json!({"text/plain": repr}));
    }
    let mut error = Vec::new();
    if let Some(exception) = &execution.exception {
        error.push(json!({
            "ename": exception.bare_name(),
            "evalue": exception.message,
            "traceback": exception.traceback.lines().collect::<Vec<_>>(),
        }));
    } else if let Some(termination) = &execution.termination {
        let (kind, message) = (termination.kind, &termination.message);
        error.push(json!({"ename": kind, "evalue": message, "traceback": [message]}));
    } else if let Some(exit) = Shown::of(execution) {
        let line = exit.line();
        error.push(json!({"ename": exit.name, "evalue": exit.message, "traceback": [line]}));
    }
    json!({
        "stdout": execution.stdout,
        "stderr": execution.stderr,
        "display": display,
        "error": error,
    })
}
