//! A sandbox's file system in Connect's protocol, and what its services share.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::files::place;
use super::{Failed, Reached, text};
use crate::http::body::{DialectJson, RawBody, count_values, in_turn};
use crate::http::problem::Problem;
use isolet_service::node::{Entry, EntryKind, Node, Raised};

/// The maximum depth of a directory listing.
pub(in crate::http) const MAX_DEPTH: u32 = 100;

/// The media types of streams and of their messages.
pub(super) const STREAM: &str = "application/connect+json";
pub(super) const MESSAGE: &str = "application/json";

/// The flag of a stream's last message.
pub(super) const END: u8 = 2;

const NO_WATCHES: &str = "a sandbox of isolet does not watch files";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/filesystem.Filesystem/{method}", post(file_system))
}

/// A Connect error: its code and message.
pub(super) struct RpcError(pub(super) &'static str, pub(super) String);

impl RpcError {
    pub(super) fn unimplemented(text: &str) -> Self {
        Self("unimplemented", text.to_owned())
    }

    fn status(&self) -> StatusCode {
        match self.0 {
            "not_found" => StatusCode::NOT_FOUND,
            "already_exists" => StatusCode::CONFLICT,
            "permission_denied" => StatusCode::FORBIDDEN,
            "invalid_argument" => StatusCode::BAD_REQUEST,
            "unimplemented" => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Answers a unary or a streaming call.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let error = json!({"code": self.0, "message": self.1});
        let is_stream = text(headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind == STREAM);
        if !is_stream {
            return (self.status(), DialectJson(error)).into_response();
        }
        streamed(Body::from(frame(END, &json!({"error": error}))))
    }
}

/// A message of a stream.
pub(super) fn frame(flag: u8, message: &AnyJson) -> Vec<u8> {
    let message = message.to_string();
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[flag], &length.to_be_bytes()[..], message.as_bytes()].concat()
}

/// The answer to a streaming call.
pub(super) fn streamed(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(STREAM));
    response
}

impl From<Raised> for RpcError {
    fn from(Raised { type_name, message }: Raised) -> Self {
        let code = match type_name.as_str() {
            "FileNotFoundError" => "not_found",
            "FileExistsError" => "already_exists",
            "PermissionError" => "permission_denied",
            "NotADirectoryError" | "IsADirectoryError" | "ValueError" => "invalid_argument",
            _ => "internal",
        };
        Self(code, format!("{type_name}: {message}"))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct FileSystemRequest {
    path: String,
    depth: Option<u32>,
    source: String,
    destination: String,
}

async fn file_system(
    State(node): Served,
    reached: Reached,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Result<RawBody, Problem>,
) -> Response {
    answered(&headers, body, async |body| {
        let called = call(&node, &reached, &method, &headers, body).await?;
        Ok(called.map(|answer| DialectJson(answer).into_response()))
    })
    .await
}

/// Answers a call of a service, whose body may be unreadable.
pub(super) async fn answered(
    headers: &HeaderMap,
    body: Result<RawBody, Problem>,
    call: impl AsyncFnOnce(&[u8]) -> Result<Result<Response, RpcError>, Failed>,
) -> Response {
    let called = match body {
        Ok(RawBody(body)) => call(&body).await,
        Err(problem) => Err(Failed(problem)),
    };
    match called {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => error.answer(headers),
        Err(failed) => failed.into_response(),
    }
}

async fn call(
    node: &Arc<Node>,
    reached: &Reached,
    method: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Result<AnyJson, RpcError>, Failed> {
    if !matches!(method, "Stat" | "ListDir" | "MakeDir" | "Move" | "Remove") {
        return Ok(Err(RpcError::unimplemented(NO_WATCHES)));
    }
    let kind = text(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    if !kind.starts_with(MESSAGE) {
        return Ok(Err(RpcError::unimplemented("this service is spoken to in JSON only")));
    }
    let decode = || count_values("the message", body).map(|_| serde_json::from_slice(body));
    let asked: FileSystemRequest = match in_turn(body.len(), decode).await.map_err(Failed)? {
        Ok(asked) => asked,
        Err(error) => return Ok(Err(RpcError("invalid_argument", error.to_string()))),
    };
    let session = reached.find(node).await?;
    let path = place(&asked.path);
    let called = match method {
        "ListDir" => {
            let depth = asked.depth.unwrap_or(1).clamp(1, MAX_DEPTH);
            let found = node.entries(&session, &path, depth).await.map_err(Failed::data)?;
            found.map(|found| json!({"entries": found.iter().map(entry).collect::<Vec<_>>()}))
        }
        "Remove" => {
            let removed = node.remove_entry(&session, &path).await.map_err(Failed::data)?;
            removed.map(|()| json!({}))
        }
        _ => {
            let found = match method {
                "MakeDir" => node.make_directory(&session, &path).await,
                "Move" => {
                    let (from, to) = (place(&asked.source), place(&asked.destination));
                    node.move_entry(&session, &from, &to).await
                }
                _ => node.look(&session, &path).await,
            };
            found.map_err(Failed::data)?.map(|found| json!({"entry": entry(&found)}))
        }
    };
    Ok(called.map_err(RpcError::from))
}

/// Converts the guest's description of an entry.
fn entry(found: &Entry) -> AnyJson {
    let Entry { name, kind, path, size, mode, permissions, modified, target } = found;
    let modified = std::time::Duration::try_from_secs_f64(*modified).unwrap_or_default();
    let modified = std::time::UNIX_EPOCH.checked_add(modified).unwrap_or(std::time::UNIX_EPOCH);
    let mut shown = json!({
        "name": name,
        "type": match kind {
            EntryKind::Dir => "FILE_TYPE_DIRECTORY",
            EntryKind::Link => "FILE_TYPE_SYMLINK",
            EntryKind::File => "FILE_TYPE_FILE",
        },
        "path": path,
        "size": size.to_string(),
        "mode": mode,
        "permissions": permissions,
        "owner": "user",
        "group": "user",
        "modifiedTime": humantime::format_rfc3339_micros(modified).to_string(),
    });
    if let Some(target) = target.as_deref().filter(|target| !target.is_empty()) {
        shown["symlinkTarget"] = target.into();
    }
    shown
}
