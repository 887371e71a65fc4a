//! Downloads of files with known digests, over HTTP and HTTPS: the one way in which isolet itself
//! fetches anything, Pyodide's files as well as packages.
//!
//! Several files are downloaded at once, and each from the first source that has it. An interrupted
//! download is kept as `NAME.part` and resumed. A file gets its name only when it is complete and
//! has its digest.

mod dir_lock;
mod part;
pub(crate) mod place;
mod report;
mod transfer;

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use futures_util::future::{Either, pending, select};
use futures_util::{StreamExt, stream};
use reqwest::Client;

pub(crate) use self::dir_lock::DirLock;
use self::report::{News, Reporter};
use self::transfer::{Stop, Transfer};
use crate::error::plain;
use crate::http::{self, Authorities, Failure, Help};
use crate::{Digest, Error, LockedFile, Progress};

/// How many files are downloaded at once.
const AT_ONCE: usize = 4;
/// How long to wait before the second request of a file; twice as long before each further one.
const BACKOFF: Duration = Duration::from_millis(250);
/// How long the server may be silent, even in the middle of a file.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to look whether anybody waits for a download.
const LOOK: Duration = Duration::from_millis(100);

/// A file to download.
#[derive(Debug, Clone)]
pub struct Wanted {
    name: String,
    sha256: Digest,
    size: Size,
}

/// What is known of a file's size, in bytes.
#[derive(Debug, Clone, Copy)]
enum Size {
    Exactly(u64),
    AtMost(u64),
}

impl Wanted {
    /// Describes a file of unknown size.
    ///
    /// `name` is a plain file name, without a directory.
    pub fn new(name: impl Into<String>, sha256: Digest, max_bytes: u64) -> Self {
        Self { name: name.into(), sha256, size: Size::AtMost(max_bytes) }
    }

    /// Returns the file's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<&LockedFile> for Wanted {
    fn from(file: &LockedFile) -> Self {
        let size = Size::Exactly(file.size());
        Self { name: file.name().to_owned(), sha256: file.sha256(), size }
    }
}

impl Size {
    fn exact(self) -> Option<u64> {
        match self {
            Self::Exactly(bytes) => Some(bytes),
            Self::AtMost(_) => None,
        }
    }

    fn max(self) -> u64 {
        let (Self::Exactly(bytes) | Self::AtMost(bytes)) = self;
        bytes
    }
}

/// Where files are downloaded from.
#[derive(Debug, Clone)]
pub struct Downloader {
    sources: Vec<String>,
    authorities: Authorities,
    backoff: Duration,
    given_up: Option<Arc<AtomicBool>>,
}

/// Why files were not downloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// This machine's disk is the problem.
    #[error(transparent)]
    Local(#[from] Error),
    /// No source delivered a file.
    #[error("`{file}` cannot be fetched: {reason}")]
    #[non_exhaustive]
    Remote {
        /// The file's name.
        file: String,
        /// The reason of each source.
        reason: String,
        /// What might help.
        help: Option<Help>,
    },
}

/// Why one request did not deliver what was asked for.
#[derive(Debug)]
struct Obstacle {
    reason: String,
    help: Option<Help>,
    /// Whether a second request would end in the same way.
    is_final: bool,
    /// How long the server wants to be left alone.
    wait: Option<Duration>,
}

impl Obstacle {
    fn last(reason: String) -> Self {
        Self { reason, help: None, is_final: true, wait: None }
    }

    fn passing(reason: String) -> Self {
        Self { reason, help: None, is_final: false, wait: None }
    }
}

impl From<Failure> for Obstacle {
    fn from(Failure { reason, help, is_final }: Failure) -> Self {
        Self { reason, help, is_final, wait: None }
    }
}

impl Downloader {
    /// Downloads from these URLs, in the order in which they are tried. `{file}` in a URL is
    /// replaced by a file's name; without it the name is appended as the last part of the path.
    pub fn new(sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let sources = sources.into_iter().map(Into::into).collect();
        Self { sources, authorities: Authorities::default(), backoff: BACKOFF, given_up: None }
    }

