//! Records what the host tells a session, and replays it.
//!
//! The journal is at the waist: it is the host that the isolate sees, and it passes on what the
//! session's own host ([`SessionHost`]) sends to the isolate. So nothing reaches the guest that it
//! has not recorded. Events ([`Event`](crate::protocol::happened::Event)) say in which order the
//! isolate has let things happen.
//!
//! A replay gives the guest what it was told before, and does nothing of it again. Each request is
//! compared with the one that was recorded, so a program that does something else is found where it
//! does. From the end of the journal on, requests are carried out and recorded.

mod difference;
mod file;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod host;
mod player;
mod record;
mod recorder;
mod replay;
mod trace;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use tokio::sync::watch;

pub(crate) use self::difference::difference;
pub(crate) use self::file::JournalOptions;
use self::file::{Appender, refused};
pub use self::file::{JournalFull, JournalSync};
pub(crate) use self::record::{Begin, CallAgain, CommandKind, CommandRecord, Ending, Stopped};
use self::record::{Digest, Record};
pub(crate) use self::replay::{NextCommand, Replay, Until};
pub(crate) use self::trace::Tracer;
pub use self::trace::{Traced, TracedWhat};
use crate::data::error::{Error, ErrorKind};
use crate::host::SessionHost;
use crate::host::stop::RunStopper;
use crate::protocol::{Message, Outbox};
use crate::support::lock::lock;

/// What becomes of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are written, from the end of the journal on.
    GoesOn,
    /// The journal stays as it is. Where it ends the session does, too, and nothing of the host is
    /// touched.
    LooksBack,
    /// The session has ended. What is under way is not carried out any more, because the journal
    /// would not have it.
    Ended,
}

/// The journal of a session, and the host that its isolate sees.
pub(crate) struct JournalHost {
    host: Arc<SessionHost>,
    state: Mutex<State>,
    /// Where answers go that a replay gives. Weak, because the isolate itself holds the host.
    answers: OnceLock<Weak<dyn Fn(Message) + Send + Sync>>,
    stopper: OnceLock<Weak<RunStopper>>,
    /// How far a session is looked back at.
    until: Until,
    /// Is told of what a session that is looked back at asks for and gets.
    tracer: Option<Tracer>,
    /// The number of runs in the journal.
    runs: watch::Sender<u64>,
}

struct State {
    mode: Mode,
    /// What there is to replay.
    replay: Option<Replay>,
    /// Takes the records; none once nothing is recorded any more.
    appender: Option<Appender>,
    began: Instant,
    /// How many requests were passed on since the last record.
    passed: u64,
    /// The calls that may load packages, and how many packages the session has.
    imports: HashSet<u32>,
    packages: usize,
    /// The recorded answers to calls that are made again for what they do to the host.
    substitutes: HashMap<u32, Vec<u8>>,
    /// The exchanges that were open in the process that has ended.
    lost: HashSet<u32>,
    /// Where the bytes of files are recorded.
    reads: HashMap<Digest, u64>,
    /// Why the session cannot go on.
    failure: Option<String>,
    /// Whether the last command that was replayed was interrupted.
    was_interrupted: bool,
    /// How the command that is replayed was stopped.
    stopped: Option<Stopped>,
    /// How many displays, values and names of files the command has given.
    given: u64,
    /// Whether a session that is looked back at has come to where its journal ends.
    is_over: bool,
    /// Whether what it prints is left out, because it was not recorded.
    is_silent: bool,
    /// A run of the journal, until it goes on.
    waiting: Option<NextCommand>,
}

impl JournalHost {
    /// Begins a journal, which must not exist, with the saved session that it begins with.
    pub(crate) fn create(
        host: Arc<SessionHost>,
        path: &Path,
        options: JournalOptions,
        begin: Begin,
        saved: &[u8],
    ) -> Result<Self, Error> {
        let failed = |reason: String| refused(path, &reason);
        let mut appender = Appender::create(path, options, &host.writable())?;
        let record = Record::Begin { begin, saved_bytes: saved.len() as u64 };
        appender.append(&record).map_err(failed)?;
        appender.append_bytes(saved).map_err(failed)?;
        appender.flush().map_err(failed)?;
        Ok(Self::new(host, Mode::GoesOn, None, Some(appender)))
    }

    /// Replays a journal and goes on with it.
    pub(crate) fn resume(
        host: Arc<SessionHost>,
        replay: Replay,
        options: JournalOptions,
    ) -> Result<Self, Error> {
        let appender = replay.file().go_on(replay.end(), options)?;
        Ok(Self::new(host, Mode::GoesOn, Some(replay), Some(appender)))
    }

    /// Replays a journal and leaves it as it is.
    pub(crate) fn look_back(
        host: Arc<SessionHost>,
        replay: Replay,
        until: Until,
        tracer: Option<Tracer>,
    ) -> Self {
        Self { until, tracer, ..Self::new(host, Mode::LooksBack, Some(replay), None) }
    }

