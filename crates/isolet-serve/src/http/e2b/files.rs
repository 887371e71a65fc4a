//! Files of a sandbox, whole: `GET` and `POST /files`.

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use serde_json::{Value as AnyJson, json};

use super::{Failed, Reached, text};
use crate::http::MAX_BODY_BYTES;
use crate::http::body::{DialectJson, in_turn};
use crate::http::form::Form;
use crate::http::transfer::{self, Transfer};
use isolet_service::core::Command;
use isolet_service::node::{HOME, Node};

/// The maximum number of files in a form.
const MAX_FILES: usize = 1_000;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/files", get(read).post(write))
}

/// Returns an absolute path. Relative ones are relative to the home directory.
pub(in crate::http) fn place(path: &str) -> String {
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

/// Returns the path in a request's query.
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
    let get = |reply| Command::GetFile { path: path.clone(), reply };
    match node.carry_out(&session, get).await.map_err(Failed::data)? {
        Some(bytes) => Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response()),
        None => Err(Failed::nothing(format!("there is no file `{path}`"))),
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
) -> Result<DialectJson, Failed> {
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
        let put = |reply| Command::PutFile { path: path.clone(), contents, reply };
        node.carry_out(&session, put).await.map_err(Failed::data)?;
        let name = path.rsplit('/').next().unwrap_or_default();
        written.push(json!({"name": name, "type": "file", "path": path}));
    }
    Ok(DialectJson(AnyJson::Array(written)))
}

/// The files of a form. A single file has the path of the query; several have paths as their names.
async fn parts(
    request: Request<Body>,
    path: Option<String>,
) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let mut form = Form::of(request).await?;
    let mut files = Vec::new();
    while let Some(part) = form.next().await? {
        if files.len() == MAX_FILES {
            return Err(Failed::unreadable(format!("the form has more files than {MAX_FILES}")));
        }
        let named = part.file_name.as_deref().map(place);
        files.push((path.clone().or(named).ok_or_else(no_path)?, part.contents));
    }
    Ok(files)
}

/// Returns the contents of a body that is one file.
async fn whole(request: Request<Body>) -> Result<Vec<u8>, Failed> {
    let is_compressed = text(request.headers(), CONTENT_ENCODING.as_str());
    let transfer = request.extensions().get::<Transfer>().cloned();
    let bytes = transfer::read(request.into_body()).await?;
    match is_compressed.as_deref() {
        None | Some("identity") => Ok(bytes.into()),
        Some("gzip") => inflated(&bytes, transfer.as_ref()).await,
        Some(other) => {
            Err(Failed::unreadable(format!("the body's encoding is {other:?}, and has to be gzip")))
        }
    }
}

/// Decompresses a body. The length in its trailer is charged before the work and limits it, because
/// a few bytes can decompress to many.
async fn inflated(bytes: &[u8], transfer: Option<&Transfer>) -> Result<Vec<u8>, Failed> {
    let claimed = bytes.last_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    let length = usize::try_from(claimed).unwrap_or(usize::MAX);
    if length > MAX_BODY_BYTES {
        let text = format!("the file has {length} bytes: limit {MAX_BODY_BYTES}");
        return Err(Failed::unreadable(text));
    }
    if let Some(transfer) = transfer {
        transfer.take(length)?;
    }
    let contents = in_turn(length, || {
        let mut contents = Vec::new();
        let mut decoder = GzDecoder::new(bytes).take(u64::from(claimed) + 1);
        decoder.read_to_end(&mut contents).map(|_| contents)
    });
    let contents = contents.await;
    let contents =
        contents.map_err(|error| Failed::unreadable(format!("the body is no gzip: {error}")))?;
    if contents.len() != length {
        let text = format!("the body is no gzip of {length} bytes, as its end says");
        return Err(Failed::unreadable(text));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(contents: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(contents).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_gzip_is_decompressed_as_far_as_it_says_and_no_further() {
        assert_eq!(inflated(&gzip(b"text"), None).await.ok().unwrap(), b"text");
        assert_eq!(inflated(&gzip(b""), None).await.ok().unwrap(), b"");
        let refused = async |bytes: &[u8]| match inflated(bytes, None).await {
            Err(Failed(problem)) => problem.detail().to_owned(),
            Ok(contents) => panic!("{} bytes", contents.len()),
        };
        let mut longer = gzip(&vec![0; 100_000]);
        let length = longer.len();
        longer[length - 4..].copy_from_slice(&10u32.to_le_bytes());
        assert!(refused(&longer).await.contains("10 bytes"), "no more than one further is read");
        longer[length - 4..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(refused(&longer).await.contains("4294967295 bytes: limit 67108864"));
        longer[length - 4..].copy_from_slice(&200_000u32.to_le_bytes());
        assert!(refused(&longer).await.contains("no gzip"));
        let mut followed = gzip(b"text");
        followed.extend_from_slice(&gzip(b"more"));
        for bytes in [&b""[..], b"no", b"\x1f\x8b\x08", &gzip(b"text")[..15], &followed[..23]] {
            assert!(refused(bytes).await.contains("no gzip"));
        }
    }

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
