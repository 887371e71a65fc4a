//! Files of a sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_RANGE, CONTENT_TYPE, RANGE};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use isolet::Value;
use serde::Deserialize;
use serde_json::{Map, Value as AnyJson, json};

use super::portions::Portion;
use super::{Failed, OpenSandboxBody, Sandbox, done, of_sandbox};
use crate::http::answers::check_length;
use crate::http::body::{self, DialectJson, JsonBody, RawBody};
use crate::http::e2b::connect::MAX_DEPTH;
use crate::http::e2b::files::place;
use crate::http::form::Form;
use crate::http::lenient;
use crate::http::problem::Problem;
use isolet_service::core::Command;
use isolet_service::node::{Entry, EntryKind, Listed, Node, SessionLease};

/// The maximum number of paths of a request.
const MAX_PATHS: usize = 1_000;

/// The maximum length of the description of a file, in bytes.
const MAX_METADATA_BYTES: usize = 64 << 10;

/// The maximum length of a pattern of names, in bytes.
const MAX_PATTERN_BYTES: usize = 256;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route(&of_sandbox("/files"), delete(remove))
        .route(&of_sandbox("/files/upload"), post(upload))
        .route(&of_sandbox("/files/download"), get(download))
        .route(&of_sandbox("/files/info"), get(info))
        .route(&of_sandbox("/files/mv"), post(rename))
        .route(&of_sandbox("/files/replace"), post(replace))
        .route(&of_sandbox("/files/search"), get(search))
        .route(&of_sandbox("/directories"), post(make_directories).delete(remove))
        .route(&of_sandbox("/directories/list"), get(list))
        .route(&of_sandbox("/metrics"), get(metrics))
}

/// What an upload says of a file besides its contents. Owners and modes have no meaning here.
#[derive(Deserialize)]
pub(in crate::http) struct FileMetadata {
    path: String,
}

#[derive(Deserialize)]
pub(in crate::http) struct Rename {
    src: String,
    dest: String,
}

#[derive(Deserialize)]
pub(in crate::http) struct Replacement {
    old: String,
    new: String,
}

/// Returns the parameters of a query.
fn parameters(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned()
}

/// Returns the paths of a query.
fn paths(query: Option<&str>) -> Result<Vec<String>, Failed> {
    let paths = parameters(query).filter(|(name, _)| name == "path");
    let paths: Vec<_> = paths.map(|(_, path)| path).take(MAX_PATHS + 1).collect();
    match paths.len() {
        0 => Err(Failed::invalid("the query has no `path`")),
        1..=MAX_PATHS => Ok(paths),
        _ => {
            Err(Failed::invalid(format!("the query has more paths than the limit of {MAX_PATHS}")))
        }
    }
}

/// Returns the only path of a query, and one of its other parameters.
fn path_and(query: Option<&str>, name: &str) -> Result<(String, Option<String>), Failed> {
    let path = paths(query)?.swap_remove(0);
    let other = parameters(query).find(|(its, _)| its == name).map(|(_, value)| value);
    Ok((place(&path), other))
}

async fn upload(
    State(node): Served,
    sandbox: Sandbox,
    request: Request<Body>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    let mut form = Form::of(request).await?;
    let (mut files, mut path) = (Vec::new(), None);
    while let Some(part) = form.next().await? {
        match part.name.as_str() {
            "metadata" if part.contents.len() <= MAX_METADATA_BYTES => {
                let JsonBody(metadata) = JsonBody::<Value>::read(&part.contents).await?;
                let metadata: FileMetadata = lenient::read(metadata, &[])?;
                path = Some(place(&metadata.path));
            }
            "metadata" => {
                let length = part.contents.len();
                return Err(Failed::invalid(format!(
                    "`metadata` has {length} bytes: limit {MAX_METADATA_BYTES}"
                )));
            }
            "file" if files.len() < MAX_PATHS => {
                let path = path.take().ok_or_else(|| {
                    Failed::invalid("a `file` of the form has no `metadata` before it")
                })?;
                files.push((path, part.contents));
            }
            "file" => {
                let text = format!("the form has more files than the limit of {MAX_PATHS}");
                return Err(Failed::invalid(text));
            }
            other => {
                let text = format!("the form has a part `{}`", other.escape_debug());
                return Err(Failed::invalid(text));
            }
        }
    }
    let _turn = node.hold(&session).await?;
    for (path, contents) in files {
        node.carry_out(&session, |reply| Command::PutFile { path, contents, reply }).await?;
    }
    Ok(done())
}

