//! Tests of downloads themselves: repeated after passing failures, resumed only within the same
//! content, bounded, through proxies, and shown as one step.

use std::process::Command;
use std::time::Instant;

use super::server::{Answer, Server};
use super::*;
use crate::{DownloadError, Downloader, Help, Progress, Wanted};

const NAME: &str = "pyodide.asm.wasm";
const CUT: usize = 100_000;
/// Where a test names the source for the program that it starts again as another process.
const SOURCE: &str = "ISOLET_TEST_DOWNLOAD_SOURCE";

fn wanted(name: &str) -> Wanted {
    Wanted::new(name, Digest::of(&content(name)), 1 << 20)
}

fn downloader(sources: &[String]) -> Downloader {
    Downloader::new(sources).backoff(Duration::from_millis(1))
}

fn download(server: &Server, dir: &Path) -> Result<(), DownloadError> {
    downloader(&[server.source()]).download(&[wanted(NAME)], dir, &mut Silent)
}

#[track_caller]
fn assert_has(dir: &Path) {
    assert_eq!(names(dir), [".lock", NAME]);
    assert!(fs::read(dir.join(NAME)).unwrap() == content(NAME));
}

#[test]
fn passing_failures_are_followed_by_another_request() {
    for status in [408, 429, 500, 502, 503, 504] {
        let dir = TestDir::new();
        let server = Server::start(move |number, _| match number {
            0 | 1 => Answer::Status(status, ""),
            _ => Answer::Good,
        });
        download(&server, &dir).unwrap();
        assert_eq!(server.seen().len(), 3, "{status}");
        assert_has(&dir);
    }
}

#[test]
fn lasting_failures_are_not_tried_again() {
    for status in [400, 403, 404, 407, 410, 501] {
        let (dir, server) = (TestDir::new(), Server::start(move |_, _| Answer::Status(status, "")));
        let error = download(&server, &dir).unwrap_err().to_string();
        assert!(error.contains(&format!("the server answers with status {status}")), "{error}");
        assert_eq!(server.seen().len(), 1, "{status}");
        assert_eq!(names(&dir), [".lock"]);
    }
}

#[test]
fn a_server_is_left_alone_for_as_long_as_it_asks() {
    let dir = TestDir::new();
    let server = Server::start(|number, _| match number {
        0 => Answer::Status(429, "retry-after: 1\r\n"),
        _ => Answer::Good,
    });
    let start = Instant::now();
    download(&server, &dir).unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_has(&dir);
}