    fn new(
        host: Arc<SessionHost>,
        mode: Mode,
        replay: Option<Replay>,
        appender: Option<Appender>,
    ) -> Self {
        let runs = watch::Sender::new(replay.as_ref().map_or(0, Replay::runs));
        let state = State {
            mode,
            replay,
            appender,
            began: Instant::now(),
            passed: 0,
            imports: HashSet::new(),
            substitutes: HashMap::new(),
            lost: HashSet::new(),
            packages: 0,
            reads: HashMap::new(),
            failure: None,
            was_interrupted: false,
            stopped: None,
            given: 0,
            is_over: false,
            is_silent: false,
            waiting: None,
        };
        Self {
            host,
            state: Mutex::new(state),
            answers: OnceLock::new(),
            stopper: OnceLock::new(),
            until: Until::End,
            tracer: None,
            runs,
        }
    }

    /// Connects the journal to the isolate. Returns where the session's messages go, which records
    /// answers.
    pub(crate) fn connect(self: &Arc<Self>, messages: Outbox) -> Outbox {
        // A journal is that of one isolate, so a second one cannot be connected.
        let _ = self.answers.set(Arc::downgrade(&messages));
        let journal = Arc::downgrade(self);
        let on_begin = move |call| journal.upgrade().map_or(Ok(()), |journal| journal.begun(call));
        self.host.tools().tell_of_begins(Box::new(on_begin));
        let journal = Arc::clone(self);
        Arc::new(move |message| {
            if let Message::Answer(call, answer) = &message {
                if let Some(recorded) = lock(&journal.state).substitutes.remove(call) {
                    return messages(Message::Answer(*call, recorded.into()));
                }
                // The guest may go on while the file is written: whatever it does outside comes
                // after this in the file.
                let recorded = journal.record_answer(*call, answer, false);
                messages(message);
                return journal.written(recorded);
            }
            messages(message);
        })
    }

    /// Sets the stopper with which the journal ends a session that it cannot go on with.
    pub(crate) fn stop_with(&self, stopper: &Arc<RunStopper>) {
        let _ = self.stopper.set(Arc::downgrade(stopper));
    }

    /// Records a command that is about to begin.
    pub(crate) fn begin_command(&self, command: CommandRecord) -> Result<(), Error> {
        {
            let mut state = lock(&self.state);
            (state.is_silent, state.given) = (false, 0);
        }
        let is_run = command.kind.is_run();
        self.append(&Record::Command(command))?;
        if is_run {
            self.runs.send_modify(|runs| *runs += 1);
        }
        Ok(())
    }

    /// Returns the number of runs in the journal.
    pub(crate) fn runs(&self) -> u64 {
        *self.runs.borrow()
    }

    /// Returns a counter of the runs in the journal.
    pub(crate) fn run_counter(&self) -> watch::Receiver<u64> {
        self.runs.subscribe()
    }

    /// Records how the command has ended.
    pub(crate) fn end_command(&self, ending: Ending) -> Result<(), Error> {
        self.append(&Record::Ended(ending))
    }

    /// Records the packages of the session, of which its owner has loaded some.
    pub(crate) fn loaded(&self) -> Result<(), Error> {
        let packages = self.host.packages().saved().1;
        lock(&self.state).packages = packages.len();
        self.append(&Record::Loaded { call: None, packages })
    }

