//! Filling a directory with the locked files: what is right stays, the rest comes by npm or HTTPS.

mod dir_lock;
mod http;
mod npm;
mod part;
mod place;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use self::dir_lock::DirLock;
use crate::lock::{Lock, LockedFile, lock};
use crate::{Error, Progress, assets};

/// How to fetch; the default asks npm first and then the lock's own sources.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    sources: Vec<String>,
    npm: Npm,
}

/// Whether the npm client may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Npm {
    /// Before HTTPS, if there is one on the `PATH` and no other source was named.
    #[default]
    Auto,
    /// Not at all.
    Never,
}

impl FetchOptions {
    /// Names the addresses to download from, in the order to try them.
    ///
    /// `{file}` in an address stands for a file's name; without it the name is appended as the last
    /// part of the path. Named sources are used instead of npm and of the lock's sources. What they
    /// deliver is checked like everything else, so plain `http://` is accepted.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sources = sources.into_iter().map(Into::into).collect();
        self
    }

    /// Says whether the npm client may be used. By default it may.
    #[must_use]
    pub fn npm(mut self, npm: Npm) -> Self {
        self.npm = npm;
        self
    }
}

/// What a fetch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchReport {
    fetched: Vec<String>,
    origin: Option<Origin>,
}

/// Where fetched files came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The npm client.
    Npm,
    /// A download from one of the sources, over HTTPS unless the caller named others.
    Download,
}

impl FetchReport {
    const NOTHING: Self = Self { fetched: Vec::new(), origin: None };

    /// The names of the files that were fetched, none if all were right already.
    #[must_use]
    pub fn fetched(&self) -> &[String] {
        &self.fetched
    }

    /// Where they came from; `None` if nothing had to be fetched.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.origin
    }
}

/// Makes `dir` contain every locked file.
///
/// Files that are right already are not touched, and when all are, nothing at all is. A file
/// appears under its name only complete and checked; a download that was cut off is kept as
/// `NAME.part` and continued by the next call. Any number of processes may fetch into one directory
/// at a time: they take turns.
///
/// # Errors
///
/// [`Error::Write`] when the directory or disk does not take the files; [`Error::Fetch`] when
/// neither npm nor any source delivered them, with what each said.
pub fn fetch(
    dir: &Path,
    options: &FetchOptions,
    progress: &mut dyn Progress,
) -> Result<FetchReport, Error> {
    let npm = OsStr::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    fetch_locked(lock()?, dir, options, npm, progress)
}

pub(crate) fn fetch_locked(
    lock: &Lock,
    dir: &Path,
    options: &FetchOptions,
    npm: &OsStr,
    progress: &mut dyn Progress,
) -> Result<FetchReport, Error> {
    if wrong_files(lock, dir).is_empty() {
        return Ok(FetchReport::NOTHING);
    }
    fs::create_dir_all(dir).map_err(|cause| Error::write(dir, cause))?;
    let _turn = DirLock::acquire(dir, progress)?;
    // Another process may have fetched while this one waited for its turn.
    let wrong = wrong_files(lock, dir);
    if wrong.is_empty() {
        return Ok(FetchReport::NOTHING);
    }
    let origin = fetch_files(lock, &wrong, dir, options, npm, progress)?;
    let fetched = wrong.iter().map(|file| file.name().to_owned()).collect();
    Ok(FetchReport { fetched, origin: Some(origin) })
}

fn fetch_files(
    lock: &Lock,
    files: &[&LockedFile],
    dir: &Path,
    options: &FetchOptions,
    npm: &OsStr,
    progress: &mut dyn Progress,
) -> Result<Origin, Error> {
    let sources = match &options.sources[..] {
        [] => lock.sources(),
        named => named,
    };
    let npm_said = if options.npm == Npm::Never || !options.sources.is_empty() {
        String::new()
    } else {
        match npm::fetch_files(lock, files, dir, npm, progress) {
            Ok(()) => return Ok(Origin::Npm),
            Err(Failure::Local(error)) => return Err(error),
            Err(Failure::Remote(said)) => format!("{said}; "),
        }
    };
    match http::fetch_files(files, dir, sources, progress) {
        Ok(()) => Ok(Origin::Download),
        Err(Failure::Local(error)) => Err(error),
        Err(Failure::Remote(said)) => Err(Error::Fetch {
            version: lock.version().to_owned(),
            reason: format!("{npm_said}{said}"),
        }),
    }
}

fn wrong_files<'a>(lock: &'a Lock, dir: &Path) -> Vec<&'a LockedFile> {
    lock.files().iter().filter(|file| assets::read(dir, file).is_err()).collect()
}

/// Why one way of fetching did not work.
#[derive(Debug)]
enum Failure {
    /// This machine's disk is the problem: another way would not work either.
    Local(Error),
    /// The other side is the problem, in words that can be part of a sentence.
    Remote(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Local(error)
    }
}
