//! The files of sessions: as resources, which clients read, and written by a tool.

use std::collections::VecDeque;
use std::string::FromUtf8Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use tokio::sync::OwnedMutexGuard;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::python::{Interpreter, Python, PythonSession, failed};
use isolet_service::core::{Lease, in_options};

/// The largest file that a client reads, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The most files of a session that are listed: those that were written last.
const LISTED: usize = 200;

/// For how long a file waits for the code that runs in its session.
const WAIT: Duration = Duration::from_mins(1);

const SCHEME: &str = "isolet://";

/// What is not escaped in a path of an address.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// The endings of names whose files are texts, and of others that clients may show. None of them is
/// a program in a browser.
const FORMATS: [(&str, &str); 17] = [
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("ipynb", "application/json"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("tsv", "text/tab-separated-values"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("zip", "application/zip"),
];

/// The files that the runs of a session have written.
#[derive(Default)]
pub(super) struct Written(Mutex<VecDeque<String>>);

impl Written {
    /// Notes what a run has written.
    pub(super) fn note<'a>(&self, files: impl Iterator<Item = &'a str>) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files {
            paths.retain(|path| path != file);
            paths.push_back(file.to_owned());
        }
        let more = paths.len().saturating_sub(LISTED);
        paths.drain(..more);
    }

    /// Returns them, the latest last.
    pub(super) fn all(&self) -> Vec<String> {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().cloned().collect()
    }
}

/// Returns a path as the session has it, to which relative ones are in its user's directory.
pub(super) fn absolute(path: String) -> String {
    if path.starts_with('/') { path } else { format!("/home/user/{path}") }
}

/// Returns the template of the addresses of files.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{session}}/files/{{+path}}"), "file").with_description(
        "A file in the sandbox of a session, such as one that its code has written",
    )
}

/// Returns a file as a resource that can be read.
pub(super) fn resource(handle: &str, path: &str) -> Resource {
    let address = address(handle, path);
    let mut resource = Resource::new(address, path);
    if let Some(format) = format(path) {
        resource = resource.with_mime_type(format);
    }
    resource
}

/// Returns the content of a file: a text, or base64 if it is none.
pub(super) fn contents(address: String, path: &str, bytes: Vec<u8>) -> ResourceContents {
    let format = format(path);
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            ResourceContents::text(text, address).with_mime_type(format.unwrap_or("text/plain"))
        }
        text => {
            let bytes = text.map_or_else(FromUtf8Error::into_bytes, String::into_bytes);
            ResourceContents::blob(STANDARD.encode(bytes), address)
                .with_mime_type(format.unwrap_or("application/octet-stream"))
        }
    }
}

/// Returns the address of a file.
pub(super) fn address(handle: &str, path: &str) -> String {
    let path = utf8_percent_encode(path.trim_start_matches('/'), KEPT);
    format!("{SCHEME}{handle}/files/{path}")
}

/// Reads an address: the session's handle, and the path.
pub(super) fn read_address(address: &str) -> Option<(&str, String)> {
    let (handle, path) = address.strip_prefix(SCHEME)?.split_once("/files/")?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let is_path = !handle.contains('/') && !path.is_empty() && !path.contains('\0');
    is_path.then(|| (handle, format!("/{path}")))
}

fn format(path: &str) -> Option<&'static str> {
    let ending = path.rsplit_once('.')?.1.to_ascii_lowercase();
    FORMATS.iter().find(|(other, _)| *other == ending).map(|(_, format)| *format)
}

impl Python {
    /// Reads a file of a session, after the code that runs in it.
    pub(super) async fn read_file(
        self: &Arc<Self>,
        owner: &str,
        handle: &str,
        path: String,
        cancelled: &CancellationToken,
    ) -> Result<Vec<u8>, String> {
        let in_use = self.get_or_wake(owner, handle).await?;
        let mut turn = turn(&in_use, cancelled).await?;
        let read = spawn_blocking(move || read(&mut turn, &path)).await;
        read.map_err(|error| failed(&error))?
    }