#[test]
fn a_server_that_asks_for_too_long_a_wait_is_given_up() {
    let dir = TestDir::new();
    let server = Server::start(|_, _| Answer::Status(503, "retry-after: 3600\r\n"));
    let url = server.source().replace("{file}", NAME);
    assert_eq!(
        download(&server, &dir).unwrap_err().to_string(),
        format!(
            "`{NAME}` cannot be fetched: `{url}`: the server answers with status 503 Service \
             Unavailable and wants no request for 3600 s"
        )
    );
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_download_of_unknown_size_is_continued_with_the_tag_of_its_beginning() {
    let dir = TestDir::new();
    let server = Server::start(|_, seen| match seen.from {
        None => Answer::CutWith(CUT, "etag: \"one\"\r\n"),
        Some(_) => Answer::Good,
    });
    download(&server, &dir).unwrap();
    assert_eq!(server.ranges(NAME), [None, Some(CUT)]);
    assert!(server.seen()[1].head.contains(&"if-range: \"one\"".to_owned()), "{:?}", server.seen());
    assert!(server.seen()[1].head.contains(&"accept-encoding: identity".to_owned()));
    assert_has(&dir);
}

#[test]
fn a_weak_tag_continues_nothing() {
    let dir = TestDir::new();
    let server = Server::start(|_, seen| match seen.from {
        None => Answer::CutWith(CUT, "etag: W/\"one\"\r\n"),
        Some(_) => Answer::Good,
    });
    download(&server, &dir).unwrap();
    assert!(!server.seen()[1].head.iter().any(|line| line.starts_with("if-range")));
}

#[test]
fn a_file_is_no_longer_than_allowed() {
    let dir = TestDir::new();
    let long = || vec![7; 2 << 20];
    let server = Server::start(move |_, _| Answer::Endless(long()));
    let error = download(&server, &dir).unwrap_err().to_string();
    assert!(error.ends_with("the server sends more than the allowed 1048576 bytes"), "{error}");
    let server = Server::start(move |_, _| Answer::Instead(long()));
    let error = download(&server, &dir).unwrap_err().to_string();
    assert!(error.ends_with("the server has 2097152 bytes (at most 1048576)"), "{error}");
    assert_eq!(names(&dir), [".lock"]);
}

#[test]
fn a_wrong_file_of_one_source_is_replaced_by_that_of_the_next() {
    let dir = TestDir::new();
    let wrong = Server::start(|_, _| Answer::Instead(vec![0; 300_000]));
    let right = Server::start(|_, _| Answer::Good);
    let sources = [wrong.source(), right.source()];
    downloader(&sources).download(&[wanted(NAME)], &dir, &mut Silent).unwrap();
    assert_eq!((wrong.seen().len(), right.ranges(NAME)), (1, vec![None]));
    assert_has(&dir);
}

#[test]
fn a_server_that_does_not_answer_suggests_a_proxy_unless_it_is_this_machine() {
    let dir = TestDir::new();
    for (source, expected) in [
        ("http://0.0.0.0:9/{file}", Some(Help::Proxy)),
        ("http://127.0.0.1:9/{file}", None),
        ("http://[::1]:9/{file}", None),
        ("http://localhost:9/{file}", None),
    ] {
        let sources = [source.to_owned()];
        let error = downloader(&sources).download(&[wanted(NAME)], &dir, &mut Silent).unwrap_err();
        match error {
            DownloadError::Remote { help, .. } => assert_eq!(help, expected, "{source}"),
            error @ DownloadError::Local(_) => panic!("{error}"),
        }
    }
}

/// Remembers the last line.
#[derive(Default)]
struct Line {
    what: Vec<String>,
    total: u64,
    bytes: u64,
    is_finished: bool,
}

impl Progress for Line {
    fn start(&mut self, what: &str, total: u64) {
        self.what.push(what.to_owned());
        (self.total, self.bytes, self.is_finished) = (total, 0, false);
    }

    fn advance(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    fn finish(&mut self) {
        self.is_finished = true;
    }
}

#[test]
fn several_downloads_are_shown_as_one_step() {
    let dir = TestDir::new();
    let server = Server::start(|_, seen| match (seen.file.as_str(), seen.from) {
        (NAME, None) => Answer::CutAfter(CUT),
        _ => Answer::Good,
    });
    let files = assets::NAMES.map(wanted);
    let mut line = Line::default();
    downloader(&[server.source()]).download(&files, &dir, &mut line).unwrap();
    let all: usize = assets::NAMES.iter().map(|name| content(name).len()).sum();
    assert_eq!((line.total, line.bytes), (all as u64, all as u64));
    assert!(
        line.is_finished && line.what.iter().all(|what| what.contains(" of ")),
        "{:?}",
        line.what
    );
    assert_complete(&dir);
}

/// Not a test of its own: what [`download_elsewhere`] starts.
#[test]
fn download_of_another_process() {
    #[expect(clippy::disallowed_methods, reason = "what the test has set")]
    let Ok(source) = std::env::var(SOURCE) else { return };
    let dir = TestDir::new();
    match downloader(&[source]).download(&[wanted(NAME)], &dir, &mut Silent) {
        Ok(()) => assert_has(&dir),
        Err(error) => panic!("{error}"),
    }
}

/// Downloads from `source` in a process with these variables. Returns its message if it fails.
pub(super) fn download_elsewhere(source: &str, variables: &[(&str, &str)]) -> Result<(), String> {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    for name in
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"]
    {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    command.args(["--exact", "tests::transfer::download_of_another_process", "--nocapture"]);
    command.env(SOURCE, source).envs(variables.iter().copied()).env("RUST_BACKTRACE", "0");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(said.into_owned()) }
}

#[test]
fn the_proxies_of_the_environment_are_used() {
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let proxy = Server::start(|_, _| Answer::Good);
        let address = proxy.source().replace("/files/{file}", "").replace("//", "//me:s%20cret@");
        let source = "http://mirror.example.test/files/{file}";
        download_elsewhere(source, &[(name, &address)]).unwrap();
        let seen = &proxy.seen()[0].head;
        assert!(seen[0].starts_with("get http://mirror.example.test/files/"), "{seen:?}");
        // The Base64 of `me:s cret`, in lower case as everything that the server keeps.
        assert!(seen.contains(&"proxy-authorization: basic bwu6cybjcmv0".to_owned()), "{seen:?}");
        // And not where the environment says so.
        let direct = Server::start(|_, _| Answer::Good);
        for none in ["NO_PROXY", "no_proxy"] {
            download_elsewhere(&direct.source(), &[(name, &address), (none, "127.0.0.1")]).unwrap();
        }
        assert_eq!((direct.seen().len(), proxy.seen().len()), (2, 1));
    }
}

#[test]
fn a_proxy_that_does_not_answer_is_named_without_its_password() {
    let variables = [("ALL_PROXY", "http://me:secret@127.0.0.1:9")];
    let said = download_elsewhere("http://mirror.example.test/{file}", &variables).unwrap_err();
    assert!(said.contains("connection refused, through the proxy `127.0.0.1:9`"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
