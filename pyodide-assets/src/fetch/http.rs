//! Downloads over HTTPS: one file at a time, resumed after interruptions, with nothing trusted
//! before it is checked.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body};

use super::part::Part;
use super::{Failure, place};
use crate::error::plain;
use crate::{Error, LockedFile, Progress};

/// How often a file is requested from one URL if the transfer keeps breaking off.
const ATTEMPTS: u32 = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the server may be silent, even in the middle of a file.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
const FILE_TIMEOUT: Duration = Duration::from_mins(15);

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
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(SILENCE_TIMEOUT))
        .timeout_per_read(Some(SILENCE_TIMEOUT))
        .timeout_recv_body(Some(FILE_TIMEOUT))
        .user_agent(concat!("isolet/", env!("CARGO_PKG_VERSION")))
        .build();
    let agent = config.new_agent();
    files.iter().try_for_each(|file| fetch_file(&agent, file, dir, sources, progress))
}

fn fetch_file(
    agent: &Agent,
    file: &LockedFile,
    dir: &Path,
    sources: &[String],
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let mut said: Vec<(String, String)> = Vec::new();
    for source in sources {
        let url = url(source, file.name());
        match (Download { agent, file, url: &url, progress }).run(dir) {
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

/// The download of one file from one URL.
struct Download<'a> {
    agent: &'a Agent,
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

impl Download<'_> {
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
        let mut request = self.agent.get(self.url).header(header::ACCEPT_ENCODING, "identity");
        if part.length() > 0 {
            request = request.header(header::RANGE, format!("bytes={}-", part.length()));
        }
        let response = request.call().map_err(|error| Stop::Unavailable(words(error)))?;
        let start = match response.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT if continues(&response, part, self.file) => part.length(),
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE
                if part.length() > 0 =>
            {
                part.restart()?;
                return Ok(Ending::BrokenOff("the server does not continue a download".to_owned()));
            }
            status => {
                return Err(Stop::Unavailable(format!("the server answers with status {status}")));
            }
        };
        if let Some(offered) = response.body().content_length()
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
        self.receive(response.into_body(), part)
    }

    fn receive(&mut self, body: Body, part: &mut Part<'_>) -> Result<Ending, Stop> {
        // One byte more than expected is enough to detect the wrong length.
        let mut body = body.into_reader().take(part.missing() + 1);
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
fn continues(response: &Response<Body>, part: &Part<'_>, file: &LockedFile) -> bool {
    let expected = format!("bytes {}-{}/{}", part.length(), file.size() - 1, file.size());
    let range = response.headers().get(header::CONTENT_RANGE);
    part.length() > 0 && range.is_some_and(|range| range == expected.as_str())
}

/// Returns why a request was not answered, as part of a sentence.
fn words(error: ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "the host name cannot be resolved".to_owned(),
        // The standard library has no kind for this error and appends the C library's text.
        ureq::Error::Io(error) if error.to_string().starts_with("failed to lookup address") => {
            "the host name cannot be resolved".to_owned()
        }
        ureq::Error::Io(error) => plain(&error),
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        error => error.to_string(),
    }
}
