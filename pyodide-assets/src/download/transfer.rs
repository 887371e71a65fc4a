//! Downloads one file from one URL: requested again after passing failures, resumed after
//! interruptions, with nothing trusted before it is checked.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Response, header};
use tokio::time::{Instant, sleep};

use super::part::Part;
use super::report::Reporter;
use super::{Obstacle, Wanted, place};
use crate::Error;
use crate::http::Failure;

/// How often a file is requested from one URL.
const ATTEMPTS: u32 = 4;
/// The time limit of one file from one URL.
const MAX_TIME: Duration = Duration::from_mins(20);
/// How long isolet waits if a server asks it to.
const MAX_WAIT: Duration = Duration::from_secs(30);

const OK: u16 = 200;
const PARTIAL_CONTENT: u16 = 206;
const RANGE_NOT_SATISFIABLE: u16 = 416;
/// The statuses that may be others a moment later.
const PASSING: [u16; 6] = [408, 429, 500, 502, 503, 504];

/// The transfer of one file from one URL.
pub(super) struct Transfer<'a> {
    pub(super) client: &'a Client,
    pub(super) file: &'a Wanted,
    pub(super) url: &'a str,
    /// How long to wait before the second request.
    pub(super) backoff: Duration,
    pub(super) news: &'a Reporter,
}

/// Why a URL did not deliver the file.
pub(super) enum Stop {
    /// The source does not have it now; another one may.
    Unavailable(Obstacle),
    /// Other sources would fail too.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Obstacle> for Stop {
    fn from(obstacle: Obstacle) -> Self {
        Self::Unavailable(obstacle)
    }
}

/// A file that is being received.
struct State<'a> {
    part: Part<'a>,
    /// The server's name for the content of which the part is the beginning.
    tag: Option<String>,
    /// Whether the part began in an earlier run.
    continued: bool,
    deadline: Instant,
}

