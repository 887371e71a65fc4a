//! What a journal has, in the order in which a replay needs it: commands, events, and requests with
//! what came of them. Each is read from the file when it is needed.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::file::{JournalFile, refused};
use super::record::{Begin, CallAgain, CommandRecord, Digest, Ending, Record, Reply};
use crate::data::error::Error;
use crate::fs::Before;
use crate::host::saved::SavedPackage;
use crate::protocol::happened::{Event, Script};

/// How much of the events is handed out at once, in bytes.
const SCRIPT_BYTES: usize = 64 << 10;

/// A journal that is replayed.
pub(crate) struct Replay {
    file: JournalFile,
    begin: Begin,
    /// Where the last record ends.
    end: u64,
    /// The saved session that it begins with.
    saved: Option<(u64, u64)>,
    commands: u64,
    events: u64,
    requests: u64,
    /// How many requests there are, and how many were replayed.
    total: u64,
    done: u64,
    /// How many of the next requests a replay makes again.
    passed: u64,
    /// The calls of deferred tools that have begun.
    begun: HashSet<u32>,
    /// Where the answers to calls are.
    answers: HashMap<u32, u64>,
    /// Where the packages are that calls have loaded.
    loaded: HashMap<u32, u64>,
    /// How many runs there are, and how many were replayed.
    runs: u64,
    runs_done: u64,
    /// Whether the last command was interrupted, as far as its events say.
    was_interrupted: bool,
    /// Whether all events were handed out.
    has_told_all: bool,
}

/// A command of a journal.
pub(crate) struct NextCommand {
    pub(crate) command: CommandRecord,
    /// How it ended, if it did.
    pub(crate) ending: Option<Ending>,
    /// The packages of the session, if its owner has loaded some before it.
    pub(crate) packages: Vec<SavedPackage>,
    pub(crate) is_last_run: bool,
}

/// How far a journal is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    End,
    /// Until the call of a tool of this number, counted from 1.
    Call(u64),
    /// Until so many milliseconds after the session began.
    Milliseconds(u64),
    /// Until the guest comes to this line of code of this file; without one, of any file that is
    /// not Python's.
    Line {
        file: Option<String>,
        line: u64,
    },
}

/// What came of a request that was to change a file.
pub(super) struct EffectReply {
    pub(super) digest: Digest,
    pub(super) milliseconds: u64,
    pub(super) reply: Reply,
}

/// A request of the guest as it was recorded.
pub(super) enum Request {
    /// It was answered at once.
    Replied { digest: Digest, milliseconds: u64, reply: Reply },
    /// It was about to change a file, and this came of it.
    Effect(Digest, EffectReply),
    /// It was about to change a file, when there was this before, and the process ended.
    LastEffect(Digest, Before),
    /// It was a call.
    Asked { digest: Digest, milliseconds: u64, again: Option<CallAgain> },
    /// A replay makes it again.
    Passed,
}

impl Replay {
    /// Opens a journal; to go on with it, alone. All of it is checked.
    pub(crate) fn open(path: &Path, goes_on: bool, until: &Until) -> Result<Self, Error> {
        let file = JournalFile::open(path, goes_on)?;
        let refused = |reason: String| refused(path, &reason);
        let first = file.record(JournalFile::start()).map_err(refused)?;
        let Some((Record::Begin { begin, saved_bytes }, after)) =
            first.map(|found| (found.record, found.end))
        else {
            return Err(refused("it does not say how the session began".to_owned()));
        };
        let start = after.saturating_add(saved_bytes);
        let saved = (saved_bytes > 0).then_some((after, start));
        let mut replay = Self {
            file,
            begin,
            end: start,
            saved,
            commands: start,
            events: start,
            requests: start,
            total: 0,
            done: 0,
            passed: 0,
            begun: HashSet::new(),
            answers: HashMap::new(),
            loaded: HashMap::new(),
            runs: 0,
            runs_done: 0,
            was_interrupted: false,
            has_told_all: false,
        };
        replay.index(until).map_err(refused)?;
        Ok(replay)
    }

