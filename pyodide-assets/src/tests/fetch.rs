//! Tests of fetching over HTTP: correct files stay, and wrong data never gets a file's name.

use std::fs;
use std::net::TcpListener;
use std::thread;

use super::server::{Answer, Server};
use super::*;
use crate::{Npm, Origin};

const WASM: &str = "pyodide.asm.wasm";

#[test]
fn empty_directory_is_filled() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Good);
    let report = fetch_from(&server.source(), &dir.join("new/dist")).unwrap();
    assert_eq!(report.fetched(), assets::NAMES);
    assert_eq!(report.origin(), Some(Origin::Download));
    assert_complete(&dir.join("new/dist"));
    assert_eq!(server.seen().len(), assets::NAMES.len());
}

#[test]
fn source_without_placeholder_gets_the_name_appended() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Good);
    fetch_from(&server.source().replace("{file}", ""), &dir).unwrap();
    assert_complete(&dir);
}

#[test]
fn second_fetch_touches_nothing() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Good);
    fetch_from(&server.source(), &dir).unwrap();
    fs::remove_file(dir.join(".lock")).unwrap();
    let times = || {
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let mut times: Vec<_> = names(&dir).iter().map(|name| modified(&dir.join(name))).collect();
        times.push(modified(&dir));
        times
    };
    let before = times();
    let report = fetch_from(&server.source(), &dir).unwrap();
    assert_eq!((report.fetched().len(), report.origin()), (0, None));
    assert_eq!(times(), before);
    assert_eq!(server.seen().len(), assets::NAMES.len());
}

#[test]
fn only_the_wrong_file_is_fetched() {
    let dir = TestDir::new();
    fill(&dir);
    let mut bytes = content(WASM);
    bytes[77] ^= 0x80;
    fs::write(dir.join(WASM), bytes).unwrap();
    let server = Server::start(|_, _| Answer::Good);
    assert_eq!(fetch_from(&server.source(), &dir).unwrap().fetched(), [WASM]);
    assert_eq!(server.ranges(WASM), [None]);
    assert_eq!(server.seen().len(), 1);
    assert_complete(&dir);
}

#[test]
fn flipped_bit_is_refused_and_leaves_nothing() {
    let dir = TestDir::new();
    let server = Server::start(|_, seen| {
        let mut bytes = content(&seen.file);
        bytes[100] ^= 1;
        Answer::Instead(bytes)
    });
    let error = fetch_from(&server.source(), &dir).unwrap_err().to_string();
    let mut bytes = content(WASM);
    let expected = Digest::of(&bytes);
    bytes[100] ^= 1;
    assert_eq!(
        error,
        format!(
            "cannot fetch Pyodide 1.2.3: `{}`: the file has the wrong sha256 (expected {expected}, \
             got {})",
            server.source().replace("{file}", WASM),
            Digest::of(&bytes)
        )
    );
    assert_eq!(names(&dir), [".lock"]);
    assert_eq!(server.ranges(WASM), [None]);
}

#[track_caller]
fn refused(answer: fn() -> Answer, reason: &str) {
    let dir = TestDir::new();
    let server = Server::start(move |_, _| answer());
    let url = server.source().replace("{file}", WASM);
    assert_eq!(
        fetch_from(&server.source(), &dir).unwrap_err().to_string(),
        format!("cannot fetch Pyodide 1.2.3: `{url}`: {reason}")
    );
    assert_eq!(names(&dir), [".lock"]);
}

#[test]
fn useless_answers_are_named() {
    refused(|| Answer::Status(404, ""), "the server answers with status 404 Not Found");
    refused(|| Answer::Status(503, ""), "the server answers with status 503 Service Unavailable");
    refused(|| Answer::Instead(vec![7; 12]), "the server has 12 bytes (expected 300000)");
    refused(
        || Answer::Endless(vec![7; 400_000]),
        "the server sends more than the expected 300000 bytes",
    );
}

