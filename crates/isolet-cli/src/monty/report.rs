//! The events for the client, with the clocks and limits of the session.

use isolet_service::core::in_options;
use std::io;
use std::time::{Duration, Instant};

use super::channel;
use super::messages::events::{ChildEvent, ErrorEvent, Event, FatalError, RaisedException};
use super::messages::settings::ResourceLimits;
use super::messages::values::Unit;

/// The time that a session's code has run, and its limits.
pub(super) struct Report {
    wanted: ResourceLimits,
    /// The time of all feeds before this one.
    before: Duration,
    /// The time of this feed, until `since`.
    feed: Duration,
    since: Option<Instant>,
}

impl Report {
    pub(super) fn new(wanted: ResourceLimits) -> Self {
        Self { wanted, before: Duration::ZERO, feed: Duration::ZERO, since: None }
    }

    pub(super) fn begin_feed(&mut self) {
        self.before += std::mem::take(&mut self.feed);
    }

    /// Starts the clock: the guest runs.
    pub(super) fn run(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Stops the clock: the guest waits for the client, or has ended.
    pub(super) fn stop(&mut self) {
        if let Some(since) = self.since.take() {
            self.feed += since.elapsed();
        }
    }

    /// Writes an event; an error instead of one that the client would refuse.
    pub(super) fn write(&self, event: Event) -> io::Result<()> {
        let feed = self.feed + self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let stamp = |kind| ChildEvent {
            kind: Some(kind),
            total_execution_micros: micros(self.before + feed),
            max_suspensions: self.wanted.max_suspensions,
            feed_execution_micros: micros(feed),
            max_feed_duration_micros: self.wanted.max_feed_duration_micros,
            max_turn_duration_micros: self.wanted.max_turn_duration_micros,
            max_total_sleep_micros: self.wanted.max_total_sleep_micros,
        };
        let Err(length) = channel::write(&stamp(event))? else { return Ok(()) };
        let text = format!(
            "an event of {length} bytes cannot go to the client, the limit is {} bytes",
            channel::MAX_EVENT_BYTES
        );
        write(&stamp(error("RuntimeError", text)))
    }
}

/// Writes an event outside a session.
pub(super) fn write_bare(event: Event) -> io::Result<()> {
    write(&ChildEvent { kind: Some(event), ..ChildEvent::default() })
}

fn write(event: &ChildEvent) -> io::Result<()> {
    channel::write(event)?
        .map_err(|length| io::Error::other(format!("{length} bytes are too long")))
}

/// Returns the event of an exception without a traceback.
pub(super) fn error(exc_type: &str, message: impl Into<String>) -> Event {
    raised(RaisedException {
        exc_type: exc_type.to_owned(),
        message: Some(in_options(&message.into())),
        traceback: Vec::new(),
        data: None,
    })
}

/// Returns the event of an exception.
pub(super) fn raised(exception: RaisedException) -> Event {
    Event::Error(ErrorEvent { exception: Some(exception) })
}

pub(super) fn ok() -> Event {
    Event::Ok(Unit {})
}

/// Returns the event after which the worker ends.
pub(super) fn fatal(message: impl Into<String>) -> Event {
    Event::FatalError(FatalError { message: message.into() })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
