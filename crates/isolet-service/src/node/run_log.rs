//! The events of a durable run, from which clients read on where they stopped, also if another
//! process of the node has begun the run.
//!
//! The run waits for no reader. As much is kept as the output of a run may have; of a run that
//! prints more, the oldest part is dropped, and a reader that has not seen it is told so.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isolet::{Stream, Value};
use opentelemetry::trace::SpanContext;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use super::Refusal;
use super::events::Event;
use super::traces::Traces;
use crate::core::{Display, Execution, Failure, Kept, Listener, Policy, ToolCall, size_up_to};
use isolet::internals::lock;

/// Output is kept in pieces of up to so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// What an event takes besides its texts, in bytes.
const EVENT_BYTES: u64 = 128;

/// For how long after a call the process may be about to tell another one with a lower number.
const OUT_OF_ORDER: Duration = Duration::from_secs(1);

/// How much of a run's events a client has seen. A replay gives it the same output, displays and
/// calls, but may mix them differently, so each is counted for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Bytes of output, of both streams.
    pub output: u64,
    pub displays: u64,
    /// The highest number of a call.
    pub call: u64,
}

impl Cursor {
    /// Returns the cursor that has seen what either has seen.
    fn max(self, other: Self) -> Self {
        Self {
            output: self.output.max(other.output),
            displays: self.displays.max(other.displays),
            call: self.call.max(other.call),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.output, self.displays, self.call)
    }
}

impl FromStr for Cursor {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let mut parts = text.split('-').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(output)), Some(Ok(displays)), Some(Ok(call)), None) => {
                Ok(Self { output, displays, call })
            }
            _ => Err(Refusal::Unreadable("`after` is no cursor of this run's events".to_owned())),
        }
    }
}

/// How a durable run ended.
#[derive(Clone)]
pub enum RunEnd {
    Done(Arc<Execution>),
    /// It did not begin, or its session ended.
    Failed(Failure),
    /// The node ends, and goes on with it when it is started again.
    Left,
}

impl RunEnd {
    /// Returns the execution.
    pub fn execution(self) -> Result<Execution, Refusal> {
        match self {
            Self::Done(execution) => Ok(Arc::unwrap_or_clone(execution)),
            Self::Failed(failure) => Err(failure.into()),
            Self::Left => Err(Refusal::Draining),
        }
    }
}