async fn download(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failed> {
    let query = query.as_deref();
    let (path, first) = path_and(query, "offset")?;
    let (_, count) = path_and(query, "limit")?;
    let number = |name: &str, text: Option<String>| {
        let number = |text: &String| {
            text.parse::<usize>().map_err(|_| {
                Failed::invalid(format!("`{name}` is {text:?}, and has to be a number"))
            })
        };
        text.as_ref().map(number).transpose()
    };
    let portion = match (number("offset", first)?, number("limit", count)?) {
        (None, None) => {
            Portion::of_header(headers.get(RANGE).and_then(|range| range.to_str().ok()))
        }
        (first, count) => Portion::Lines(first.unwrap_or(1), count.unwrap_or(usize::MAX)),
    };
    let session = sandbox.find(&node)?;
    let _turn = node.hold(&session).await?;
    let mut contents = contents(&node, &session, &path).await?;
    let length = contents.len();
    let Some(bytes) = portion.of(&contents) else {
        let text = format!("the file `{path}` has {length} bytes, and none of the range");
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        return Err(Failed(Problem::unreadable(text).with_status(status)));
    };
    contents.truncate(bytes.end);
    contents.drain(..bytes.start);
    let kind = match portion {
        Portion::Lines(..) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let mut response = ([(CONTENT_TYPE, kind)], contents).into_response();
    if matches!(portion, Portion::From(..) | Portion::Last(_)) {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let shown = format!("bytes {}-{}/{length}", bytes.start, bytes.end.saturating_sub(1));
        if let Ok(shown) = HeaderValue::try_from(shown) {
            response.headers_mut().insert(CONTENT_RANGE, shown);
        }
    }
    Ok(response)
}

async fn contents(node: &Node, session: &SessionLease, path: &str) -> Result<Vec<u8>, Failed> {
    let get = |reply| Command::GetFile { path: path.to_owned(), reply };
    let found = node.carry_out(session, get).await?;
    found.ok_or_else(|| Failed(Problem::nothing(format!("there is no file `{path}`"))))
}

/// An entry, as clients read it.
fn shown(entry: &Entry) -> AnyJson {
    let modified = Duration::try_from_secs_f64(entry.modified).unwrap_or_default();
    let modified = UNIX_EPOCH.checked_add(modified).unwrap_or(UNIX_EPOCH);
    let modified = humantime::format_rfc3339_millis(modified).to_string();
    // The octal digits, read as a decimal number.
    let mode = format!("{:o}", entry.mode & 0o777).parse::<i64>().unwrap_or_default();
    json!({
        "path": entry.path,
        "type": match entry.kind {
            EntryKind::Dir => "directory",
            EntryKind::Link => "symlink",
            EntryKind::File => "file",
        },
        "size": entry.size,
        "mode": mode,
        "modified_at": modified,
        "created_at": modified,
        "owner": "user",
        "group": "user",
    })
}

async fn info(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    let mut found = Map::new();
    for path in paths(query.as_deref())? {
        let entry = node.look(&session, &place(&path)).await??;
        found.insert(path, shown(&entry));
    }
    Ok(DialectJson(found.into()))
}

async fn remove(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    for path in paths(query.as_deref())? {
        node.remove_entry(&session, &place(&path)).await??;
    }
    Ok(done())
}

async fn rename(
    State(node): Served,
    sandbox: Sandbox,
    body: Result<RawBody, Problem>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    let RawBody(bytes) = body?;
    let renames = body::decode("the body", &bytes)?;
    let renames: Vec<Rename> = isolet::from_value(renames)
        .map_err(|error| Failed::invalid(format!("the body is invalid: {error}")))?;
    if renames.len() > MAX_PATHS {
        let text = format!("the body has more files than the limit of {MAX_PATHS}");
        return Err(Failed::invalid(text));
    }
    for Rename { src, dest } in renames {
        node.move_entry(&session, &place(&src), &place(&dest)).await??;
    }
    Ok(done())
}

/// Owners and modes of directories have no meaning here.
async fn make_directories(
    State(node): Served,
    sandbox: Sandbox,
    OpenSandboxBody(wanted): OpenSandboxBody<BTreeMap<String, Value>>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    check_count(wanted.len())?;
    for path in wanted.keys() {
        node.make_directory(&session, &place(path)).await??;
    }
    Ok(done())
}

fn check_count(paths: usize) -> Result<(), Failed> {
    if paths <= MAX_PATHS {
        return Ok(());
    }
    Err(Failed::invalid(format!("the body has {paths} paths: limit {MAX_PATHS}")))
}

async fn replace(
    State(node): Served,
    sandbox: Sandbox,
    OpenSandboxBody(wanted): OpenSandboxBody<BTreeMap<String, Replacement>>,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    check_count(wanted.len())?;
    let _turn = node.hold(&session).await?;
    let mut replaced = Map::new();
    for (given, Replacement { old, new }) in wanted {
        let path = place(&given);
        if old.is_empty() {
            return Err(Failed::invalid(format!("`old` of `{path}` is empty")));
        }
        let before = contents(&node, &session, &path).await?;
        let before = String::from_utf8(before)
            .map_err(|_| Failed::invalid(format!("the file `{path}` is no text")))?;
        let count = before.matches(&old).count();
        let added = new.len().saturating_sub(old.len()).saturating_mul(count);
        check_length(&node, (before.len() + added) as u64)?;
        if count > 0 {
            let contents = before.replace(&old, &new).into_bytes();
            node.carry_out(&session, |reply| Command::PutFile { path, contents, reply }).await?;
        }
        replaced.insert(given, json!({"replacedCount": count}));
    }
    Ok(DialectJson(replaced.into()))
}

async fn list(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let (path, depth) = path_and(query.as_deref(), "depth")?;
    let depth = match depth {
        None => 1,
        Some(depth) => depth.parse::<u32>().map_err(|_| {
            Failed::invalid(format!("`depth` is {depth:?}, and has to be a number"))
        })?,
    };
    let session = sandbox.find(&node)?;
    let found = node.entries(&session, &path, depth.clamp(1, MAX_DEPTH)).await??;
    Ok(DialectJson(found.iter().map(shown).collect()))
}

async fn search(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let (path, pattern) = path_and(query.as_deref(), "pattern")?;
    let pattern = pattern.unwrap_or_else(|| "*".to_owned());
    if pattern.len() > MAX_PATTERN_BYTES {
        let length = pattern.len();
        let text = format!("`pattern` has {length} bytes: limit {MAX_PATTERN_BYTES}");
        return Err(Failed::invalid(text));
    }
    let session = sandbox.find(&node)?;
    let found = node.entries(&session, &path, MAX_DEPTH).await??;
    let matching = found.iter().filter(|entry| {
        let below = entry.path.strip_prefix(path.as_str()).unwrap_or(&entry.path);
        let below = below.trim_start_matches('/');
        let name = if pattern.contains('/') { below } else { &entry.name };
        matches!(entry.kind, EntryKind::File) && matches(pattern.as_bytes(), name.as_bytes())
    });
    Ok(DialectJson(matching.map(shown).collect()))
}

/// Returns `true` if a name has a pattern's form: `?` is any byte and `*` any bytes, but no `/`;
/// `**/` is any directories.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // The state after each byte of the name is the set of places reached in the pattern.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let spread = |reached: &mut Vec<bool>| {
        for place in 0..pattern.len() {
            if reached[place] && pattern[place] == b'*' {
                reached[place + 1] = true;
                if pattern[place..].starts_with(b"**/") {
                    reached[place + 3] = true;
                }
            }
        }
    };
    spread(&mut reached);
    for byte in name {
        let mut next = vec![false; pattern.len() + 1];
        for place in (0..pattern.len()).filter(|place| reached[*place]) {
            let is_double = pattern[place..].starts_with(b"**");
            match pattern[place] {
                b'*' if *byte != b'/' || is_double => next[place] = true,
                b'?' if *byte != b'/' => next[place + 1] = true,
                own if own == *byte => next[place + 1] = true,
                _ => {}
            }
        }
        spread(&mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// Returns the usage of a sandbox, from the reports of its runs.
async fn metrics(State(node): Served, sandbox: Sandbox) -> Result<DialectJson, Failed> {
    const MEBIBYTE: f64 = 1_048_576.0;
    let session = sandbox.find(&node)?;
    let used = session.session().use_so_far();
    let listed = Listed::of(&session);
    let age = listed.created.elapsed().unwrap_or_default().as_secs_f64();
    let share = if age > 0.0 { used.run_time.as_secs_f64() / age } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "memory has no petabytes")]
    let mebibytes = |bytes: u64| bytes as f64 / MEBIBYTE;
    Ok(DialectJson(json!({
        "cpu_count": 1.0,
        "cpu_used_pct": 100.0 * share.min(1.0),
        "mem_total_mib": mebibytes(listed.memory_bytes),
        "mem_used_mib": mebibytes(used.peak_memory_bytes),
        "timestamp": super::now(),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_patterns_form_or_not() {
        let is = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [
            ("*.py", "a.py"),
            ("*", ""),
            ("a?c", "abc"),
            ("src/*.py", "src/a.py"),
            ("**/*.py", "a.py"),
            ("**/*.py", "x/y/a.py"),
            ("src/**/a.py", "src/a.py"),
            ("src/**", "src/x/y"),
        ] {
            assert!(is(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.py", "a.pyc"),
            ("*.py", "x/a.py"),
            ("?", "/"),
            ("", "a"),
            ("a", ""),
            ("src/*.py", "src/x/a.py"),
            ("**/b.py", "x/a.py"),
        ] {
            assert!(!is(pattern, name), "{pattern} {name}");
        }
        // The work is bounded by the lengths.
        assert!(!matches(&b"*a".repeat(2_000), &b"a".repeat(1_999)));
    }
}
