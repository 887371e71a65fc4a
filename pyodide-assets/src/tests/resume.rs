//! Tests of interrupted downloads: resumed if the server supports it, restarted if not.

use std::fs;

use super::server::{Answer, Server};
use super::*;

const WASM: &str = "pyodide.asm.wasm";
const PART: &str = "pyodide.asm.wasm.part";
const CUT: usize = 123_456;

/// Makes a directory in which an earlier run left the first bytes of the largest file.
fn interrupted(part: &[u8]) -> TestDir {
    let dir = TestDir::new();
    fill(&dir);
    fs::remove_file(dir.join(WASM)).unwrap();
    fs::write(dir.join(PART), part).unwrap();
    dir
}

#[test]
fn broken_transfer_is_continued_in_the_same_run() {
    let dir = TestDir::new();
    let server = Server::start(|_, seen| match seen.from {
        None => Answer::CutAfter(CUT),
        Some(_) => Answer::Good,
    });
    fetch_from(&server.source(), &dir).unwrap();
    assert_eq!(server.ranges(WASM), [None, Some(CUT)]);
    assert_complete(&dir);
}

#[test]
fn transfer_that_keeps_breaking_is_continued_by_the_next_run() {
    let dir = interrupted(&[]);
    let server = Server::start(|_, _| Answer::CutAfter(CUT));
    let error = fetch_from(&server.source(), &dir).unwrap_err().to_string();
    assert!(error.starts_with("cannot fetch Pyodide 1.2.3: `http://127.0.0.1:"), "{error}");
    assert_eq!(fs::read(dir.join(PART)).unwrap(), content(WASM)[..CUT]);
    assert_eq!(server.ranges(WASM), [None, Some(CUT), Some(CUT), Some(CUT)]);

    let server = Server::start(|_, _| Answer::Good);
    fetch_from(&server.source(), &dir).unwrap();
    assert_eq!(server.ranges(WASM), [Some(CUT)]);
    assert_complete(&dir);
}

#[test]
fn lost_network_keeps_what_was_received() {
    let dir = interrupted(&content(WASM)[..CUT]);
    let nobody = "http://0.0.0.0:9/{file}";
    let error = fetch_from(nobody, &dir).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "cannot fetch Pyodide 1.2.3: `http://0.0.0.0:9/pyodide.asm.wasm`: connection \
             refused{HELP}"
        )
    );
    assert_eq!(fs::read(dir.join(PART)).unwrap(), content(WASM)[..CUT]);
}

#[track_caller]
fn restarts(part: &[u8], answer: fn(usize) -> Answer, expected: &[Option<usize>]) {
    let dir = interrupted(part);
    let server = Server::start(move |number, _| answer(number));
    fetch_from(&server.source(), &dir).unwrap();
    assert_eq!(server.ranges(WASM), expected);
    assert!(!dir.join(PART).exists());
    assert!(fs::read(dir.join(WASM)).unwrap() == content(WASM));
}

#[test]
fn server_that_ignores_the_range_restarts_the_file() {
    restarts(&content(WASM)[..CUT], |_| Answer::Whole, &[Some(CUT)]);
}

#[test]
fn server_that_refuses_the_range_restarts_the_file() {
    let refuses = |number| match number {
        0 => Answer::Status(416, ""),
        _ => Answer::Good,
    };
    restarts(&content(WASM)[..CUT], refuses, &[Some(CUT), None]);
}

#[test]
fn answer_for_another_range_restarts_the_file() {
    let other_range = |number| match number {
        0 => Answer::Status(206, "content-range: bytes 0-9/300000\r\n"),
        _ => Answer::Good,
    };
    restarts(&content(WASM)[..CUT], other_range, &[Some(CUT), None]);
}

#[test]
fn leftover_of_another_release_restarts_the_file() {
    restarts(&vec![0; CUT], |_| Answer::Good, &[Some(CUT), None]);
}

#[test]
fn leftover_that_is_too_long_restarts_the_file() {
    restarts(&vec![0; 300_000], |_| Answer::Good, &[None]);
    restarts(&vec![0; 300_001], |_| Answer::Good, &[None]);
}