    /// Trusts these certificate authorities, too.
    #[must_use]
    pub fn authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = authorities;
        self
    }

    /// Sets how long to wait before the second request of a file; the wait doubles before each
    /// further one. Default: 250 ms.
    #[must_use]
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    /// Has downloads fail once `flag` is set, because nobody waits for them any more.
    #[must_use]
    pub fn given_up(mut self, flag: Arc<AtomicBool>) -> Self {
        self.given_up = Some(flag);
        self
    }

    /// Downloads `files` into `dir`, which is made if it does not exist. Blocks, and may be called
    /// within an async runtime. Any number of processes may download into one directory: they take
    /// turns.
    ///
    /// It uses the proxies that the environment names (`HTTPS_PROXY` and the like), and trusts the
    /// system's certificate authorities, or those of `SSL_CERT_FILE`, and Mozilla's.
    ///
    /// # Errors
    ///
    /// That of the first file that was not delivered. Those after it are then not waited for.
    pub fn download(
        &self,
        files: &[Wanted],
        dir: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), DownloadError> {
        fs::create_dir_all(dir).map_err(|cause| Error::write(dir, cause))?;
        let _turn = DirLock::acquire(dir, progress)?;
        self.download_alone(files, dir, progress)
    }

    /// Does the same for a caller that has the lock of the directory.
    pub(crate) fn download_alone(
        &self,
        files: &[Wanted],
        dir: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), DownloadError> {
        let (sender, news) = channel();
        thread::scope(|scope| {
            let lost = |reason| DownloadError::of(files, reason);
            let thread = thread::Builder::new().name("isolet-download".to_owned());
            let worker = thread.spawn_scoped(scope, || self.work(files, dir, sender));
            let worker = worker.map_err(|error| lost(plain(&error)))?;
            report::show(files, &news, progress);
            worker.join().unwrap_or_else(|_| Err(lost("the download ended early".to_owned())))
        })
    }

    /// Does the work on its own thread, so that a caller may block in any context.
    fn work(&self, files: &[Wanted], dir: &Path, news: Sender<News>) -> Result<(), DownloadError> {
        let lost = |reason| DownloadError::of(files, reason);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| lost(plain(&error)))?;
        let client = http::client(&self.authorities).map_err(lost)?;
        let client = client.read_timeout(SILENCE_TIMEOUT).build();
        let client = &client.map_err(|error| lost(format!("this program has no TLS: {error}")))?;
        let transfers = files.iter().enumerate().map(move |(index, file)| {
            let news = Reporter::new(news.clone(), index);
            async move { self.transfer(client, file, dir, &news).await }
        });
        runtime.block_on(async {
            let mut ends = stream::iter(transfers).buffered(AT_ONCE);
            let all = async {
                while let Some(end) = ends.next().await {
                    end?;
                }
                Ok(())
            };
            match select(pin!(all), pin!(self.until_given_up())).await {
                Either::Left((ended, _)) => ended,
                Either::Right(_) => Err(lost("nobody waits for it any more".to_owned())),
            }
        })
    }

    async fn until_given_up(&self) {
        let Some(flag) = &self.given_up else { return pending().await };
        while !flag.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Downloads a file from the first source that has it.
    async fn transfer(
        &self,
        client: &Client,
        file: &Wanted,
        dir: &Path,
        news: &Reporter,
    ) -> Result<(), DownloadError> {
        let mut said: Vec<(String, String)> = Vec::new();
        let mut help = None;
        for source in &self.sources {
            let url = url(source, &file.name);
            let transfer = Transfer { client, file, url: &url, backoff: self.backoff, news };
            match transfer.run(dir).await {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(error.into()),
                // Without a network every source fails with the same reason, which is reported
                // once.
                Err(Stop::Unavailable(obstacle)) => {
                    help = help.or(obstacle.help);
                    match said.last_mut() {
                        Some((urls, last)) if *last == obstacle.reason => {
                            *urls = format!("{urls} and `{url}`");
                        }
                        _ => said.push((format!("`{url}`"), obstacle.reason)),
                    }
                }
            }
        }
        let said: Vec<_> = said.iter().map(|(urls, reason)| format!("{urls}: {reason}")).collect();
        let reason = if said.is_empty() { "no source is named".into() } else { said.join(", ") };
        Err(DownloadError::Remote { file: file.name.clone(), reason, help })
    }
}

impl DownloadError {
    /// Makes the error for what failed before any request.
    fn of(files: &[Wanted], reason: String) -> Self {
        let file = files.first().map(|file| file.name.clone()).unwrap_or_default();
        Self::Remote { file, reason, help: None }
    }
}

/// Returns the URL of `file` at `source`.
fn url(source: &str, file: &str) -> String {
    if source.contains("{file}") {
        source.replace("{file}", file)
    } else {
        format!("{}/{file}", source.trim_end_matches('/'))
    }
}
