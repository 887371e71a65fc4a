//! Files of storage sessions: uploads, downloads, lists and removals.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value as AnyJson, json};

use super::Failed;
use super::workspace::{UNKNOWN, safe_name};
use crate::http::body::DialectJson;
use crate::http::credentials::Credentials;
use crate::http::form::Form;
use crate::http::problem::Problem;
use isolet_service::node::{KeptFile, NewFile, Node};

/// The maximum number of files in a form, which is that of `LibreChat`'s own service.
const MAX_FILES: usize = 200;

/// The maximum length of a media type, in bytes.
const MAX_KIND_BYTES: usize = 255;

type Served = State<Arc<Node>>;

/// The files that were uploaded, and the names of those that cannot be kept.
struct Uploaded {
    session: String,
    kept: Vec<Arc<KeptFile>>,
    refused: Vec<String>,
}

pub(super) async fn upload(
    State(node): Served,
    credentials: Credentials,
    request: Request<Body>,
) -> Result<DialectJson, Failed> {
    let Uploaded { session, kept, refused } = keep(&node, &credentials, request).await?;
    if let Some(name) = refused.first() {
        return Err(Failed(Problem::unreadable(unsafe_name(name))));
    }
    let files = kept.iter().map(|kept| json!({"fileId": kept.id, "filename": kept.file.name}));
    Ok(DialectJson(json!({
        "message": "success",
        "storage_session_id": session,
        // Older clients read this one.
        "session_id": session,
        "files": files.collect::<AnyJson>(),
    })))
}

pub(super) async fn upload_batch(
    State(node): Served,
    credentials: Credentials,
    request: Request<Body>,
) -> Result<Response, Failed> {
    let Uploaded { session, kept, refused } = keep(&node, &credentials, request).await?;
    let (message, status) = match (kept.is_empty(), refused.is_empty()) {
        (_, true) => ("success", StatusCode::OK),
        (false, false) => ("partial_success", StatusCode::OK),
        (true, false) => ("error", StatusCode::BAD_REQUEST),
    };
    let (succeeded, failed) = (kept.len(), refused.len());
    let done = kept
        .iter()
        .map(|kept| json!({"status": "success", "fileId": kept.id, "filename": kept.file.name}));
    let failures = refused
        .iter()
        .map(|name| json!({"status": "error", "filename": name, "error": unsafe_name(name)}));
    let answer = DialectJson(json!({
        "message": message,
        "storage_session_id": session,
        "session_id": session,
        "files": done.chain(failures).collect::<AnyJson>(),
        "succeeded": succeeded,
        "failed": failed,
    }));
    Ok((status, answer).into_response())
}

fn unsafe_name(name: &str) -> String {
    format!("{name:?} is no name of a file: it has to have 1 to 1000 bytes that can be shown")
}

/// Keeps the files of a form as a new storage session.
async fn keep(
    node: &Node,
    credentials: &Credentials,
    request: Request<Body>,
) -> Result<Uploaded, Failed> {
    let tenant = node.tenant(credentials)?;
    let mut form = Form::of(request).await?;
    let (mut files, mut refused, mut is_fixed) = (Vec::new(), Vec::new(), false);
    while let Some(part) = form.next().await? {
        // Other fields say whose a file is: `kind`, `id`, `version`, `entity_id`.
        if part.name == "read_only" {
            is_fixed = part.contents.eq_ignore_ascii_case(b"true");
        }
        let Some(given) = part.file_name else { continue };
        if files.len() + refused.len() == MAX_FILES {
            let text = format!("the form has more files than the limit of {MAX_FILES}");
            return Err(Failed(Problem::unreadable(text)));
        }
        let Some(name) = safe_name(&given) else {
            refused.push(given);
            continue;
        };
        let kind = part.kind.filter(|kind| kind.len() <= MAX_KIND_BYTES);
        let kind = kind.unwrap_or_else(|| UNKNOWN.to_owned());
        files.push(NewFile { name, kind, contents: part.contents, is_fixed });
    }
    if files.is_empty() && refused.is_empty() {
        return Err(Failed(Problem::unreadable("the form has no file")));
    }
    for file in &mut files {
        file.is_fixed = is_fixed;
    }
    let (session, kept) = node.keep_files(&tenant, None, files)?;
    Ok(Uploaded { session, kept, refused })
}