/// A run of a durable session.
pub struct DurableRun {
    /// Its number in its session.
    number: u64,
    /// Set if another process has begun it.
    is_again: bool,
    /// How much of the events is kept, in bytes.
    most: u64,
    /// The maximum size of its value, in bytes.
    max_value: u64,
    log: Mutex<Log>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Log {
    entries: VecDeque<Entry>,
    /// The position of the first entry, counted from the beginning of the run.
    first: u64,
    bytes: u64,
    /// What was told.
    at: Cursor,
    /// What is dropped.
    dropped: Cursor,
    last_call: Option<Instant>,
    end: Option<RunEnd>,
}

/// An event, and what was told with it.
struct Entry {
    what: What,
    at: Cursor,
}

enum What {
    Output(Stream, String),
    Display(Display),
    /// A call that waits for its answer.
    Call(u64, String, Value),
    Uncall(u64),
    /// A call that is over: nobody has to hear of it any more.
    Over,
}

impl What {
    fn bytes(&self) -> u64 {
        EVENT_BYTES
            + match self {
                Self::Output(_, text) => text.len() as u64,
                Self::Display(display) => size_up_to(usize::MAX, display) as u64,
                // The limit of calls bounds them.
                Self::Call(..) | Self::Uncall(_) | Self::Over => 0,
            }
    }
}

/// What a reader is told.
pub enum Told {
    Event(Event),
    /// The events up to the cursor are not kept any more.
    Dropped,
    /// The last one.
    End(RunEnd),
}

/// Reads a run's events.
pub struct Reader {
    run: Arc<DurableRun>,
    changed: watch::Receiver<()>,
    /// Where it has begun, and what it has seen.
    from: Cursor,
    seen: Cursor,
    next: u64,
    has_ended: bool,
}

impl DurableRun {
    pub(crate) fn new(number: u64, is_again: bool, policy: &Policy) -> Arc<Self> {
        let (most, max_value) = (policy.output_bytes(), policy.value_bytes());
        let (log, changed) = (Mutex::default(), watch::Sender::new(()));
        Arc::new(Self { number, is_again, most, max_value, log, changed })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the maximum size of its value, in bytes.
    pub fn max_value(&self) -> u64 {
        self.max_value
    }

    /// Reads the events after the cursor.
    pub fn read(self: &Arc<Self>, after: Cursor) -> Reader {
        Reader {
            changed: self.changed.subscribe(),
            run: Arc::clone(self),
            from: after,
            seen: after,
            next: 0,
            has_ended: false,
        }
    }

    /// Returns how it ended, if it has.
    pub fn end(&self) -> Option<RunEnd> {
        lock(&self.log).end.clone()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> RunEnd {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(end) = self.end() {
                return end;
            }
            // The sender is in `self`.
            let _ = changed.changed().await;
        }
    }

    pub(crate) fn finish(&self, end: RunEnd) {
        lock(&self.log).end.get_or_insert(end);
        self.changed.send_replace(());
    }

    /// Returns `true` if a call of this number may still be told: the run is replayed to where
    /// another process has ended.
    pub(crate) fn may_yet_call(&self, call: u64) -> bool {
        let log = lock(&self.log);
        let is_late = || log.last_call.is_some_and(|last| last.elapsed() < OUT_OF_ORDER);
        self.is_again && log.end.is_none() && (call > log.at.call || is_late())
    }

    fn add(&self, what: What) {
        let mut log = lock(&self.log);
        log.add(what);
        log.drop_above(self.most);
        drop(log);
        self.changed.send_replace(());
    }

    /// A call is over.
    fn over(&self, call: u64) {
        let mut log = lock(&self.log);
        let its = |entry: &&mut Entry| matches!(entry.what, What::Call(id, ..) if id == call);
        if let Some(entry) = log.entries.iter_mut().find(its) {
            entry.what = What::Over;
        }
    }
}

/// Adds what a run does to its log.
pub(crate) struct LogWriter {
    pub(crate) run: Arc<DurableRun>,
    /// The span of the run.
    pub(crate) span: Option<SpanContext>,
    pub(crate) traces: Arc<Traces>,
    /// Counts the calls for clients.
    pub(crate) tool_calls: Counter,
}

/// Takes note of the end of a call when it is dropped.
struct UnderWay(Arc<DurableRun>, u64);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.over(self.1);
    }
}

impl Listener for LogWriter {
    fn has_room(&self) -> bool {
        true
    }

    fn output(&self, stream: Stream, text: String) {
        self.run.add(What::Output(stream, text));
    }

    fn display(&self, display: Display) {
        self.run.add(What::Display(display));
    }

    /// The call waits for an answer, also while no client reads the events.
    fn call(&self, call: ToolCall<'_>) -> Option<Kept> {
        let ToolCall { number, tool, arguments, .. } = call;
        let traced = self.traces.call(self.span.clone(), tool);
        self.tool_calls.inc();
        self.run.add(What::Call(number, tool.to_owned(), arguments));
        Some(Kept(Some(Box::new((traced, UnderWay(Arc::clone(&self.run), number))))))
    }

    fn uncall(&self, call: u64) {
        self.run.add(What::Uncall(call));
    }
}