impl Transfer<'_> {
    pub(super) async fn run(&self, dir: &Path) -> Result<(), Stop> {
        let part = Part::open(dir, self.file)?;
        let continued = part.length() > 0;
        let deadline = Instant::now() + MAX_TIME;
        let mut state = State { part, tag: None, continued, deadline };
        self.attempts(&mut state).await?;
        state.part.persist(dir)?;
        self.news.done();
        Ok(())
    }

    async fn attempts(&self, state: &mut State<'_>) -> Result<(), Stop> {
        let mut attempt = 1;
        let mut backoff = self.backoff;
        loop {
            let obstacle = match self.request(state).await {
                Ok(()) if state.part.digest() == self.file.sha256 => return Ok(()),
                // The partial file of an earlier run may be of another release, so the download
                // restarts once.
                Ok(()) if state.continued => {
                    state.restart()?;
                    continue;
                }
                Ok(()) => {
                    let (expected, got) = (self.file.sha256, state.part.digest());
                    state.restart()?;
                    let wrong = place::wrong_digest("the file", expected, got);
                    return Err(Obstacle::last(wrong).into());
                }
                Err(Stop::Unavailable(obstacle)) if !obstacle.is_final => obstacle,
                Err(stop) => return Err(stop),
            };
            let wait = obstacle.wait.unwrap_or(backoff);
            if attempt == ATTEMPTS || wait > MAX_WAIT || Instant::now() + wait > state.deadline {
                return Err(obstacle.into());
            }
            sleep(wait).await;
            attempt += 1;
            backoff *= 2;
        }
    }

    /// Requests the missing bytes and appends what arrives.
    async fn request(&self, state: &mut State<'_>) -> Result<(), Stop> {
        let start = state.part.length();
        let response = self.get(start, state.tag.as_deref(), state.deadline).await?;
        let status = response.status();
        let size = match status.as_u16() {
            OK => {
                state.restart()?;
                response.content_length()
            }
            PARTIAL_CONTENT if start > 0 => match continued_size(&response, start) {
                Some(size) => Some(size),
                None => return Err(not_continued(state)?.into()),
            },
            RANGE_NOT_SATISFIABLE if start > 0 => return Err(not_continued(state)?.into()),
            code => {
                let wait = retry_after(&response);
                let asks = match wait {
                    Some(wait) if wait > MAX_WAIT => {
                        format!(" and wants no request for {} s", wait.as_secs())
                    }
                    _ => String::new(),
                };
                let reason = format!("the server answers with status {status}{asks}");
                let is_final = !PASSING.contains(&code);
                return Err(Obstacle { reason, help: None, is_final, wait }.into());
            }
        };
        let expected = self.file.size;
        if let Some(size) = size
            && expected.exact().map_or(size > expected.max(), |exact| size != exact)
        {
            let expected = match expected.exact() {
                Some(exact) => format!("expected {exact}"),
                None => format!("at most {}", expected.max()),
            };
            let reason = format!("the server has {size} bytes ({expected})");
            return Err(Obstacle::last(reason).into());
        }
        if start == 0 || status.as_u16() == OK {
            state.tag = strong_tag(&response);
        }
        self.receive(response, size.or(expected.exact()), state).await
    }

    /// Requests the file, or its bytes from `start` on. `tag` is the `ETag` of the bytes before.
    ///
    /// The client follows up to ten redirects and decodes nothing.
    async fn get(
        &self,
        start: u64,
        tag: Option<&str>,
        deadline: Instant,
    ) -> Result<Response, Obstacle> {
        let left = deadline.saturating_duration_since(Instant::now());
        let request = self.client.get(self.url).timeout(left);
        let mut request = request.header(header::ACCEPT_ENCODING, "identity");
        if start > 0 {
            request = request.header(header::RANGE, format!("bytes={start}-"));
            if let Some(tag) = tag {
                request = request.header(header::IF_RANGE, tag);
            }
        }
        request.send().await.map_err(|error| Failure::of(&error, self.url).into())
    }

    /// Appends the body, which has its end at `size`, if that is known.
    async fn receive(
        &self,
        mut response: Response,
        size: Option<u64>,
        state: &mut State<'_>,
    ) -> Result<(), Stop> {
        let part = &mut state.part;
        let max = self.file.size.max();
        self.news.has(part.length(), size.unwrap_or_default());
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(error) => return Err(Obstacle::from(Failure::of(&error, self.url)).into()),
            };
            let bytes = chunk.len() as u64;
            if part.length() + bytes > max {
                part.restart()?;
                let expected =
                    if self.file.size.exact().is_some() { "expected" } else { "allowed" };
                let reason = format!("the server sends more than the {expected} {max} bytes");
                return Err(Obstacle::last(reason).into());
            }
            part.append(&chunk)?;
            self.news.more(bytes);
        }
        let length = part.length();
        match size {
            Some(size) if length < size => {
                let reason = format!("the transfer ended after {length} of {size} bytes");
                Err(Obstacle::passing(reason).into())
            }
            _ => Ok(()),
        }
    }
}

impl State<'_> {
    /// Discards all bytes.
    fn restart(&mut self) -> Result<(), Error> {
        self.continued = false;
        self.tag = None;
        self.part.restart()
    }
}

/// Discards the bytes that a server does not continue.
fn not_continued(state: &mut State<'_>) -> Result<Obstacle, Error> {
    state.restart()?;
    Ok(Obstacle {
        wait: Some(Duration::ZERO),
        ..Obstacle::passing("the server does not continue a download".to_owned())
    })
}

/// Returns the size of the whole file, if a partial response is exactly its rest.
fn continued_size(response: &Response, start: u64) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, size) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let size: u64 = size.parse().ok()?;
    (first == start && last.checked_add(1) == Some(size)).then_some(size)
}

/// Returns the `ETag`, unless it is one that different contents may have.
fn strong_tag(response: &Response) -> Option<String> {
    let tag = response.headers().get(header::ETAG)?.to_str().ok()?;
    tag.starts_with('"').then(|| tag.to_owned())
}

/// Returns how long the server wants to be left alone.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
