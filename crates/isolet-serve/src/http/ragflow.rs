//! The routes of `RAGFlow`'s executor manager: a function `main` that is called with arguments, in
//! its own session. Clients take every status but 200 for a failure of the sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::Value;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::answers::check_length;
use super::body::{DialectJson, JsonBody, in_turn};
use super::dify::{failure, is_full};
use super::lenient;
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::core::{Command, Execution, Policy, Run, RunOptions, TerminationKind};
use isolet_service::node::{ImplicitGrants, NewSession, Node, Refusal, SessionLease};

/// How long a request waits for a slot. Clients wait for 30 s or longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file of the client's code.
const MAIN: &str = "/home/user/main.py";

/// Calls the client's function. What it returns is what JSON makes of it.
const CALL: &str = "\
import json, os
os.makedirs('artifacts', exist_ok=True)
from main import main
json.loads(json.dumps(main(**arguments)))";

/// The directory of files that clients get, beside those in [`HOME`].
const ARTIFACTS: &str = "/home/user/artifacts/";
const HOME: &str = "/home/user/";

/// The types of such files, by the ends of their names.
const TYPES: [(&str, &str); 8] = [
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".svg", "image/svg+xml"),
    (".pdf", "application/pdf"),
    (".csv", "text/csv"),
    (".json", "application/json"),
    (".html", "text/html"),
];

/// How many such files clients get, and of how many bytes at most.
const MOST_FILES: usize = 10;
const MOST_BYTES: u64 = 10 << 20;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/run", post(run))
        .route("/healthz", get(async || DialectJson(json!({"status": "ok"}))))
}

#[derive(Deserialize)]
pub(super) struct RunRequest {
    code_b64: String,
    #[serde(default = "python")]
    language: String,
    #[serde(default)]
    arguments: BTreeMap<String, Value>,
}

fn python() -> String {
    "python".to_owned()
}

async fn run(
    State(node): Served,
    credentials: Credentials,
    JsonBody(body): JsonBody<Value>,
) -> Result<DialectJson, Response> {
    let request: RunRequest = match lenient::read(body, &[]) {
        Ok(request) => request,
        Err(problem) => return Ok(DialectJson(refused(&problem.text(), -3, "invalid_request"))),
    };
    match execute(&node, &credentials, request).await {
        Ok(result) => Ok(DialectJson(result)),
        Err(refusal @ Refusal::Key) => {
            let problem = Problem::from(refusal);
            let body = refused(&problem.text(), -3, "unauthorized");
            Err(problem.answered_as(&body))
        }
        Err(refusal) => {
            let (code, detail) =
                if is_full(&refusal) { (-10, "no_available_container") } else { (-3, "refused") };
            Ok(DialectJson(refused(&Problem::from(refusal).text(), code, detail)))
        }
    }
}

/// Returns the answer of a node that has not run the code.
fn refused(reason: &str, code: i32, detail: &str) -> AnyJson {
    json!({
        "status": "program_runner_error",
        "stdout": "",
        "stderr": format!("{reason}\n"),
        "exit_code": code,
        "detail": detail,
    })
}

async fn execute(
    node: &Arc<Node>,
    credentials: &Credentials,
    request: RunRequest,
) -> Result<AnyJson, Refusal> {
    let tenant = node.tenant(credentials)?;
    let RunRequest { code_b64, language, arguments } = request;
    if !matches!(language.as_str(), "python" | "python3") {
        let text = format!("the language is {language:?}, and has to be python");
        return Err(Refusal::Unreadable(text));
    }
    let decoded = in_turn(code_b64.len(), || STANDARD.decode(&code_b64)).await;
    let contents = decoded
        .map_err(|error| Refusal::Unreadable(format!("`code_b64` is no base64: {error}")))?;
    let new = NewSession {
        policy: Policy::without_checkpoints(),
        grants: ImplicitGrants { packages: true, ..ImplicitGrants::default() },
        ..NewSession::default()
    };
    let session = node.create_own(&tenant, new, PATIENCE).await?;
    let ran = async {
        let path = MAIN.to_owned();
        let used = session.used();
        node.carry_out(used, |reply| Command::PutFile { path, contents, reply }).await?;
        let arguments = Value::dict(arguments);
        let inputs = vec![("arguments".to_owned(), arguments)];
        let run =
            Run { code: CALL.to_owned(), inputs, options: RunOptions::default(), input: None };
        let execution = node.run(used, run).await?;
        let artifacts = artifacts(node, used, &execution).await?;
        Ok::<_, Refusal>(result(execution, artifacts))
    };
    let ran = ran.await;
    session.end().await;
    ran
}

fn result(execution: Execution, artifacts: Vec<AnyJson>) -> AnyJson {
    let usage = &execution.usage;
    let mut answer = json!({
        "time_used_ms": usage.wall_time.as_secs_f64() * 1000.0,
        "memory_used_kb": usage.peak_memory_bytes >> 10,
    });
    let failure = failure(&execution).or_else(|| Some(format!("{}\n", execution.value_error?)));
    let Execution { stdout, stderr, value, termination, .. } = execution;
    let Some(failure) = failure else {
        answer["status"] = "success".into();
        answer["exit_code"] = 0.into();
        (answer["stdout"], answer["stderr"]) = (stdout.into(), stderr.into());
        answer["artifacts"] = artifacts.into();
        answer["result"] = json!({"present": true, "value": value, "type": "json"});
        return answer;
    };
    // Clients take what has output for a success.
    answer["stdout"] = "".into();
    answer["stderr"] = format!("{stdout}{stderr}{failure}").into();
    let (status, kind, reason, code) = match termination.map(|ended| ended.kind) {
        Some(TerminationKind::Timeout) => {
            ("resource_limit_exceeded", "resource_limit_type", "time", -124)
        }
        Some(TerminationKind::Memory) => {
            ("resource_limit_exceeded", "resource_limit_type", "memory", -137)
        }
        Some(TerminationKind::Limit) => {
            ("resource_limit_exceeded", "resource_limit_type", "output", -1)
        }
        Some(_) => ("runtime_error", "runtime_error_type", "signalled", -1),
        None => ("program_error", "runtime_error_type", "nonzero_exit", 1),
    };
    answer["status"] = status.into();
    answer[kind] = reason.into();
    answer["exit_code"] = code.into();
    answer
}

/// Returns the files that the run has made for the client.
async fn artifacts(
    node: &Node,
    session: &SessionLease,
    execution: &Execution,
) -> Result<Vec<AnyJson>, Refusal> {
    let (mut found, mut length) = (Vec::new(), 0);
    if execution.session_ended {
        return Ok(found);
    }
    for file in &execution.files {
        let path = file.path.as_str();
        let name = path.strip_prefix(ARTIFACTS).or_else(|| path.strip_prefix(HOME));
        let Some(name) = name.filter(|name| !name.starts_with('.') && !name.contains('/')) else {
            continue;
        };
        let lower = name.to_lowercase();
        let Some((_, kind)) = TYPES.iter().find(|(end, _)| lower.ends_with(end)) else { continue };
        if found.len() == MOST_FILES || !(1..=MOST_BYTES).contains(&file.size) {
            continue;
        }
        let get = |reply| Command::GetFile { path: path.to_owned(), reply };
        let Some(bytes) = node.carry_out(session, get).await? else { continue };
        length += bytes.len().div_ceil(3) as u64 * 4;
        check_length(node, length)?;
        found.push(json!({
            "name": name,
            "mime_type": kind,
            "size": bytes.len(),
            "content_b64": STANDARD.encode(bytes),
        }));
    }
    Ok(found)
}