    /// Writes a file of a session, or of a new one. Returns the handle of the session.
    pub(super) async fn write_file(
        self: &Arc<Self>,
        owner: &str,
        handle: Option<&str>,
        path: String,
        bytes: Vec<u8>,
        cancelled: &CancellationToken,
    ) -> Result<String, String> {
        let in_use = match handle {
            Some(handle) => self.get_or_wake(owner, handle).await?,
            None => self.open(owner).await?,
        };
        let mut turn = turn(&in_use, cancelled).await?;
        let write =
            move || turn.session.files().put(&path, bytes).map_err(|error| error.to_string());
        let written = spawn_blocking(write).await.map_err(|error| failed(&error))?;
        written.map_err(|error| in_options(&error))?;
        Ok(in_use.handle().to_owned())
    }
}

async fn turn(
    in_use: &Lease<PythonSession>,
    cancelled: &CancellationToken,
) -> Result<OwnedMutexGuard<Interpreter>, String> {
    tokio::select! {
        biased;
        () = cancelled.cancelled() => Err("the call was cancelled".to_owned()),
        turn = tokio::time::timeout(WAIT, in_use.session().turns.wait()) => match turn {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(waiting)) => {
                Err(format!("{waiting} calls wait for this session already, try again later"))
            }
            Err(_) => Err(format!(
                "code has run in the session for {} s, try again when it has ended",
                WAIT.as_secs()
            )),
        },
    }
}

fn read(turn: &mut Interpreter, path: &str) -> Result<Vec<u8>, String> {
    let files = turn.session.files();
    let told = |error: isolet::Error| in_options(&error.to_string());
    // A file that is too large is not read at all.
    let (directory, name) = path.rsplit_once('/').unwrap_or_default();
    let directory = if directory.is_empty() { "/" } else { directory };
    let entries = files.list(directory).map_err(told)?;
    let entry = entries.iter().find(|entry| entry.name == name);
    let size = entry.map_or(0, |entry| entry.size);
    if size > MAX_BYTES as u64 {
        return Err(too_large(path, size));
    }
    let bytes = files.get(path).map_err(told)?;
    let bytes =
        bytes.ok_or_else(|| format!("the session has no file `{}`", path.escape_debug()))?;
    // A link, or a file that has grown.
    if bytes.len() > MAX_BYTES {
        return Err(too_large(path, bytes.len() as u64));
    }
    Ok(bytes)
}

/// Says that a file does not cross.
fn too_large(path: &str, size: u64) -> String {
    let path = path.escape_debug();
    format!("the file `{path}` has {size} bytes, the limit is {MAX_BYTES}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_path_and_only_that() {
        for path in ["/home/user/a.csv", "/ü b/%41?#[x]", "/a//b", "/..", "/isolet:/x"] {
            let address = address("s_1", path);
            assert!(address.is_ascii() && !address.contains([' ', '?', '#']), "{address}");
            assert_eq!(read_address(&address), Some(("s_1", path.to_owned())));
        }
        for text in [
            "",
            "isolet://s_1/1/stdout",
            "isolet://s_1/files/",
            "file:///files/x",
            "isolet://s_1/x/files/y",
            "isolet://s_1/files/%ff",
            "isolet://s_1/files/a%00b",
        ] {
            assert_eq!(read_address(text), None, "{text}");
        }
    }

    #[test]
    fn the_files_that_were_written_last_are_listed_once() {
        let written = Written::default();
        let many: Vec<String> = (0..LISTED).map(|n| format!("/{n}")).collect();
        written.note(many.iter().map(String::as_str));
        written.note(["/0", "/new"].into_iter());
        let all = written.all();
        assert_eq!((all.len(), all[0].as_str()), (LISTED, "/2"));
        assert_eq!(all[LISTED - 2..], ["/0", "/new"]);
    }

    #[test]
    fn nothing_of_a_guest_is_a_page_or_a_program_for_a_client() {
        for (path, bytes, kind) in [
            ("/a.html", &b"<script>"[..], "text/plain"),
            ("/a.svg", b"<svg/>", "text/plain"),
            ("/a.js", b"x", "text/plain"),
            ("/a.CSV", b"a,b", "text/csv"),
            ("/a", b"\0", "application/octet-stream"),
            ("/a.png", b"\x89PNG", "image/png"),
            ("/a.html", b"\xff", "application/octet-stream"),
        ] {
            let shown = serde_json::to_value(contents("u".to_owned(), path, bytes.to_vec()));
            assert_eq!(shown.unwrap()["mimeType"], kind, "{path}");
        }
    }
}
