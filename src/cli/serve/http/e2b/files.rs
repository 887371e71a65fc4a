//! Files of a sandbox, whole: `GET` and `POST /files`.

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, RawQuery, State};
use axum::http::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use isolet::Value;
use serde_json::{Value as AnyJson, json};

use super::{Failed, Reached, text};
use crate::cli::serve::http::MAX_BODY_BYTES;
use crate::cli::serve::http::body::Foreign;
use crate::service::SessionCommand;
use crate::service::node::{HOME, Node};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/files", get(read).post(write))
}

/// Returns the path from the root, of one that is relative to the home directory.
pub(super) fn place(path: &str) -> String {
    let home = HOME.split('/').filter(|name| !name.is_empty());
    let mut names: Vec<&str> = if path.starts_with('/') { Vec::new() } else { home.collect() };
    for name in path.strip_prefix("~/").unwrap_or(path).split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Returns the path that a request names.
fn asked(query: Option<&str>) -> Option<String> {
    let mut query = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    query.find(|(name, _)| name == "path").map(|(_, path)| place(&path))
}

async fn read(
    State(node): Served,
    reached: Reached,
    RawQuery(query): RawQuery,
) -> Result<Response, Failed> {
    let path = asked(query.as_deref()).ok_or_else(no_path)?;
    let session = reached.find(&node).await?;
    let _turn = node.hold(&session).await.map_err(Failed::data)?;
    let command = SessionCommand::GetFile { path: path.clone() };
    match node.carry_out(&session, command).await.map_err(Failed::data)? {
        Value::Bytes(bytes) => {
            Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
        }
        _ => Err(Failed::nothing(format!("there is no file `{path}`"))),
    }
}

fn no_path() -> Failed {
    Failed::unreadable("the query has no `path`")
}

async fn write(
    State(node): Served,
    reached: Reached,
    RawQuery(query): RawQuery,
    request: Request<Body>,
) -> Result<Foreign, Failed> {
    let path = asked(query.as_deref());
    let kind = text(request.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
    let session = reached.find(&node).await?;
    let files = if kind.starts_with("multipart/form-data") {
        parts(request, path).await?
    } else {
        vec![(path.ok_or_else(no_path)?, whole(request).await?)]
    };
    let _turn = node.hold(&session).await.map_err(Failed::data)?;
    let mut written = Vec::with_capacity(files.len());
    for (path, contents) in files {
        let command = SessionCommand::PutFile { path: path.clone(), contents };
        node.carry_out(&session, command).await.map_err(Failed::data)?;
        let name = path.rsplit('/').next().unwrap_or_default();
        written.push(json!({"name": name, "type": "file", "path": path}));
    }
    Ok(Foreign(AnyJson::Array(written)))
}

/// The files of a form. A single one has the path of the query; several have theirs as names.
async fn parts(
    request: Request<Body>,
    path: Option<String>,
) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let unreadable = |error: String| Failed::unreadable(format!("the form is invalid: {error}"));
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|error| unreadable(error.body_text()))?;
    let mut files = Vec::new();
    while let Some(field) =
        form.next_field().await.map_err(|error| unreadable(error.body_text()))?
    {
        let named = field.file_name().map(place);
        let contents = field.bytes().await.map_err(|error| unreadable(error.body_text()))?;
        let path = path.clone().or(named).ok_or_else(no_path)?;
        files.push((path, contents.to_vec()));
    }
    Ok(files)
}

/// The contents of a body that is one file.
async fn whole(request: Request<Body>) -> Result<Vec<u8>, Failed> {
    let is_compressed = text(request.headers(), CONTENT_ENCODING.as_str());
    let bytes = Bytes::from_request(request, &()).await;
    let bytes = bytes.map_err(|error| Failed::unreadable(error.body_text()))?;
    match is_compressed.as_deref() {
        None | Some("identity") => Ok(bytes.to_vec()),
        Some("gzip") => {
            let mut contents = Vec::new();
            let most = MAX_BODY_BYTES as u64;
            let read = GzDecoder::new(&*bytes).take(most + 1).read_to_end(&mut contents);
            read.map_err(|error| Failed::unreadable(format!("the body is no gzip: {error}")))?;
            if contents.len() > MAX_BODY_BYTES {
                let text = format!("the file has more than {MAX_BODY_BYTES} bytes");
                return Err(Failed::unreadable(text));
            }
            Ok(contents)
        }
        Some(other) => {
            Err(Failed::unreadable(format!("the body's encoding is {other:?}, and has to be gzip")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_home_directory_and_never_above_the_root() {
        for (path, from_root) in [
            ("a", "/home/user/a"),
            ("~/a/b", "/home/user/a/b"),
            ("./a//../b/", "/home/user/b"),
            ("/", "/"),
            ("/tmp/a", "/tmp/a"),
            ("../../../../etc", "/etc"),
            ("", "/home/user"),
        ] {
            assert_eq!(place(path), from_root);
        }
    }
}
