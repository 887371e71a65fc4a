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

mod file;
mod record;
mod replay;
mod trace;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

pub use self::file::JournalSync;
use self::file::{Appender, refused};
pub(crate) use self::record::{Begin, CommandKind, CommandRecord, Ending, Stopped};
use self::record::{Digest, Record, Reply};
use self::replay::{EffectReply, Request};
pub(crate) use self::replay::{NextCommand, Replay, Until};
pub(crate) use self::trace::Tracer;
pub use self::trace::{Traced, TracedWhat};
use crate::data::error::{Error, ErrorKind};
use crate::data::shown::shown;
use crate::data::tool::ToolError;
use crate::data::value::marshal;
use crate::fs::{FileError, Place};
use crate::host::SessionHost;
use crate::host::exchanges::is_safe;
use crate::host::saved::SavedPackage;
use crate::host::stop::RunStopper;
use crate::protocol::codec::{self, CommandFrame};
use crate::protocol::{Host, HostReply, HostRequest, Message, NetRequest, Outbox};
use crate::support::lock::lock;

/// Bytes of a file of this length are recorded once, as far as the journal remembers them.
const REPEATED_BYTES: usize = 4 << 10;

/// How many reads of files it remembers.
const REMEMBERED_READS: usize = 64 << 10;

/// The maximum memory that a command takes which begins a session, in bytes.
const MOST_START_BYTES: u64 = 256 << 20;

/// The name of the exception that a call raises whose answer is lost.
const CALL_INTERRUPTED: &str = "CallInterrupted";

/// What becomes of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are written, from the end of the journal on.
    GoesOn,
    /// The journal stays as it is. Where it ends the session does, too, and nothing of the host is
    /// touched.
    LooksBack,
}

/// The journal of a session, and the host that its isolate sees.
pub(crate) struct JournalHost {
    host: Arc<SessionHost>,
    state: Mutex<State>,
    /// Where answers go that a replay gives. Weak, because the isolate itself holds the host.
    answers: OnceLock<Weak<dyn Fn(Message) + Send + Sync>>,
    stopper: OnceLock<Weak<RunStopper>>,
    /// Is told of what a session that is looked back at asks for and gets.
    tracer: Option<Tracer>,
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
    /// Where the bytes of files are recorded.
    reads: HashMap<Digest, u64>,
    /// Why the session cannot go on.
    failure: Option<String>,
    /// Whether the last command that was replayed was interrupted.
    was_interrupted: bool,
    /// How the command that is replayed was stopped.
    stopped: Option<Stopped>,
    /// Whether a session that is looked back at has come to where its journal ends.
    is_over: bool,
    /// Whether what it prints is left out, because it was not recorded.
    is_silent: bool,
    /// A run of the journal, until it goes on.
    waiting: Option<NextCommand>,
}

/// How a request is recorded.
enum Kind {
    /// As one that a replay makes again.
    Passed,
    /// As one that is answered later.
    Call(u32),
    /// As one that is answered at once, and changes files of the host if `has_effect`.
    AtOnce { has_effect: bool },
}

impl JournalHost {
    /// Begins a journal, which must not exist, with the saved session that it begins with.
    pub(crate) fn create(
        host: Arc<SessionHost>,
        path: &Path,
        (sync, limit): (JournalSync, u64),
        begin: Begin,
        saved: &[u8],
    ) -> Result<Self, Error> {
        let failed = |reason: String| refused(path, &reason);
        let mut appender = Appender::create(path, sync, limit, &host.writable())?;
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
        (sync, limit): (JournalSync, u64),
    ) -> Result<Self, Error> {
        let appender = replay.file().go_on(replay.end(), sync, limit)?;
        Ok(Self::new(host, Mode::GoesOn, Some(replay), Some(appender)))
    }

    /// Replays a journal and leaves it as it is.
    pub(crate) fn look_back(
        host: Arc<SessionHost>,
        replay: Replay,
        tracer: Option<Tracer>,
    ) -> Self {
        Self { tracer, ..Self::new(host, Mode::LooksBack, Some(replay), None) }
    }