    /// Reads all records once, as far as the journal is replayed.
    fn index(&mut self, until: &Until) -> Result<(), String> {
        let mut tool_calls = 0;
        while let Some(found) = self.file.record(self.end)? {
            tool_calls += u64::from(matches!(found.record, Record::Asked { again: Some(_), .. }));
            let is_over = match *until {
                Until::End | Until::Line { .. } => false,
                Until::Call(call) => tool_calls >= call.max(1),
                Until::Milliseconds(until) => {
                    found.record.milliseconds().is_some_and(|now| now >= until)
                }
            };
            if is_over {
                return Ok(());
            }
            match found.record {
                Record::Begin { .. } => return Err("it begins twice".to_owned()),
                Record::Command(command) => {
                    self.runs += u64::from(command.kind.is_run());
                    self.was_interrupted = false;
                }
                Record::Happened(events) => {
                    let events = Event::read_all(&events);
                    let events = events.map_err(|error| format!("events: {error}"))?;
                    self.was_interrupted |= events.iter().any(Event::is_interrupt);
                }
                Record::Asked { .. } | Record::Effect(..) => self.total += 1,
                Record::Begun(call) => _ = self.begun.insert(call),
                Record::Answered { call, .. } => {
                    self.answers.insert(call, self.end);
                }
                Record::Replied { has_effect, .. } => self.total += u64::from(!has_effect),
                Record::Passed(count) => {
                    let total = self.total.checked_add(count);
                    self.total = total.ok_or("it has too many requests")?;
                }
                Record::Loaded { call: Some(call), .. } => {
                    self.loaded.insert(call, self.end);
                }
                Record::Ended(_) | Record::Loaded { call: None, .. } => {}
            }
            self.end = found.end;
        }
        Ok(())
    }

    pub(crate) fn begin(&self) -> &Begin {
        &self.begin
    }

    /// Returns the number of runs in the journal.
    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn file(&self) -> &JournalFile {
        &self.file
    }

    /// Returns where its last record ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns where the saved session is that it begins with.
    pub(crate) fn saved(&self) -> Option<(&std::sync::Arc<std::fs::File>, u64, u64)> {
        self.saved.map(|(start, end)| (self.file.file(), start, end))
    }

    /// Returns `true` if all requests were replayed.
    pub(super) fn is_done(&self) -> bool {
        self.done >= self.total
    }

