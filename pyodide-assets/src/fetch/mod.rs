//! Fills a directory with the locked files. Correct files stay; the others are fetched by npm or
//! HTTPS.

mod npm;
mod place;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::download::{DirLock, DownloadError, Downloader, Wanted};
use crate::lock::{Lock, LockedFile, lock};
use crate::{Authorities, Error, Progress, assets};

/// Options of a fetch. By default it tries npm first and then the lock's own sources.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    sources: Vec<String>,
    npm: Npm,
    authorities: Authorities,
    backoff: Option<Duration>,
}

/// Whether the npm client may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Npm {
    /// Use npm before HTTPS, if it is on the `PATH` and the caller set no sources.
    #[default]
    Auto,
    /// Do not use npm.
    Never,
}

impl FetchOptions {
    /// Sets the URLs to download from, in the order in which they are tried.
    ///
    /// `{file}` in a URL is replaced by a file's name; without it the name is appended as the last
    /// part of the path. These sources replace npm and the lock's sources. Their files are checked
    /// like all others, so plain `http://` is accepted.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sources = sources.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether the npm client may be used. Default: [`Npm::Auto`].
    #[must_use]
    pub fn npm(mut self, npm: Npm) -> Self {
        self.npm = npm;
        self
    }

    /// Sets how long to wait before a file is requested again.
    #[cfg(test)]
    pub(crate) fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Trusts these certificate authorities, too, when it downloads. npm has settings of its own.
    #[must_use]
    pub fn authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = authorities;
        self
    }
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchReport {
    fetched: Vec<String>,
    origin: Option<Origin>,
}

/// The origin of fetched files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The npm client.
    Npm,
    /// A download from one of the sources, over HTTPS unless the caller set other URLs.
    Download,
}

impl FetchReport {
    const NOTHING: Self = Self { fetched: Vec::new(), origin: None };

    /// Returns the names of the files that were fetched; empty if all were already correct.
    #[must_use]
    pub fn fetched(&self) -> &[String] {
        &self.fetched
    }

    /// Returns where they came from; `None` if nothing had to be fetched.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.origin
    }
}

/// Makes `dir` contain every locked file.
///
/// Correct files are not touched. A file appears under its name only when it is complete and
/// checked. An interrupted download is kept as `NAME.part` and resumed by the next call. Any number
/// of processes may fetch into one directory concurrently: they take turns.
///
/// # Errors
///
/// [`Error::Write`] if the directory or disk cannot store the files; [`Error::Fetch`] if neither
/// npm nor any source delivered them, with the reason of each.
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
    // Another process may have fetched them while this one waited for the lock.
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
    let mut downloader = Downloader::new(sources).authorities(options.authorities.clone());
    if let Some(backoff) = options.backoff {
        downloader = downloader.backoff(backoff);
    }
    let wanted: Vec<Wanted> = files.iter().map(|file| Wanted::from(*file)).collect();
    match downloader.download_alone(&wanted, dir, progress) {
        Ok(()) => Ok(Origin::Download),
        Err(DownloadError::Local(error)) => Err(error),
        Err(DownloadError::Remote { reason, help, .. }) => {
            let help = help.map(|help| format!("; {help}")).unwrap_or_default();
            Err(Error::Fetch {
                version: lock.version().to_owned(),
                reason: format!("{npm_said}{reason}{help}"),
            })
        }
    }
}

fn wrong_files<'a>(lock: &'a Lock, dir: &Path) -> Vec<&'a LockedFile> {
    lock.files().iter().filter(|file| assets::read(dir, file).is_err()).collect()
}

/// Why one way of fetching failed.
#[derive(Debug)]
enum Failure {
    /// This machine's disk is the problem, so another way would fail too.
    Local(Error),
    /// The remote side is the problem, described as part of a sentence.
    Remote(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Local(error)
    }
}