    fn new(
        host: Arc<SessionHost>,
        mode: Mode,
        replay: Option<Replay>,
        appender: Option<Appender>,
    ) -> Self {
        let state = State {
            mode,
            replay,
            appender,
            began: Instant::now(),
            passed: 0,
            imports: HashSet::new(),
            packages: 0,
            reads: HashMap::new(),
            failure: None,
            was_interrupted: false,
            stopped: None,
            is_over: false,
            is_silent: false,
            waiting: None,
        };
        Self {
            host,
            state: Mutex::new(state),
            answers: OnceLock::new(),
            stopper: OnceLock::new(),
            tracer: None,
        }
    }

    /// Connects the journal to the isolate. Returns where the session's messages go, which records
    /// answers.
    pub(crate) fn connect(self: &Arc<Self>, messages: Outbox) -> Outbox {
        // A journal is that of one isolate, so a second one cannot be connected.
        let _ = self.answers.set(Arc::downgrade(&messages));
        let journal = Arc::clone(self);
        Arc::new(move |message| {
            if let Message::Answer(call, answer) = &message {
                journal.answered(*call, answer, false);
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
        lock(&self.state).is_silent = false;
        self.append(&Record::Command(command))
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

    fn looks_back(&self) -> bool {
        lock(&self.state).mode == Mode::LooksBack
    }

    /// Returns `true` if what happens is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        lock(&self.state).appender.is_some()
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
        next.is_last_run || self.looks_back() && next.command.kind == CommandKind::Run
    }

    /// Keeps a run of the journal until it goes on.
    pub(crate) fn wait_with(&self, run: NextCommand) {
        lock(&self.state).waiting = Some(run);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.state).waiting.is_some()
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

    /// Returns why the session cannot go on, if it cannot.
    pub(crate) fn failure(&self) -> Option<Error> {
        let reason = lock(&self.state).failure.clone()?;
        Some(Error::new(ErrorKind::Journal, reason))
    }

    fn append(&self, record: &Record) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let appended = state.append(record);
        let appended = appended.and_then(|_| state.flush());
        appended.map_err(|reason| Error::new(ErrorKind::Journal, reason))
    }

    /// Records the answer to a call before the guest gets it.
    fn answered(&self, call: u32, answer: &[u8], is_refusal: bool) {
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
        let appended = appended.and_then(|_| state.append(&record)).and_then(|_| state.flush());
        drop(state);
        if let Err(reason) = appended {
            self.fail(reason);
        }
    }

    /// Gives the guest an answer.
    fn give(&self, call: u32, answer: Vec<u8>) {
        if let Some(messages) = self.answers.get().and_then(Weak::upgrade) {
            messages(Message::Answer(call, answer.into()));
        }
    }

    /// Ends the session. The first reason counts.
    fn fail(&self, reason: String) {
        lock(&self.state).failure.get_or_insert(reason);
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

    fn kind(&self, request: &HostRequest<'_>) -> Kind {
        match request {
            HostRequest::CallTool { call, .. }
            | HostRequest::NetStart { call, .. }
            | HostRequest::NetSend { call, .. }
            | HostRequest::NetRead { call, .. }
            | HostRequest::Import { call, .. } => Kind::Call(*call),
            HostRequest::File(request) => match self.host.files().place(request) {
                Place::Tree => Kind::Passed,
                Place::ReadWrite => Kind::AtOnce { has_effect: request.is_change() },
                Place::ReadOnly | Place::Overlay | Place::Nowhere => {
                    Kind::AtOnce { has_effect: false }
                }
            },
            _ => Kind::AtOnce { has_effect: false },
        }
    }

    /// Carries out a request that is recorded.
    fn record(&self, request: HostRequest<'_>) -> HostReply {
        match self.kind(&request) {
            Kind::Passed => {
                lock(&self.state).passed += 1;
                self.host.call(request)
            }
            Kind::Call(call) => {
                let asked = {
                    let mut state = lock(&self.state);
                    let milliseconds = state.milliseconds();
                    let digest = Digest::of(&request);
                    let is_tool = matches!(request, HostRequest::CallTool { .. });
                    state
                        .append(&Record::Asked { call, digest, milliseconds, is_tool })
                        .and_then(|_| state.flush())
                };
                match asked {
                    Ok(()) => self.make_call(call, request),
                    Err(reason) => self.failed(reason),
                }
            }
            Kind::AtOnce { has_effect } => {
                let digest = Digest::of(&request);
                if has_effect {
                    let mut state = lock(&self.state);
                    let begun = state.append(&Record::Effect(digest)).and_then(|_| state.flush());
                    if let Err(reason) = begun {
                        drop(state);
                        return self.failed(reason);
                    }
                }
                let reply = self.host.call(request);
                self.replied(digest, has_effect, reply)
            }
        }
    }

    /// Has the host make a call. Its refusal is an answer like others.
    fn make_call(&self, call: u32, request: HostRequest<'_>) -> HostReply {
        if matches!(request, HostRequest::Import { .. }) {
            lock(&self.state).imports.insert(call);
        }
        match self.host.call(request) {
            HostReply::Refused(class, message) => {
                let error = ToolError::new(class, message).shortened();
                let answer = codec::encode_answer(Err(error), u64::MAX);
                self.answered(call, &answer, true);
                self.give(call, answer);
                HostReply::Done
            }
            reply => reply,
        }
    }

    /// Records a reply before the guest gets it.
    fn replied(&self, digest: Digest, has_effect: bool, reply: HostReply) -> HostReply {
        let mut state = lock(&self.state);
        let (milliseconds, reply) = (state.milliseconds(), Reply::Host(reply));
        let record = Record::Replied { digest, has_effect, milliseconds, reply };
        let recorded = state.append(&record);
        let recorded = recorded.and_then(|_| if has_effect { state.flush() } else { Ok(()) });
        drop(state);
        match (recorded, record) {
            (Ok(()), Record::Replied { reply: Reply::Host(reply), .. }) => reply,
            (Err(reason), _) => self.failed(reason),
            (Ok(()), _) => HostReply::Done,
        }
    }

    fn failed(&self, reason: String) -> HostReply {
        self.fail(reason.clone());
        HostReply::Failed(reason)
    }

    /// Returns what came of the next request, if it was recorded.
    fn next_request(&self) -> Option<Result<Request, String>> {
        let mut state = lock(&self.state);
        let replay = state.replay.as_mut().filter(|replay| !replay.is_done())?;
        let next = replay.next_request();
        Some(next.map_err(|reason| format!("the journal `{}`: {reason}", replay.path().display())))
    }

    /// Tells who looks back of something that a session asks for or gets.
    fn trace(&self, milliseconds: u64, what: impl FnOnce() -> Option<TracedWhat>) {
        if let Some(tracer) = &self.tracer
            && let Some(what) = what()
        {
            tracer(&Traced::new(milliseconds, what));
        }
    }

    /// Gives the guest what came of a request.
    fn replay(&self, request: HostRequest<'_>, recorded: Request) -> HostReply {
        match recorded {
            Request::Passed => match self.kind(&request) {
                Kind::Passed => self.host.call(request),
                _ => self.diverged(&request),
            },
            Request::Asked { digest, milliseconds } if digest == Digest::of(&request) => {
                self.trace(milliseconds, || trace::of_request(&request, None));
                match self.kind(&request) {
                    Kind::Call(call) => self.replay_call(call, request),
                    _ => self.diverged(&request),
                }
            }
            Request::Replied { digest, milliseconds, reply: Reply::Host(reply) }
                if digest == Digest::of(&request) =>
            {
                self.trace(milliseconds, || trace::of_request(&request, Some(&reply)));
                self.host.follow(&request, &reply);
                // A worker would wait for an interrupt that does not come.
                match reply {
                    HostReply::Interrupted(_) => HostReply::Interrupted(0),
                    reply => reply,
                }
            }
            Request::Effect(digest, Some(EffectReply { digest: again, milliseconds, reply }))
                if digest == Digest::of(&request) && again == digest =>
            {
                let Reply::Host(reply) = reply else { return self.diverged(&request) };
                self.trace(milliseconds, || trace::of_request(&request, Some(&reply)));
                self.host.follow(&request, &reply);
                reply
            }
            Request::Effect(digest, None) if digest == Digest::of(&request) => {
                let reply = match request {
                    HostRequest::File(request) => {
                        HostReply::File(self.host.files().call_again(request))
                    }
                    request => self.host.call(request),
                };
                self.replied(digest, true, reply)
            }
            _ => self.diverged(&request),
        }
    }

    /// Gives the guest the answer to a call that was made before. Without one, the call is made
    /// again if that does no harm.
    fn replay_call(&self, call: u32, request: HostRequest<'_>) -> HostReply {
        let recorded = {
            let state = lock(&self.state);
            let replay = state.replay.as_ref();
            let answer = replay.map_or(Ok(None), |replay| replay.answer(call));
            let loaded = replay.map_or(Ok(None), |replay| replay.loaded(call));
            answer.and_then(|answer| Ok((answer, loaded?)))
        };
        let (answer, loaded) = match recorded {
            Ok(recorded) => recorded,
            Err(reason) => return self.failed(reason),
        };
        if let Some((answer, is_refusal, milliseconds)) = answer {
            self.trace(milliseconds, || Some(trace::of_answer(call, &answer)));
            if let Some(packages) = loaded
                && let Err(error) = self.load_again(&packages)
            {
                return self.failed(error.to_string());
            }
            let permitted =
                if is_refusal { Ok(()) } else { self.host.permit_again(call, &request) };
            if let Err(reason) = permitted {
                let reason = Self::diverge(&lock(&self.state), &reason);
                return self.failed(reason);
            }
            self.give(call, answer);
            return HostReply::Done;
        }
        if self.looks_back() {
            return self.beyond(&request);
        }
        if self.may_ask_again(&request) {
            return self.make_call(call, request);
        }
        let what = match &request {
            HostRequest::CallTool { tool, .. } => {
                self.host.tools().count_again(call, tool);
                format!("the call of {}()", shown(tool))
            }
            _ => "the request".to_owned(),
        };
        let message = format!(
            "{what} was under way when the session's process ended, so it may have been carried \
             out, and is not made again"
        );
        let answer = codec::encode_answer(Err(ToolError::new(CALL_INTERRUPTED, message)), u64::MAX);
        self.answered(call, &answer, true);
        self.give(call, answer);
        HostReply::Done
    }

    /// Loads the packages that the guest had loaded, if they are allowed. Looking back needs no
    /// permission of its own.
    fn load_again(&self, packages: &[SavedPackage]) -> Result<(), Error> {
        let mode = {
            let mut state = lock(&self.state);
            state.packages = packages.len();
            state.mode
        };
        match mode {
            Mode::GoesOn => {
                let preloaded = self.host.packages().saved().0;
                self.host.packages().restore(&preloaded, packages)
            }
            Mode::LooksBack => self.host.packages().load_exactly(packages),
        }
    }

    /// Returns `true` if a call that was under way may be made again.
    fn may_ask_again(&self, request: &HostRequest<'_>) -> bool {
        match request {
            HostRequest::CallTool { tool, .. } => self.host.tools().is_idempotent(tool),
            HostRequest::NetStart { request, .. } => match request {
                NetRequest::Connect { .. } => true,
                request => is_safe(request),
            },
            // The exchange is lost, which its answer says.
            HostRequest::NetSend { .. }
            | HostRequest::NetRead { .. }
            | HostRequest::Import { .. } => true,
            _ => false,
        }
    }

    fn diverged(&self, request: &HostRequest<'_>) -> HostReply {
        let reason = {
            let state = lock(&self.state);
            let what = format!("it {}, and did something else when it was recorded", told(request));
            Self::diverge(&state, &what)
        };
        self.failed(reason)
    }
}

impl State {
    /// Appends a record, behind the requests that were passed on.
    fn append(&mut self, record: &Record) -> Result<u64, String> {
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

impl Host for JournalHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Happened(_) if self.looks_back() => {
                self.end_look_back();
                HostReply::Done
            }
            HostRequest::Happened(events) => {
                let record = Record::Happened(events.to_vec());
                let appended = lock(&self.state).append(&record);
                appended.map_or_else(|reason| self.failed(reason), |_| HostReply::Done)
            }
            HostRequest::Order => self.order(),
            HostRequest::IsLookedBack if lock(&self.state).is_over => HostReply::Done,
            HostRequest::Diverged(what) => {
                let reason = Self::diverge(&lock(&self.state), what);
                self.failed(reason)
            }
            HostRequest::Write(..) | HostRequest::Display(_) if lock(&self.state).is_silent => {
                HostReply::Done
            }
            HostRequest::Write(..) | HostRequest::Display(_) => {
                // What comes before it is certain once somebody sees it.
                let flushed = lock(&self.state).flush();
                let reply = match flushed {
                    Ok(()) => self.host.call(request),
                    Err(reason) => self.failed(reason),
                };
                self.stop_if_stopped();
                reply
            }
            request if !request.is_recorded() => self.host.call(request),
            request => match self.next_request() {
                Some(Ok(recorded)) => self.replay(request, recorded),
                Some(Err(reason)) => self.failed(reason),
                None if self.looks_back() => self.beyond(&request),
                None => self.record(request),
            },
        }
    }

    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        // The disk may take its time.
        let may_sync = || lock(&self.state).appender.as_ref().is_some_and(Appender::syncs);
        self.host.may_wait(request) || request.is_recorded() && may_sync()
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let recorded = self.next_request();
        let is_passed = self.host.files().place_of(file) == Place::Tree;
        let digest = Digest::of_read(file, offset, into.len());
        match recorded {
            None if is_passed => {
                lock(&self.state).passed += 1;
                self.host.read_file(file, offset, into)
            }
            Some(Ok(Request::Passed)) if is_passed => self.host.read_file(file, offset, into),
            None if self.looks_back() => {
                self.end_look_back();
                Err(FileError::Io)
            }
            None => self.record_read(digest, (file, offset), into),
            Some(Ok(Request::Replied { digest: recorded, reply: Reply::Read(read), .. }))
                if recorded == digest =>
            {
                let bytes = read?;
                let target = into.get_mut(..bytes.len()).ok_or(FileError::Io)?;
                target.copy_from_slice(&bytes);
                Ok(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
            }
            Some(Ok(_)) => {
                let what = "it reads a file, and did something else when it was recorded";
                let reason = Self::diverge(&lock(&self.state), what);
                self.fail(reason);
                Err(FileError::Io)
            }
            Some(Err(reason)) => {
                self.fail(reason);
                Err(FileError::Io)
            }
        }
    }

    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        self.host.fill_entropy(into)
    }
}

impl JournalHost {
    /// Ends a run that is looked back at, which asks for more than was recorded. What is run then
    /// gets nothing of the host.
    fn beyond(&self, request: &HostRequest<'_>) -> HostReply {
        if !self.end_look_back() {
            return beyond(request);
        }
        match self.kind(request) {
            // It waits until it is interrupted.
            Kind::Call(_) => HostReply::Done,
            _ => beyond(request),
        }
    }

