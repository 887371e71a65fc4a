//! Tests of fetching with npm: the archive is checked, then each file, and HTTPS follows if npm
//! fails.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::server::{Answer, Server};
use super::*;
use crate::{Npm, Origin};

/// Makes a fake npm that runs `script`; `$archive` is the fake release's package.
fn npm(dir: &Path, script: &str) -> PathBuf {
    let (npm, archive) = (dir.join("npm"), dir.join("archive.tgz"));
    fs::write(&archive, tarball()).unwrap();
    let text = format!("#!/bin/sh\narchive={}\n{script}\n", archive.display());
    // Written by another process. If a thread of this one held the script open for writing while
    // another thread forks, the script could not be run.
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", "printf %s \"$1\" > \"$2\"", "sh", &text]).arg(&npm);
    assert!(shell.status().unwrap().success());
    fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).unwrap();
    npm
}

fn fetch_by(npm: &Path, dir: &Path, options: &FetchOptions) -> Result<FetchReport, Error> {
    fetch_locked(&fake_lock(), dir, options, npm.as_os_str(), &mut Silent)
}

#[test]
fn files_come_out_of_the_package() {
    let dir = TestDir::new();
    let log = dir.join("log");
    let script = format!("echo $* >> {}; cp $archive pyodide-1.2.3.tgz", log.display());
    let npm = npm(&dir, &script);
    let dist = dir.join("dist");
    let report = fetch_by(&npm, &dist, &options([])).unwrap();
    assert_eq!((report.fetched().len(), report.origin()), (4, Some(Origin::Npm)));
    assert_complete(&dist);
    let asked = fs::read_to_string(log).unwrap();
    assert!(asked.starts_with("pack pyodide@1.2.3 --pack-destination . "), "{asked}");

    fs::write(dist.join("pyodide-lock.json"), "changed").unwrap();
    let report = fetch_by(&npm, &dist, &options([])).unwrap();
    assert_eq!(report.fetched(), ["pyodide-lock.json"]);
    assert_complete(&dist);
}

#[track_caller]
fn fails(script: &str, said: &str) {
    let dir = TestDir::new();
    let npm = npm(&dir, script);
    let dist = dir.join("dist");
    let error = fetch_by(&npm, &dist, &options([])).unwrap_err().to_string();
    let start =
        format!("cannot fetch Pyodide 1.2.3: {said}; `https://localhost:9/pyodide.asm.wasm`: ");
    assert!(error.starts_with(&start), "{error}");
    assert_eq!(names(&dist), [".lock"]);
}

#[test]
fn what_npm_said_is_in_the_message() {
    fails(
        "echo 'npm error code E404' >&2; echo 'npm error 404 Not Found' >&2; exit 1",
        "npm said `404 Not Found`",
    );
    fails("exit 7", "npm said `exit status: 7`");
    fails("true", "npm's archive: no such file or directory");
    fails("kill -9 $$", "npm said `signal: 9 (SIGKILL)`");
    let wrong = format!(
        "npm's `pyodide-1.2.3.tgz` has the wrong sha256 (expected {}, got {})",
        Digest::of(&tarball()),
        Digest::of(b"other\n")
    );
    fails("echo other > pyodide-1.2.3.tgz", &wrong);
}

#[test]
fn npm_that_is_not_there_is_in_the_message() {
    let dir = TestDir::new();
    let error = fetch_by(Path::new(NO_NPM), &dir, &options([])).unwrap_err();
    let start = "cannot fetch Pyodide 1.2.3: npm is not on the `PATH`; `https://localhost:9/";
    assert!(error.to_string().starts_with(start), "{error}");
    assert_eq!(names(&dir), [".lock"]);
}

#[test]
fn named_source_and_never_keep_npm_out() {
    let dir = TestDir::new();
    let log = dir.join("log");
    let npm = npm(&dir, &format!("echo >> {}", log.display()));
    let dist = dir.join("dist");
    fetch_by(&npm, &dist, &options([]).npm(Npm::Never)).unwrap_err();
    let server = Server::start(|_, _| Answer::Good);
    fetch_by(&npm, &dist, &options([]).sources([server.source()])).unwrap();
    assert_complete(&dist);
    assert!(!log.exists());
}

#[test]
fn package_with_other_files_is_refused_although_its_digest_is_right() {
    let dir = TestDir::new();
    let npm = npm(&dir, "cp $archive pyodide-1.2.3.tgz");
    let digest = Digest::of(&content("pyodide.asm.mjs")).to_string();
    let mut other = fake_lock_text();
    other = other.replace(&digest, &Digest::of(b"another file").to_string());
    let lock = Lock::parse(&other).unwrap();
    let dist = dir.join("dist");
    let options = options([]);
    let error = fetch_locked(&lock, &dist, &options, npm.as_os_str(), &mut Silent).unwrap_err();
    let start = "cannot fetch Pyodide 1.2.3: `pyodide.asm.mjs` has the wrong sha256 (expected ";
    assert!(error.to_string().starts_with(start), "{error}");
    assert!(!dist.join("pyodide.asm.mjs").exists());
    assert!(!dist.join("pyodide.asm.mjs.tmp").exists());
}