    /// Returns the number of the last request that was replayed.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    fn next(&self, at: u64) -> Result<Option<super::file::Found>, String> {
        if at >= self.end { Ok(None) } else { self.file.record(at) }
    }

    /// Returns the next command.
    pub(crate) fn next_command(&mut self) -> Result<Option<NextCommand>, String> {
        let mut packages = Vec::new();
        let mut command = None;
        let mut ending = None;
        while let Some(found) = self.next(self.commands)? {
            match (found.record, &command) {
                (Record::Loaded { call: None, packages: now }, None) => packages = now,
                (Record::Command(next), None) => command = Some(next),
                (Record::Ended(end), Some(_)) => {
                    self.commands = found.end;
                    ending = Some(end);
                    break;
                }
                // The one before has no end.
                (Record::Command(_) | Record::Loaded { call: None, .. }, Some(_)) => break,
                _ => {}
            }
            self.commands = found.end;
        }
        let Some(command) = command else { return Ok(None) };
        let is_run = command.kind.is_run();
        self.runs_done += u64::from(is_run);
        let is_last_run = is_run && self.runs_done == self.runs;
        Ok(Some(NextCommand { command, ending, packages, is_last_run }))
    }

    /// Returns `true` if the last command was interrupted, as far as its events say.
    pub(super) fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    /// Returns `true` if all events were handed out.
    pub(super) fn has_told_all(&self) -> bool {
        self.has_told_all
    }

    /// Returns the next events.
    pub(super) fn script(&mut self) -> Result<Script, String> {
        let mut script = Script::default();
        let mut bytes = 0;
        while bytes < SCRIPT_BYTES {
            let Some(found) = self.next(self.events)? else {
                script.requests = Some(self.total);
                self.has_told_all = true;
                break;
            };
            self.events = found.end;
            if let Record::Happened(events) = found.record {
                bytes += events.len();
                script.events.extend(Event::read_all(&events).map_err(|error| error.to_string())?);
            }
        }
        Ok(script)
    }

    /// Returns the next request.
    pub(super) fn next_request(&mut self) -> Result<Request, String> {
        self.done += 1;
        if self.passed > 0 {
            self.passed -= 1;
            return Ok(Request::Passed);
        }
        while let Some(found) = self.next(self.requests)? {
            self.requests = found.end;
            match found.record {
                Record::Passed(count @ 1..) => {
                    self.passed = count - 1;
                    return Ok(Request::Passed);
                }
                Record::Asked { digest, milliseconds, again, .. } => {
                    return Ok(Request::Asked { digest, milliseconds, again });
                }
                Record::Replied { digest, milliseconds, reply, has_effect: false } => {
                    let reply = self.whole(reply)?;
                    return Ok(Request::Replied { digest, milliseconds, reply });
                }
                Record::Effect(digest, before) => {
                    return Ok(match self.reply_to_effect()? {
                        Some(reply) => Request::Effect(digest, reply),
                        None => Request::LastEffect(digest, before),
                    });
                }
                _ => {}
            }
        }
        Err("it has fewer requests than it had".to_owned())
    }

    /// Returns what came of the change of a file that was about to be made. It is the next request,
    /// if the program did not end before.
    fn reply_to_effect(&mut self) -> Result<Option<EffectReply>, String> {
        while let Some(found) = self.next(self.requests)? {
            match found.record {
                Record::Replied { digest, milliseconds, reply, has_effect: true } => {
                    self.requests = found.end;
                    return Ok(Some(EffectReply { digest, milliseconds, reply }));
                }
                // An answer may come in between.
                Record::Begun(_) | Record::Answered { .. } | Record::Happened(_) => {
                    self.requests = found.end;
                }
                _ => break,
            }
        }
        Ok(None)
    }

    /// Returns a reply with the bytes that another record has.
    fn whole(&self, reply: Reply) -> Result<Reply, String> {
        let Reply::ReadAgain(at) = reply else { return Ok(reply) };
        match self.next(at)?.map(|found| found.record) {
            Some(Record::Replied { reply: reply @ Reply::Read(_), .. }) => Ok(reply),
            _ => Err(format!("there are no bytes of a file at byte {at}")),
        }
    }

    /// Returns the packages of the session as of the answer to a call, if that has loaded some.
    pub(super) fn loaded(&self, call: u32) -> Result<Option<Vec<SavedPackage>>, String> {
        let Some(at) = self.loaded.get(&call) else { return Ok(None) };
        match self.next(*at)?.map(|found| found.record) {
            Some(Record::Loaded { packages, .. }) => Ok(Some(packages)),
            _ => Err(format!("there are no packages at byte {at}")),
        }
    }

    /// Returns `true` if the call of a deferred tool had begun.
    pub(super) fn has_begun(&self, call: u32) -> bool {
        self.begun.contains(&call)
    }

    /// Returns the answer to a call, if there is one, whether it is the host's refusal, and when it
    /// was given.
    pub(super) fn answer(&self, call: u32) -> Result<Option<(Vec<u8>, bool, u64)>, String> {
        let Some(at) = self.answers.get(&call) else { return Ok(None) };
        match self.next(*at)?.map(|found| found.record) {
            Some(Record::Answered { answer, is_refusal, milliseconds, .. }) => {
                Ok(Some((answer, is_refusal, milliseconds)))
            }
            _ => Err(format!("there is no answer at byte {at}")),
        }
    }
}