    /// Interrupts the run that is looked back at, once. Returns `true` if it has.
    fn end_look_back(&self) -> bool {
        let was_over = {
            let mut state = lock(&self.state);
            state.is_silent |= !state.is_over;
            std::mem::replace(&mut state.is_over, true)
        };
        if let (false, Some(stopper)) = (was_over, self.stopper.get().and_then(Weak::upgrade)) {
            stopper.interrupt();
        }
        !was_over
    }

    /// Returns what happens next in a replay.
    fn order(&self) -> HostReply {
        let mut state = lock(&self.state);
        let script = match &mut state.replay {
            Some(replay) => replay.script(),
            None => Ok(crate::protocol::happened::Script { events: Vec::new(), requests: Some(0) }),
        };
        drop(state);
        self.stop_if_stopped();
        let encoded = script
            .and_then(|script| postcard::to_allocvec(&script).map_err(|error| error.to_string()));
        encoded.map_or_else(|reason| self.failed(reason), HostReply::Bytes)
    }

    /// Ends a session that a replay has taken to where the host ended it.
    fn stop_if_stopped(&self) {
        let state = lock(&self.state);
        let Some(stopped) = state.stopped.as_ref().filter(|stopped| stopped.ends_session) else {
            return;
        };
        let is_over =
            state.replay.as_ref().is_none_or(|replay| replay.is_done() && replay.has_told_all());
        let limit = (stopped.stdout_bytes, stopped.stderr_bytes);
        drop(state);
        let written = self.host.written();
        if is_over
            && written.0 >= limit.0
            && written.1 >= limit.1
            && let Some(stopper) = self.stopper.get().and_then(Weak::upgrade)
        {
            stopper.kill();
        }
    }