    /// Records nothing any more.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        let _ = state.flush();
        (state.appender, state.replay) = (None, None);
    }

    /// The session ends, as if its process had ended.
    pub(crate) fn close(&self) {
        lock(&self.state).mode = Mode::Ended;
        self.end();
    }

    fn looks_back(&self) -> bool {
        lock(&self.state).mode == Mode::LooksBack
    }

    /// Returns `true` if what happens is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        lock(&self.state).appender.as_ref().is_some_and(|appender| !appender.is_over())
    }

    /// Returns the next command of a replay.
    pub(crate) fn next_command(&self) -> Result<Option<NextCommand>, Error> {
        let mut state = lock(&self.state);
        let Some(replay) = &mut state.replay else { return Ok(None) };
        replay.next_command().map_err(|reason| refused(replay.path(), &reason))
    }

    /// Returns `true` if this is a run that goes on when its owner says so: the last one, or any
    /// one that is looked back at.
    pub(crate) fn waits_for_owner(&self, next: &NextCommand) -> bool {
        next.is_last_run || self.looks_back() && next.command.kind.is_run()
    }

    /// Keeps a run of the journal until it goes on.
    pub(crate) fn wait_with(&self, run: NextCommand) {
        lock(&self.state).waiting = Some(run);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.state).waiting.is_some()
    }

    /// Returns what kind of command waits to go on.
    pub(crate) fn waiting_kind(&self) -> Option<CommandKind> {
        lock(&self.state).waiting.as_ref().map(|next| next.command.kind)
    }

    /// Returns the run of the journal that goes on.
    pub(crate) fn take_waiting(&self) -> Option<NextCommand> {
        lock(&self.state).waiting.take()
    }

    /// A command begins again that ended so, if it had ended.
    pub(crate) fn begin_again(&self, ending: Option<&Ending>) {
        let mut state = lock(&self.state);
        state.was_interrupted = match (ending, &state.replay) {
            (Some(ending), _) => ending.was_interrupted,
            (None, Some(replay)) => replay.was_interrupted(),
            (None, None) => false,
        };
        state.stopped = ending.and_then(|ending| ending.stopped.clone());
        state.given = 0;
    }

    /// All commands were replayed.
    pub(crate) fn end_replay(&self) {
        let mut state = lock(&self.state);
        state.was_interrupted = false;
        state.stopped = None;
        state.is_over = state.mode == Mode::LooksBack;
        // Requests may be left of a journal whose last command did not end.
        if state.replay.as_ref().is_some_and(Replay::is_done) {
            state.replay = None;
        }
    }

    /// Returns `true` if the last command that was replayed was interrupted.
    pub(crate) fn was_interrupted(&self) -> bool {
        lock(&self.state).was_interrupted
    }

    /// Returns how many displays, values and names of files the command has given.
    pub(crate) fn given(&self) -> u64 {
        lock(&self.state).given
    }

    /// Returns why the session cannot go on, if it cannot.
    pub(crate) fn failure(&self) -> Option<Error> {
        let reason = lock(&self.state).failure.clone()?;
        Some(Error::new(ErrorKind::Journal, reason))
    }

    fn append(&self, record: &Record) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.mode == Mode::Ended {
            return Ok(());
        }
        let appended = state.append(record);
        let appended = appended.and_then(|_| state.flush());
        appended.map_err(|reason| Error::new(ErrorKind::Journal, reason))
    }

    /// Records an answer of the journal's own to a call, before the guest gets it.
    fn answered(&self, call: u32, answer: &[u8], is_refusal: bool) {
        self.written(self.record_answer(call, answer, is_refusal));
    }

    /// Takes note of the answer to a call, which is [`written`](Self::written) then.
    fn record_answer(&self, call: u32, answer: &[u8], is_refusal: bool) -> Result<(), String> {
        let mut state = lock(&self.state);
        let mut appended = Ok(0);
        if state.imports.remove(&call) {
            let packages = self.host.packages().saved().1;
            if packages.len() != state.packages {
                state.packages = packages.len();
                appended = state.append(&Record::Loaded { call: Some(call), packages });
            }
        }
        let milliseconds = state.milliseconds();
        let record = Record::Answered { call, milliseconds, is_refusal, answer: answer.to_vec() };
        appended.and_then(|_| state.append(&record)).map(drop)
    }

    /// Has what was recorded survive the end of this process.
    fn written(&self, recorded: Result<(), String>) {
        if let Err(reason) = recorded.and_then(|()| lock(&self.state).flush()) {
            self.fail(reason);
        }
    }

    /// Records that the call of a deferred tool begins, before it does.
    fn begun(&self, call: u32) -> Result<(), String> {
        let mut state = lock(&self.state);
        let appended = state.append(&Record::Begun(call)).and_then(|_| state.flush());
        drop(state);
        appended.inspect_err(|reason| self.fail(reason.clone()))
    }

    /// Gives the guest an answer.
    fn give(&self, call: u32, answer: Vec<u8>) {
        if let Some(messages) = self.answers.get().and_then(Weak::upgrade) {
            messages(Message::Answer(call, answer.into()));
        }
    }

    /// Ends the session. The first reason counts.
    fn fail(&self, reason: String) {
        let mut state = lock(&self.state);
        if state.mode == Mode::Ended {
            return;
        }
        state.failure.get_or_insert(reason);
        drop(state);
        if let Some(stopper) = self.stopper.get().and_then(Weak::upgrade) {
            stopper.kill();
        }
    }

    /// Ends a session that does something else than when it was recorded.
    fn diverge(state: &State, what: &str) -> String {
        let nth = state.replay.as_ref().map_or(0, Replay::done);
        let path = state.replay.as_ref().map(|replay| replay.path().display().to_string());
        let path = path.unwrap_or_default();
        format!(
            "the session cannot be replayed from the journal `{path}`: at its request {nth}, {what}"
        )
    }
}

impl State {
    /// Appends a record, behind the requests that were passed on.
    fn append(&mut self, record: &Record) -> Result<u64, String> {
        if self.mode == Mode::Ended {
            return Err("the session has ended".to_owned());
        }
        let Some(appender) = &mut self.appender else { return Ok(0) };
        if self.passed > 0 {
            appender.append(&Record::Passed(std::mem::take(&mut self.passed)))?;
        }
        appender.append(record)
    }

    /// Has the records survive the end of this process.
    fn flush(&mut self) -> Result<(), String> {
        match &mut self.appender {
            Some(appender) => appender.flush(),
            None => Ok(()),
        }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
