//! Tests of the whole crate with a small lock: five short files, a loopback server, a fake npm.

mod fetch;
mod npm;
mod open;
mod resume;
mod server;
mod tls;
mod transfer;

use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::fetch::fetch_locked;
use crate::{Digest, Error, FetchOptions, FetchReport, Lock, Silent, assets};

/// The name of an npm that does not exist.
const NO_NPM: &str = "isolet-test-no-such-npm";

/// What a message says at its end if nobody could be reached.
const HELP: &str = "; if this network needs a proxy, name it with the variable `HTTPS_PROXY`, or \
     `HTTP_PROXY` for `http://`";

/// Returns the content of the fake release's file `name`.
fn content(name: &str) -> Vec<u8> {
    let length = if name == "pyodide.asm.wasm" { 300_000 } else { 5_000 };
    let mut state = u32::try_from(name.len()).unwrap();
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..length).map(next).collect()
}

/// Returns the fake release's npm package.
fn tarball() -> Vec<u8> {
    let mut archive =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for name in ["package.json", "pyodide-lock.json.map"].iter().chain(&assets::NAMES) {
        let content = content(name);
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("package/{name}"), &content[..]).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// Returns the lock of the fake release.
fn fake_lock() -> Lock {
    Lock::parse(&fake_lock_text()).unwrap()
}

fn fake_lock_text() -> String {
    let file = |name: &&str| {
        let content = content(name);
        let (digest, size) = (Digest::of(&content), content.len());
        format!("[[file]]\nname='{name}'\nsha256='{digest}'\nsize={size}\nlicense='MIT'\n")
    };
    let archive = tarball();
    format!(
        "version = '1.2.3'\nsources = ['https://localhost:9/{{file}}']\n\
         [tarball]\npackage='pyodide'\nname='pyodide-1.2.3.tgz'\nsha256='{}'\nsize={}\n{}",
        Digest::of(&archive),
        archive.len(),
        assets::NAMES.iter().map(file).collect::<String>()
    )
}

/// Returns the options that make a fetch from these sources, without waiting between requests.
fn options<const N: usize>(sources: [&str; N]) -> FetchOptions {
    FetchOptions::default().sources(sources).backoff(Duration::from_millis(1))
}

/// Fetches the fake release over HTTP from `source`.
fn fetch_from(source: &str, dir: &Path) -> Result<FetchReport, Error> {
    let options = options([source]);
    fetch_locked(&fake_lock(), dir, &options, OsStr::new(NO_NPM), &mut Silent)
}

/// Returns the names in `dir`, sorted.
fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(name).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

/// Asserts that `dir` contains the complete fake release, and nothing else except the lock file.
#[track_caller]
fn assert_complete(dir: &Path) {
    let mut expected: Vec<_> = assets::NAMES.iter().map(ToString::to_string).collect();
    expected.push(".lock".to_owned());
    expected.sort();
    assert_eq!(names(dir), expected);
    for name in assets::NAMES {
        assert!(fs::read(dir.join(name)).unwrap() == content(name), "{name}");
    }
}

/// Writes the fake release into `dir` without fetching.
fn fill(dir: &Path) {
    for name in assets::NAMES {
        fs::write(dir.join(name), content(name)).unwrap();
    }
}

/// A temporary directory, removed when the test ends.
struct TestDir(PathBuf);

impl TestDir {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("isolet-assets-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Deref for TestDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