    /// Reads from a file, and records what was read.
    fn record_read(
        &self,
        digest: Digest,
        (file, offset): (u32, u64),
        into: &mut [u8],
    ) -> Result<u32, FileError> {
        let read = self.host.read_file(file, offset, into);
        let length = read.as_ref().map_or(0, |count| *count as usize);
        let bytes = into.get(..length).unwrap_or_default();
        let mut state = lock(&self.state);
        let of_bytes = (length >= REPEATED_BYTES).then(|| Digest::of_bytes(bytes));
        let known = of_bytes.and_then(|of_bytes| state.reads.get(&of_bytes).copied());
        let reply = match (known, &read) {
            (Some(at), Ok(_)) => Reply::ReadAgain(at),
            (_, Ok(_)) => Reply::Read(Ok(serde_bytes::ByteBuf::from(bytes))),
            (_, Err(error)) => Reply::Read(Err(*error)),
        };
        let milliseconds = state.milliseconds();
        let recorded =
            state.append(&Record::Replied { digest, has_effect: false, milliseconds, reply });
        match recorded {
            Ok(at) => {
                if let (Some(of_bytes), None) = (of_bytes, known)
                    && state.reads.len() < REMEMBERED_READS
                {
                    state.reads.insert(of_bytes, at);
                }
                read
            }
            Err(reason) => {
                drop(state);
                self.fail(reason);
                Err(FileError::Io)
            }
        }
    }
}

/// Returns what a session that is looked back at gets for a request that was not recorded.
fn beyond(request: &HostRequest<'_>) -> HostReply {
    let reason = "the journal ends here, and a session that is replayed reaches nothing else";
    match request {
        HostRequest::File(_) => HostReply::File(Err(FileError::Io)),
        HostRequest::ReadStdin(_) => HostReply::Bytes(Vec::new()),
        _ => HostReply::Refused("PermissionError".to_owned(), reason.to_owned()),
    }
}

/// Returns what differs between two commands that begin a session, in words, if anything does.
pub(crate) fn difference(recorded: &[u8], own: &[u8]) -> Option<&'static str> {
    if recorded == own {
        return None;
    }
    let decode = |frame: &[u8]| {
        let mut frame = CommandFrame::new(frame.to_vec());
        let bytes = frame.take(usize::try_from(frame.length()).ok()?)?.to_vec();
        marshal::decode_within(&bytes, MOST_START_BYTES).ok()
    };
    let (recorded, own) = (decode(recorded)?, decode(own)?);
    let fields = [
        ("env", "environment variables"),
        ("mounts", "mounts"),
        ("packages", "packages"),
        ("terminal", "terminal"),
        ("tools", "tools"),
        ("submit", "functions to submit"),
        ("modules", "modules of tools"),
    ];
    let differs = |name: &str| recorded.get(name) != own.get(name);
    let found = fields.into_iter().find(|(name, _)| differs(name));
    Some(found.map_or("settings", |(_, words)| words))
}

/// Says what the guest asks for.
fn told(request: &HostRequest<'_>) -> String {
    match request {
        HostRequest::CallTool { tool, .. } => format!("calls {}()", shown(tool)),
        HostRequest::ReadStdin(_) => "reads its standard input".to_owned(),
        HostRequest::NetCheck { host, .. } => format!("asks for the server `{}`", shown(host)),
        HostRequest::NetStart { .. } => "makes a request".to_owned(),
        HostRequest::NetSend { .. } => "sends the body of a request".to_owned(),
        HostRequest::NetRead { .. } => "reads the body of a response".to_owned(),
        HostRequest::Import { module, .. } => format!("imports `{}`", shown(module)),
        HostRequest::File(request) => match request.path() {
            Some(path) => format!("uses the file `{}`", shown(path)),
            None => "uses an open file".to_owned(),
        },
        _ => "asks for something".to_owned(),
    }
}
