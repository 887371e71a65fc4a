//! What a client of the node sends: bodies of all routes and dialects, lines of batches, messages
//! on WebSockets, forms, and credentials.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, Request};
use futures_util::FutureExt;
use isolet::Value;
use isolet::fuzzing::measured;
use isolet_service::core::{Policy, RunOptions};
use serde::de::DeserializeOwned;

use super::batch::{Arrived, split};
use super::body::{self, JsonBody};
use super::credentials::Credentials;
use super::e2b::{connect, contexts, control, execute, files, processes};
use super::openenv;
use super::opensandbox::{code, commands, lifecycle};
use super::problem::Problem;
use super::runs::{RunOnceRequest, RunRequest, ToolResult};
use super::saved::SnapshotRequest;
use super::sessions::{LifetimeRequest, SessionRequest, VariableRequest};
use super::sockets::Message;
use super::{dify, jupyter, lenient, librechat, nemo_skills, ragflow, sandbox_fusion};

/// How many times its length a body may take, and what it may take besides.
const FACTOR: usize = 400;
const FIXED: usize = 64 << 10;
/// The most that a refusal adds to what it repeats of a body, in bytes.
const REFUSAL_BYTES: usize = 1000;

/// Reads the bytes, by their first one, as a body, as a line of a batch, as a message, as a body of
/// another service, as lines that arrive in pieces, as a path, or as credentials. Memory is bounded
/// by the length; a refusal is a client's error and one text.
pub fn http_body(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 7 {
        0 => whole(data),
        1 => lines(data),
        2 => message(data),
        3 => dialects(data),
        4 => openenv(data),
        5 => path(data),
        _ => credentials(data),
    }
}

/// A body is read as the request of each route.
fn whole(data: &[u8]) {
    let (value, used) = measured(|| body::decode("the body", data));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let value = match value {
        Ok(value) => value,
        Err(problem) => return is_refusal(&problem, data.len()),
    };
    each::<SessionRequest>(&value, data.len());
    each::<RunRequest>(&value, data.len());
    each::<RunOnceRequest>(&value, data.len());
    each::<ToolResult>(&value, data.len());
    each::<VariableRequest>(&value, data.len());
    each::<LifetimeRequest>(&value, data.len());
    each::<SnapshotRequest>(&value, data.len());
    each::<control::SandboxRequest>(&value, data.len());
    each::<control::SandboxChange>(&value, data.len());
    each::<execute::CellRequest>(&value, data.len());
    each::<contexts::ContextRequest>(&value, data.len());
    each::<processes::StartRequest>(&value, data.len());
    each::<processes::SelectRequest>(&value, data.len());
    let failures = [Policy::read(value.clone()).err(), RunOptions::read(value).err()];
    for failure in failures.into_iter().flatten() {
        assert!(failure.message.contains(" is invalid: ") || failure.message.contains(" are "));
    }
}

fn each<T: DeserializeOwned + Send>(value: &Value, length: usize) {
    let copy = value.clone();
    let (read, used) = measured(|| JsonBody::<T>::of(copy));
    assert!(used.peak <= FACTOR * length + FIXED, "{length} bytes took {used:?}");
    if let Err(problem) = read {
        is_refusal(&problem, length);
    }
}

/// A refusal says that the client is wrong, and how.
fn is_refusal(problem: &Problem, length: usize) {
    assert!(problem.status().is_client_error(), "{problem:?}");
    let text = problem.text();
    assert!(!text.is_empty() && text.len() <= 8 * length + REFUSAL_BYTES, "{text:?}");
}

/// Lines are the same however they arrive, and each has an id and a request or a refusal.
fn lines(data: &[u8]) {
    let whole = arrived(data, data.len());
    for piece in [1, 3] {
        assert_eq!(arrived(data, piece), whole, "pieces of {piece} bytes");
    }
    assert_eq!(whole.concat(), data);
    for line in whole {
        let Ok(item) = body::decode("the line", &line) else { continue };
        let id = item.as_dict().and_then(|fields| {
            let mut fields = fields.iter();
            fields.find(|(name, _)| name.as_str() == Some("id")).map(|(_, id)| id.clone())
        });
        let (found, once) = split(item);
        assert_eq!(format!("{found:?}"), format!("{:?}", id.unwrap_or_default()));
        if let Err(problem) = once {
            is_refusal(&problem, line.len());
        }
    }
}