fn find(
    node: &Node,
    credentials: &Credentials,
    session: &str,
    file: &str,
) -> Result<Arc<KeptFile>, Failed> {
    let tenant = node.tenant(credentials)?;
    node.kept_file(&tenant, session, file).ok_or_else(|| no_file(session, file))
}

fn no_file(session: &str, file: &str) -> Failed {
    let text = format!("the node has no file {session}/{file}, or no longer");
    Failed(Problem::nothing(text))
}

/// Answers with the bytes of a file, which no browser shows as a page of the node.
pub(super) async fn download(
    State(node): Served,
    credentials: Credentials,
    Path((session, file)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let kept = find(&node, &credentials, &session, &file)?;
    let name = kept.file.name.rsplit('/').next().unwrap_or_default();
    let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let name = name.replace('+', "%20");
    let disposition = format!("attachment; filename*=UTF-8''{name}");
    let mut response = kept.file.contents.clone().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(UNKNOWN));
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

pub(super) async fn remove(
    State(node): Served,
    credentials: Credentials,
    Path((session, file)): Path<(String, String)>,
) -> Result<DialectJson, Failed> {
    let tenant = node.tenant(&credentials)?;
    if node.remove_kept_file(&tenant, &session, &file) {
        Ok(DialectJson(json!({"message": "File deleted successfully"})))
    } else {
        Err(no_file(&session, &file))
    }
}

/// Tells whether a file is still there, and since when.
pub(super) async fn describe(
    State(node): Served,
    credentials: Credentials,
    Path((session, file)): Path<(String, String)>,
) -> Result<DialectJson, Failed> {
    let kept = find(&node, &credentials, &session, &file)?;
    let mut shown = summary(&session, &kept);
    shown["originalFilename"] = kept.file.name.clone().into();
    shown["contentType"] = kept.file.kind.clone().into();
    shown["readOnly"] = kept.file.is_fixed.into();
    Ok(DialectJson(shown))
}

pub(super) async fn list(
    State(node): Served,
    credentials: Credentials,
    Path(session): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let tenant = node.tenant(&credentials)?;
    let files = node.kept_files(&tenant, &session).ok_or_else(|| {
        Failed(Problem::nothing(format!("the node has no session {session}, or no longer")))
    })?;
    let query = query.unwrap_or_default();
    let mut query = url::form_urlencoded::parse(query.as_bytes());
    let detail = query.find(|(name, _)| name == "detail").map(|(_, detail)| detail);
    let detail = detail.as_deref().unwrap_or("simple");
    let files = files.iter().map(|kept| match detail {
        "summary" => summary(&session, kept),
        "full" => full(&session, kept),
        "normalized" => normalized(&session, kept),
        _ => object(&session, kept).into(),
    });
    Ok(DialectJson(files.collect()))
}

/// Returns the name of a file in the storage of `LibreChat`'s own service.
fn object(session: &str, kept: &KeptFile) -> String {
    let name = kept.file.name.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => format!("{session}/{}.{end}", kept.id),
        _ => format!("{session}/{}", kept.id),
    }
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

fn summary(session: &str, kept: &KeptFile) -> AnyJson {
    json!({
        "name": object(session, kept),
        "size": kept.file.contents.len(),
        "lastModified": time(kept.changed),
        "fileId": kept.id,
        "filename": kept.file.name,
    })
}

fn full(session: &str, kept: &KeptFile) -> AnyJson {
    let mut shown = summary(session, kept);
    shown["id"] = kept.id.clone().into();
    shown["storage_session_id"] = session.into();
    shown["contentType"] = kept.file.kind.clone().into();
    shown["metadata"] = json!({
        "content-type": kept.file.kind,
        "original-filename": kept.file.name,
    });
    shown
}

fn normalized(session: &str, kept: &KeptFile) -> AnyJson {
    json!({
        "id": kept.id,
        "name": kept.file.name,
        "storage_session_id": session,
        "size": kept.file.contents.len(),
        "contentType": kept.file.kind,
        "lastModified": time(kept.changed),
        "read_only": kept.file.is_fixed,
    })
}