#[test]
fn next_source_is_tried_and_every_reason_told() {
    let dir = TestDir::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (closed, empty) = (
        format!("http://0.0.0.0:{}/{{file}}", closed.port()),
        Server::start(|_, _| Answer::Status(404, "")),
    );
    let two = options([closed.as_str(), &empty.source()]);
    let fetch = |options: &FetchOptions| {
        fetch_locked(&fake_lock(), &dir, options, OsStr::new(NO_NPM), &mut Silent)
    };
    assert_eq!(
        fetch(&two).unwrap_err().to_string(),
        format!(
            "cannot fetch Pyodide 1.2.3: `{}`: connection refused, `{}`: the server answers with \
             status 404 Not Found{HELP}",
            closed.replace("{file}", WASM),
            empty.source().replace("{file}", WASM),
        )
    );
    assert_eq!(names(&dir), [".lock"]);
    let good = Server::start(|_, _| Answer::Good);
    fetch(&options([closed.as_str(), &empty.source(), &good.source()])).unwrap();
    assert_complete(&dir);
}

#[test]
fn reason_that_two_sources_share_is_told_once() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Status(404, ""));
    let options = options([server.source().as_str(), &server.source()]);
    let error = fetch_locked(&fake_lock(), &dir, &options, OsStr::new(NO_NPM), &mut Silent);
    let url = server.source().replace("{file}", WASM);
    assert_eq!(
        error.unwrap_err().to_string(),
        format!(
            "cannot fetch Pyodide 1.2.3: `{url}` and `{url}`: the server answers with status 404 \
             Not Found"
        )
    );
}

#[test]
fn name_that_does_not_exist_is_named() {
    let dir = TestDir::new();
    assert_eq!(
        fetch_from("http://isolet.invalid", &dir).unwrap_err().to_string(),
        format!(
            "cannot fetch Pyodide 1.2.3: `http://isolet.invalid/pyodide.asm.wasm`: the host name \
             cannot be resolved{HELP}"
        )
    );
}

#[test]
fn default_sources_are_the_locks() {
    let dir = TestDir::new();
    let options = FetchOptions::default().npm(Npm::Never);
    let error = fetch_locked(&fake_lock(), &dir, &options, OsStr::new(NO_NPM), &mut Silent);
    let error = error.unwrap_err().to_string();
    let start = "cannot fetch Pyodide 1.2.3: `https://localhost:9/pyodide.asm.wasm`: ";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn place_that_cannot_be_written_is_named() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Good);
    let file = dir.join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(
        fetch_from(&server.source(), &file).unwrap_err().to_string(),
        format!("cannot write `{}`: file exists", file.display())
    );
    assert_eq!(
        fetch_from(&server.source(), &file.join("dist")).unwrap_err().to_string(),
        format!("cannot write `{}`: not a directory", file.join("dist").display())
    );
    assert!(server.seen().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_named_and_gets_its_space_back() {
    let dir = TestDir::new();
    let part = dir.join("pyodide.asm.wasm.part");
    std::os::unix::fs::symlink("/dev/full", &part).unwrap();
    let server = Server::start(|_, _| Answer::Good);
    assert_eq!(
        fetch_from(&server.source(), &dir).unwrap_err().to_string(),
        format!("cannot write `{}`: no space left on device", part.display())
    );
    assert_eq!(names(&dir), [".lock"]);
    fetch_from(&server.source(), &dir).unwrap();
    assert_complete(&dir);
}

#[test]
fn concurrent_fetches_take_turns() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Good);
    let source = server.source();
    let fetched: usize = thread::scope(|scope| {
        let fetch = || fetch_from(&source, &dir).unwrap().fetched().len();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(fetch)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(fetched, assets::NAMES.len());
    assert_eq!(server.seen().len(), assets::NAMES.len());
    assert_complete(&dir);
}

#[test]
fn a_fetch_works_within_an_async_runtime() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Good);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { fetch_from(&server.source(), &dir) }).unwrap();
    assert_complete(&dir);
}