impl Log {
    fn add(&mut self, what: What) {
        match &what {
            What::Output(_, text) => self.at.output += text.len() as u64,
            What::Display(_) => self.at.displays += 1,
            What::Call(id, ..) => {
                self.at.call = self.at.call.max(*id);
                self.last_call = Some(Instant::now());
            }
            What::Uncall(_) | What::Over => {}
        }
        if let (What::Output(stream, text), Some(last)) = (&what, self.entries.back_mut())
            && let What::Output(same, piece) = &mut last.what
            && same == stream
            && piece.len() + text.len() <= PIECE_BYTES
        {
            piece.push_str(text);
            last.at = self.at;
            self.bytes += text.len() as u64;
            return;
        }
        self.bytes += what.bytes();
        self.entries.push_back(Entry { what, at: self.at });
    }

    /// Drops the oldest events above this many bytes. Calls that wait stay.
    fn drop_above(&mut self, most: u64) {
        let mut left = self.entries.len();
        while self.bytes > most && left > 1 {
            left -= 1;
            let Some(entry) = self.entries.pop_front() else { return };
            self.first += 1;
            match entry.what {
                What::Call(..) => {
                    self.entries.push_back(entry);
                    continue;
                }
                What::Output(..) => self.dropped.output = entry.at.output,
                What::Display(_) => self.dropped.displays = entry.at.displays,
                What::Uncall(_) | What::Over => {}
            }
            // A call that is over has the size that it had.
            self.bytes -= entry.what.bytes();
        }
    }
}

impl Reader {
    pub fn run(&self) -> &DurableRun {
        &self.run
    }

    /// Waits for what comes next, and returns it with the cursor after it; `None` after the end.
    pub async fn next(&mut self) -> Option<(Told, Cursor)> {
        loop {
            if self.has_ended {
                return None;
            }
            self.changed.mark_unchanged();
            if let Some(told) = self.take() {
                return Some((told, self.seen));
            }
            // The sender is in the run.
            let _ = self.changed.changed().await;
        }
    }

    fn take(&mut self) -> Option<Told> {
        let run = Arc::clone(&self.run);
        let log = lock(&run.log);
        if log.dropped.output > self.seen.output || log.dropped.displays > self.seen.displays {
            self.seen = self.seen.max(log.dropped);
            return Some(Told::Dropped);
        }
        self.next = self.next.max(log.first);
        while let Some(entry) =
            usize::try_from(self.next - log.first).ok().and_then(|nth| log.entries.get(nth))
        {
            let unseen = self.unseen(entry);
            let is_last = self.next + 1 == log.first + log.entries.len() as u64;
            // More may be added to the last piece of output.
            let may_grow = is_last && matches!(entry.what, What::Output(..));
            self.next += u64::from(!may_grow);
            if let Some(event) = unseen {
                return Some(Told::Event(event));
            }
            if may_grow {
                break;
            }
        }
        let end = log.end.clone()?;
        self.has_ended = true;
        Some(Told::End(end))
    }

    /// Returns what the reader has not seen of an event, and takes note that it has.
    fn unseen(&mut self, entry: &Entry) -> Option<Event> {
        match &entry.what {
            What::Output(stream, text) => {
                let unseen = entry.at.output.checked_sub(self.seen.output)?;
                let unseen = usize::try_from(unseen).unwrap_or(usize::MAX);
                let mut start = text.len().saturating_sub(unseen);
                // A cursor that this node has given is between characters.
                while !text.is_char_boundary(start) {
                    start -= 1;
                }
                let text = text.get(start..).filter(|text| !text.is_empty())?;
                self.seen.output = entry.at.output;
                Some(Event::Output(*stream, text.to_owned()))
            }
            What::Display(display) if entry.at.displays > self.seen.displays => {
                self.seen.displays = entry.at.displays;
                Some(Event::Display(display.clone()))
            }
            What::Call(id, tool, arguments) if *id > self.from.call => {
                self.seen.call = self.seen.call.max(*id);
                let (tool, arguments) = (tool.clone(), arguments.clone());
                Some(Event::Call { call: *id, tool, arguments })
            }
            What::Uncall(id) => Some(Event::Uncall(*id)),
            _ => None,
        }
    }
}
