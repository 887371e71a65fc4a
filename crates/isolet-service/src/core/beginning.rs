//! How sessions of clients begin: afresh, from a file, or from a journal; and their journals.

use std::time::Duration;

use isolet::{Journal, JournalFull, JournalSync, Replay, Value};
use serde::Deserialize;

use super::{Failure, execution};

/// How a session begins.
pub enum Beginning {
    /// Afresh, with these variables. It is recorded if there is a journal.
    Fresh { inputs: Vec<(String, Value)>, journal: Option<JournalEntry> },
    /// From the file that it was saved to.
    Saved(String),
    /// From its journal, with which it goes on.
    Resumed(JournalEntry),
    /// From a journal that is looked back at.
    LookedBack(LookBack),
}

/// The file that a session is recorded to, as a client describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    path: String,
    #[serde(default)]
    sync: SyncEntry,
    /// The maximum size of the file.
    #[serde(default)]
    max_bytes: Option<u64>,
    #[serde(default)]
    when_full: FullEntry,
}

/// What happens to a run that needs a larger file.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FullEntry {
    #[default]
    EndSession,
    EndRecording,
}

/// When what is recorded reaches the device.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SyncEntry {
    #[default]
    Never,
    Always,
}

/// A journal that is looked back at, and how far.
#[derive(Debug)]
pub struct LookBack {
    path: String,
    until: Until,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Until {
    /// The number of a call of a tool.
    #[serde(rename = "until_call")]
    call: Option<u64>,
    /// Since the session began, in seconds.
    #[serde(rename = "until_time")]
    time: Option<f64>,
    /// A file, or `None` for any, and a line of it.
    #[serde(rename = "until_line")]
    line: Option<(Option<String>, u64)>,
}

/// The options of going on with the run of a journal.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoOnOptions {
    /// Set if the listener receives output and displays.
    pub(crate) stream: bool,
}

impl Beginning {
    /// Afresh, with these variables, and not recorded.
    pub fn fresh(inputs: Vec<(String, Value)>) -> Self {
        Self::Fresh { inputs, journal: None }
    }
}

impl JournalEntry {
    /// Reads a journal.
    pub fn read(journal: Value) -> Result<Self, Failure> {
        isolet::from_value(journal)
            .map_err(|error| Failure::config(format!("the journal is invalid: {error}")))
    }

    /// Reads a journal; `None` means none.
    pub fn read_optional(journal: Value) -> Result<Option<Self>, Failure> {
        if journal.is_none() { Ok(None) } else { Self::read(journal).map(Some) }
    }

    /// A journal in this file, of at most so many bytes.
    pub(crate) fn at(path: String, max_bytes: u64) -> Self {
        let (sync, when_full) = (SyncEntry::Never, FullEntry::EndSession);
        Self { path, sync, max_bytes: Some(max_bytes), when_full }
    }

    /// Converts to the library's type.
    pub(crate) fn journal(self) -> Journal {
        let journal = Journal::at(self.path).sync(match self.sync {
            SyncEntry::Never => JournalSync::Never,
            SyncEntry::Always => JournalSync::Always,
        });
        let journal = journal.when_full(match self.when_full {
            FullEntry::EndSession => JournalFull::EndSession,
            FullEntry::EndRecording => JournalFull::EndRecording,
        });
        match self.max_bytes {
            Some(bytes) => journal.max_bytes(bytes),
            None => journal,
        }
    }
}

impl LookBack {
    /// Reads how far the journal of this file is looked back at; `None` means all of it.
    pub fn read(path: String, until: Value) -> Result<Self, Failure> {
        if until.is_none() {
            return Ok(Self { path, until: Until::default() });
        }
        let until = isolet::from_value(until).map_err(|error| {
            Failure::config(format!("the end of the replay is invalid: {error}"))
        })?;
        Ok(Self { path, until })
    }

    /// Converts to the library's type.
    pub(crate) fn replay(self) -> Result<Replay, Failure> {
        let replay = Replay::of(self.path);
        let Until { call, time, line } = self.until;
        match (call, time, line) {
            (None, None, None) => Ok(replay),
            (Some(0), None, None) => {
                Err(Failure::config("`until_call` is 0, and calls are counted from 1"))
            }
            (Some(call), None, None) => Ok(replay.until_call(call)),
            (None, Some(seconds), None) => {
                let time: Duration = execution::duration("until_time", seconds)?;
                Ok(replay.until_time(time))
            }
            (None, None, Some((_, 0))) => {
                Err(Failure::config("`until_line` is 0, and lines are counted from 1"))
            }
            (None, None, Some((file, line))) => Ok(replay.until_line(file.as_deref(), line)),
            _ => {
                let message = "a replay ends at one of `until_call`, `until_time` and \
                               `until_line`, and has several";
                Err(Failure::config(message))
            }
        }
    }
}

impl GoOnOptions {
    /// Reads options; `None` means defaults.
    pub fn read(options: Value) -> Result<Self, Failure> {
        if options.is_none() {
            return Ok(Self::default());
        }
        isolet::from_value(options).map_err(|error| {
            Failure::config(format!("the options of `go_on` are invalid: {error}"))
        })
    }
}