/// Returns the lines of a body that arrives in pieces, and the rest of it.
fn arrived(data: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let (mut arrived, mut lines) = (Arrived::default(), Vec::new());
    for chunk in data.chunks(piece.max(1)) {
        arrived.push(chunk);
        while let Some(line) = arrived.next_line() {
            assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            lines.push(line);
        }
    }
    lines.push(arrived.rest().to_vec());
    lines
}

/// A message has its kind, its id and its other fields; what is none is refused with its id.
fn message(data: &[u8]) {
    let (message, used) = measured(|| Message::decode(data));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    match message {
        Ok(message) => assert!(message.has_no_head()),
        Err((_, problem)) => is_refusal(&problem, data.len()),
    }
    let (request, used) = measured(|| jupyter::message::read(data, 1));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    match request {
        Ok(request) => assert!(request.size() <= data.len() + FIXED),
        Err(problem) => is_refusal(&problem, data.len()),
    }
}

fn dialects(data: &[u8]) {
    let Ok(value) = body::decode("the body", data) else { return };
    let numbers = ["timeout", "run_timeout", "memory_limit_MB", "cell_timeout", "total_timeout"];
    let read = [
        lenient::read::<sandbox_fusion::RunCodeRequest>(value.clone(), &numbers).err(),
        lenient::read::<sandbox_fusion::RunJupyterRequest>(value.clone(), &numbers).err(),
        lenient::read::<nemo_skills::ExecuteRequest>(value.clone(), &numbers).err(),
        lenient::read::<dify::RunRequest>(value.clone(), &[]).err(),
        lenient::read::<ragflow::RunRequest>(value.clone(), &[]).err(),
        lenient::read::<librechat::exec::ExecRequest>(value.clone(), &[]).err(),
        lenient::read::<librechat::programmatic::ProgrammaticRequest>(value.clone(), &[]).err(),
        lenient::read::<lifecycle::SandboxRequest>(value.clone(), &[]).err(),
        lenient::read::<lifecycle::RenewRequest>(value.clone(), &[]).err(),
        lenient::read::<code::CodeRequest>(value.clone(), &[]).err(),
        lenient::read::<jupyter::StartRequest>(value.clone(), &[]).err(),
        lenient::read::<commands::CommandRequest>(value, &[]).err(),
    ];
    for problem in read.into_iter().flatten() {
        is_refusal(&problem, data.len());
    }
    let _ = serde_json::from_slice::<connect::FileSystemRequest>(data);
}

fn openenv(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let is_object = json.is_object();
    let _ = openenv::read::<openenv::StepRequest>(json.clone());
    assert!(openenv::read::<openenv::Message>(json).is_err() || is_object);
}

/// A file's path is absolute, has plain names only, and is its own place. So is a name below a
/// directory, if it is one.
fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let place = files::place(text);
    assert!(place.starts_with('/'), "{text:?} is {place:?}");
    let is_plain = |name: &str| !matches!(name, "" | "." | "..");
    assert!(place == "/" || place.split('/').skip(1).all(is_plain), "{text:?} is {place:?}");
    assert_eq!(files::place(&place), place);
    if let Some(name) = librechat::workspace::safe_name(text) {
        assert!(name.split('/').all(is_plain), "{text:?} is {name:?}");
        assert_eq!(librechat::workspace::safe_name(&name), Some(name));
    }
}

/// Credentials are what the headers have; nothing else is taken for a key or a token.
fn credentials(data: &[u8]) {
    let mut headers = data.split(|byte| *byte == b'\n');
    let mut request = Request::new(());
    for name in [AUTHORIZATION.as_str(), "x-api-key", "x-session-token"] {
        if let Some(value) = headers.next()
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            request.headers_mut().insert(name, value);
        }
    }
    let (mut parts, ()) = request.into_parts();
    let read = Credentials::from_request_parts(&mut parts, &()).now_or_never();
    let Some(Ok(read)) = read else { unreachable!("credentials are always read") };
    let given: usize = parts.headers.values().map(HeaderValue::len).sum();
    for text in [&read.key, &read.token].into_iter().flatten() {
        assert!(text.len() <= given, "{text:?}");
    }
    if parts.headers.is_empty() {
        assert!(read.key.is_none() && read.token.is_none());
    }
}
