//! How a journal is looked back at.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::host::journal::{Traced, Tracer, Until};

/// The journal that a session is replayed from, how far, and who is told of what it has.
///
/// ```
/// use isolet::Replay;
///
/// let replay = Replay::of("run.journal").until_call(212).on_trace(|traced| println!("{traced}"));
/// # let _ = replay;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Replay {
    path: PathBuf,
    until: Until,
    tracer: Option<Tracer>,
}

impl Replay {
    /// Replays the whole journal of this file.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), until: Until::End, tracer: None }
    }

    /// Replays it until the guest makes its call of this number of a tool, counted from 1. That one
    /// is not answered.
    pub fn until_call(mut self, call: u64) -> Self {
        self.until = Until::Call(call);
        self
    }

    /// Replays it until this time since the session began.
    pub fn until_time(mut self, time: Duration) -> Self {
        self.until = Until::Milliseconds(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Replays it until the guest comes to this line, counted from 1, of the code in this file, by
    /// the name that tracebacks have, or its end. Without a file, of any code that is not Python's
    /// own. The line has not run then.
    pub fn until_line(mut self, file: Option<&str>, line: u64) -> Self {
        self.until = Until::Line { file: file.map(str::to_owned), line };
        self
    }

    /// Sets a function that is told of what the guest asks for and gets. The session's threads call
    /// it and wait for it.
    pub fn on_trace(mut self, sink: impl Fn(&Traced) + Send + Sync + 'static) -> Self {
        self.tracer = Some(Arc::new(sink));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn until(&self) -> Until {
        self.until.clone()
    }

    pub(crate) fn tracer(&self) -> Option<Tracer> {
        self.tracer.clone()
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("path", &self.path).finish_non_exhaustive()
    }
}

impl From<PathBuf> for Replay {
    fn from(path: PathBuf) -> Self {
        Self::of(path)
    }
}

impl From<&str> for Replay {
    fn from(path: &str) -> Self {
        Self::of(path)
    }
}
