//! Downloads over HTTPS: one file at a time, resumed after interruptions, with nothing trusted
//! before it is checked.

use std::io::Read;
use std::path::Path;

use super::part::Part;
use super::{Failure, place};
use crate::error::plain;
use crate::{Download, Error, LockedFile, Progress};

/// How often a file is requested from one URL if the transfer keeps breaking off.
const ATTEMPTS: u32 = 4;

const OK: u16 = 200;
const PARTIAL_CONTENT: u16 = 206;
const RANGE_NOT_SATISFIABLE: u16 = 416;

/// Downloads `files` into `dir`, each from the first of `sources` that has it.
pub(super) fn fetch_files(
    files: &[&LockedFile],
    dir: &Path,
    sources: &[String],
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    if sources.is_empty() {
        return Err(Failure::Remote("no HTTPS source is named".to_owned()));
    }
    files.iter().try_for_each(|file| fetch_file(file, dir, sources, progress))
}

fn fetch_file(
    file: &LockedFile,
    dir: &Path,
    sources: &[String],
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let mut said: Vec<(String, String)> = Vec::new();
    for source in sources {
        let url = url(source, file.name());
        match (Transfer { file, url: &url, progress }).run(dir) {
            Ok(()) => return Ok(()),
            Err(Stop::Failed(failure)) => return Err(failure),
            // Without a network every source fails with the same reason, which is reported once.
            Err(Stop::Unavailable(reason)) => match said.last_mut() {
                Some((urls, last)) if *last == reason => *urls = format!("{urls} and `{url}`"),
                _ => said.push((format!("`{url}`"), reason)),
            },
        }
    }
    let said: Vec<_> = said.iter().map(|(urls, reason)| format!("{urls}: {reason}")).collect();
    Err(Failure::Remote(said.join(", ")))
}

/// Returns the URL of `file` at `source`.
fn url(source: &str, file: &str) -> String {
    if source.contains("{file}") {
        source.replace("{file}", file)
    } else {
        format!("{}/{file}", source.trim_end_matches('/'))
    }
}

/// The transfer of one file from one URL.
struct Transfer<'a> {
    file: &'a LockedFile,
    url: &'a str,
    progress: &'a mut dyn Progress,
}

/// Why a URL did not deliver the file.
enum Stop {
    /// The source does not have it now; another one may.
    Unavailable(String),
    /// Other sources would fail too.
    Failed(Failure),
}

/// How one request ended.
enum Ending {
    Complete,
    /// A retry may get further.
    BrokenOff(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(Failure::Local(error))
    }
}

impl Transfer<'_> {
    fn run(&mut self, dir: &Path) -> Result<(), Stop> {
        let mut part = Part::open(dir, self.file)?;
        let mut continued = part.length() > 0;
        let mut attempt = 1;
        loop {
            let ending = self.request(&mut part).inspect_err(|_| {
                if part.length() == 0 {
                    part.discard();
                }
            })?;
            match ending {
                Ending::Complete if part.digest() == self.file.sha256() => {
                    part.persist(dir)?;
                    self.progress.finish();
                    return Ok(());
                }
                // The partial file of an earlier run may be of another release, so the download
                // restarts once.
                Ending::Complete if continued => part.restart()?,
                Ending::Complete => {
                    part.discard();
                    let wrong = place::wrong_digest(self.url, self.file.sha256(), part.digest());
                    return Err(Stop::Failed(Failure::Remote(wrong)));
                }
                Ending::BrokenOff(reason) if attempt == ATTEMPTS => {
                    if part.length() == 0 {
                        part.discard();
                    }
                    return Err(Stop::Unavailable(reason));
                }
                Ending::BrokenOff(_) => attempt += 1,
            }
            continued &= part.length() > 0;
        }
    }

    /// Requests the missing bytes and appends what arrives.
    fn request(&mut self, part: &mut Part<'_>) -> Result<Ending, Stop> {
        let download = Download::get(self.url, part.length()).map_err(Stop::Unavailable)?;
        let start = match download.status() {
            OK => 0,
            PARTIAL_CONTENT if continues(&download, part, self.file) => part.length(),
            PARTIAL_CONTENT | RANGE_NOT_SATISFIABLE if part.length() > 0 => {
                part.restart()?;
                return Ok(Ending::BrokenOff("the server does not continue a download".to_owned()));
            }
            _ => {
                let status = download.status_text();
                let reason = format!("the server answers with status {status}");
                return Err(Stop::Unavailable(reason));
            }
        };
        if let Some(offered) = download.content_length()
            && start + offered != self.file.size()
        {
            return Err(Stop::Unavailable(format!(
                "the server has {} bytes (expected {})",
                start + offered,
                self.file.size()
            )));
        }
        if start == 0 {
            part.restart()?;
        }
        self.progress.start(self.file.name(), self.file.size());
        self.progress.advance(part.length());
        self.receive(download, part)
    }

    fn receive(&mut self, body: Download, part: &mut Part<'_>) -> Result<Ending, Stop> {
        // One byte more than expected is enough to detect the wrong length.
        let mut body = body.take(part.missing() + 1);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let bytes = match body.read(&mut buffer) {
                Ok(count) => &buffer[..count],
                Err(error) => return Ok(Ending::BrokenOff(plain(&error))),
            };
            if bytes.is_empty() && part.missing() > 0 {
                return Ok(Ending::BrokenOff(format!(
                    "the transfer ended after {} of {} bytes",
                    part.length(),
                    self.file.size()
                )));
            }
            if bytes.is_empty() {
                return Ok(Ending::Complete);
            }
            if bytes.len() as u64 > part.missing() {
                part.discard();
                return Err(Stop::Unavailable(format!(
                    "the server sends more than the expected {} bytes",
                    self.file.size()
                )));
            }
            part.append(bytes)?;
            self.progress.advance(bytes.len() as u64);
        }
    }
}

/// Returns `true` if a partial response is exactly the rest of the file.
fn continues(download: &Download, part: &Part<'_>, file: &LockedFile) -> bool {
    let expected = format!("bytes {}-{}/{}", part.length(), file.size() - 1, file.size());
    part.length() > 0 && download.content_range() == Some(expected.as_str())
}
