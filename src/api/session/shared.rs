//! State shared by a session's owner and its handles: the link to the isolate, and the commands
//! that are run over it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{MutexGuard, mpsc, oneshot};

use super::checkpoint::{Keeper, Turn};
use super::finish::{Ended, unreadable};
use super::frame::Frame;
use super::setup::Setup;
use super::state::SessionState;
use crate::api::engine::startup::Startup;
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::limits::Limits;
use crate::data::stdin::Stdin;
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::SessionHost;
use crate::host::journal::JournalHost;
use crate::host::pipe::PipeWriter;
use crate::host::stop::{Passage, RunStopper, Stop, Stoppable, Stopping};
use crate::host::tools::{Calls, SessionAccess, SessionHandle};
use crate::protocol::codec;
use crate::protocol::{
    Command, ForkMoment, Forker, Host, Link, Message, Outbox, Reply, Report, Status,
};
use crate::support::block_on::PollSource;
use crate::support::block_on::with_source;
use crate::support::lock::lock;
use crate::support::offload;

/// One interpreter, as shared by its owner and its handles.
pub(crate) struct Shared {
    pub(super) id: u64,
    pub(super) host: Arc<SessionHost>,
    pub(super) limits: Limits,
    pub(super) stopper: Arc<RunStopper>,
    messages: Outbox,
    source: Option<Arc<dyn PollSource>>,
    state: Mutex<SessionState>,
    /// Locked while a command runs.
    driver: tokio::sync::Mutex<Driver>,
    /// Who has locked it.
    turn: Mutex<Turn>,
    /// Keeps the state for when the interpreter ends.
    pub(super) keeper: Option<Keeper>,
    peeks: Mutex<Peeks>,
    forker: Option<Arc<dyn Forker>>,
    /// What was done before any code, while there was none and the session may move.
    pub(super) setup: Mutex<Option<Setup>>,
    /// The journal of a recorded session.
    pub(super) journal: Option<Arc<JournalHost>>,
}

/// State that only the holder of the `driver` lock may use.
struct Driver {
    replies: mpsc::UnboundedReceiver<Reply>,
    /// The reply to the first command has not been read.
    is_starting: bool,
}

#[derive(Default)]
struct Peeks {
    /// Set while a command is under way and its replies are read.
    open: bool,
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Vec<u8>, String>>>,
}

impl Shared {
    pub(super) fn new(
        id: u64,
        link: Link,
        host: Arc<SessionHost>,
        limits: Limits,
        keeper: Option<Keeper>,
        journal: Option<Arc<JournalHost>>,
    ) -> Self {
        let Link { messages, replies, control, source, forker } = link;
        let stopper = Arc::new(RunStopper::new(control, Arc::clone(&host) as _, limits.grace()));
        host.stop_with(&stopper);
        Self {
            id,
            host,
            limits,
            stopper,
            messages,
            source,
            state: Mutex::new(SessionState::Ready),
            driver: tokio::sync::Mutex::new(Driver { replies, is_starting: false }),
            turn: Mutex::new(Turn::Command),
            keeper,
            peeks: Mutex::default(),
            forker,
            setup: Mutex::new(None),
            journal,
        }
    }

    pub(super) fn state(&self) -> SessionState {
        *lock(&self.state)
    }

    pub(super) fn set_state(&self, state: SessionState) {
        let mut current = lock(&self.state);
        // A closed session stays closed.
        if *current != SessionState::Closed {
            *current = state;
        }
    }

    pub(super) fn interrupt(&self) {
        self.stopper.interrupt();
    }

    pub(super) fn was_interrupted(&self) -> bool {
        let was_before = self.journal.as_ref().is_some_and(|journal| journal.was_interrupted());
        self.stopper.control().interrupted() || was_before
    }

    /// Ends the interpreter permanently.
    pub(super) fn close(&self) {
        self.set_state(SessionState::Closed);
        self.release();
    }

    /// Ends whatever is left of the interpreter. The host does nothing more for it.
    pub(super) fn release(&self) {
        self.stopper.kill();
        self.host.close();
        // Another process, or this one, may go on with it.
        if let Some(journal) = &self.journal {
            journal.close();
        }
    }

    /// Has the guest do what python does at its exit, for at most the grace time. Whether that was
    /// done makes no difference to anybody: the session ends.
    pub(super) async fn end(self: &Arc<Self>) {
        if self.state() == SessionState::Ready {
            let _ = self.quick_within(Command::End, self.limits.grace()).await;
        }
    }

    /// Assigns the restored interpreter to this session. [`started`](Self::started) or the next
    /// command waits for the reply.
    pub(super) async fn start(&self, startup: &Startup) {
        self.driver.lock().await.is_starting = true;
        self.send(startup.message());
    }

    /// Waits until the interpreter has become this session's.
    pub(super) async fn started(&self) -> Result<(), Error> {
        let mut driver = self.driver.lock().await;
        with_source(self.source.as_ref(), self.finish_start(&mut driver)).await?;
        self.began();
        Ok(())
    }

    /// Has the host wait for the first command of an interpreter that has started up.
    pub(super) fn began(&self) {
        self.host.shut(Passage::Idle);
    }

    async fn finish_start(&self, driver: &mut Driver) -> Result<(), Error> {
        let reply = driver.replies.recv().await;
        driver.is_starting = false;
        let reason = match reply {
            Some(Reply::Done { report, .. }) => match self.read(report, 0).await {
                Ok(Report { status: Status::Raised(exception), .. }) => {
                    format!("the interpreter cannot begin the session: {exception}")
                }
                Ok(_) => return Ok(()),
                Err(reason) => unreadable(&reason),
            },
            Some(Reply::Failed(reason)) => reason,
            _ => "the interpreter ended while it started".to_owned(),
        };
        self.host.shut(Passage::Closed);
        self.stopper.kill();
        self.set_state(SessionState::Died);
        Err(Error::new(ErrorKind::Start, reason))
    }

    /// Runs a command in the guest, within the deadline. It is interrupted at once if the flag
    /// `interrupt` is set.
    pub(super) async fn command(
        self: &Arc<Self>,
        mut frame: Frame,
        run_time: Duration,
        interrupt: Option<&AtomicBool>,
        stdin: Stdin,
        pipe: Option<PipeWriter>,
    ) -> Result<Ended, Error> {
        let mut driver = self.take_turn(frame.turn).await?;
        self.check_ready()?;
        if let (Some(keeper), Turn::Command) = (&self.keeper, frame.turn) {
            keeper.count(frame.is_run());
        }
        if frame.turn == Turn::Command {
            Setup::note(&mut lock(&self.setup), frame.effect, &frame.message);
        }
        if let Some(journal) = &self.journal {
            Self::begin_in_journal(journal, &frame, run_time, &stdin)?;
        }
        let is_save = frame.saves_to.is_some();
        if let Some(to) = frame.saves_to.take() {
            self.host.saving().begin(to);
        }
        let mut started = Instant::now();
        // Waiting for the host makes the end of a session no longer.
        let host_time = if frame.is_end() { run_time } else { self.limits.host_time() };
        let stopping = self.stopper.begin(started, run_time, host_time);
        let stopping = stopping.map_err(|error| {
            let message = format!("the watchdog thread cannot start: {error}");
            Error::new(ErrorKind::Start, message).with_source(error)
        })?;
        // After the stopper has begun, so that an interrupt that ends a wait for input belongs to
        // this run.
        self.host.begin(&self.limits, stdin, pipe);
        if interrupt.is_some_and(|flag| flag.load(Ordering::SeqCst)) {
            self.interrupt();
        }
        if !frame.is_run() {
            self.host.tools().pause();
        }
        // If this future is dropped before the reply arrives, the guard kills the guest and the
        // session stays abandoned. Nobody drops the one that keeps the state.
        if frame.turn == Turn::Command {
            self.set_state(SessionState::Abandoned);
        }
        let guard = KillOnDrop(self);
        // The command follows the start, which takes none of its time.
        let start = driver.is_starting.then(|| (stopping.clock().stand_still(), started.elapsed()));
        self.send(frame.message);
        if let Some(journal) = &self.journal {
            journal.stop_if_stopped();
        }
        let answered = async {
            if let Some((standstill, before)) = start {
                self.finish_start(&mut driver).await?;
                let now = Instant::now();
                started = now.checked_sub(before).unwrap_or(now);
                drop(standstill);
            }
            Ok(self.serve(&mut driver, &stopping).await)
        };
        let answered = with_source(self.source.as_ref(), answered).await;
        // Whatever happened, nothing more is taken from the guest.
        let saved = is_save.then(|| self.host.saving().end());
        let mut reply = match answered {
            Ok(reply) => reply,
            Err(error) => {
                std::mem::forget(guard);
                drop(self.host.finish());
                return Err(error);
            }
        };
        let stop = stopping.end();
        self.host.shut(Passage::Output);
        let wall_time = started.elapsed();
        let report = reply.as_mut().and_then(Reply::report).map(std::mem::take).unwrap_or_default();
        // Decoding the report delays only the caller: `stop` is already decided.
        let report = match &stop {
            Stop { killed: true, .. } => Err("the guest was killed".to_owned()),
            // A stopped run has no value.
            Stop { cause: Some(_), .. } => self.read(report, 0).await,
            Stop { cause: None, .. } => self.read(report, self.limits.value_bytes()).await,
        };
        std::mem::forget(guard);
        let mut ended = Ended { saved, ..self.finish(reply, report, stop, wall_time, run_time) };
        drop(driver);
        if let Some(journal) = &self.journal {
            self.end_in_journal(journal, frame.origin, &mut ended)?;
        }
        if let (Some(keeper), Turn::Command, SessionState::Ready) =
            (&self.keeper, frame.turn, self.state())
        {
            keeper.note_memory(ended.memory_bytes);
            self.keep_when_idle();
        }
        Ok(ended)
    }

    /// Waits until the state is not being kept.
    pub(super) async fn after_keeping(&self) {
        let is_keeping = *lock(&self.turn) == Turn::Keeping;
        if is_keeping {
            drop(self.driver.lock().await);
        }
    }

    /// Waits for a command's turn. While another command runs the session is busy, but keeping its
    /// state takes only a moment, of which the owner need not know.
    async fn take_turn(&self, turn: Turn) -> Result<MutexGuard<'_, Driver>, Error> {
        {
            let mut current = lock(&self.turn);
            if let Ok(driver) = self.driver.try_lock() {
                *current = turn;
                return Ok(driver);
            }
            if *current != Turn::Keeping || turn == Turn::Keeping {
                return Err(self.busy());
            }
        }
        let driver = self.driver.lock().await;
        *lock(&self.turn) = turn;
        Ok(driver)
    }

    /// Has the process of the isolate copied between two commands. `host` answers the copy.
    pub(super) async fn copy(
        self: &Arc<Self>,
        host: Arc<dyn Host>,
    ) -> Result<(Link, IsolationReport), Error> {
        let Some(forker) = &self.forker else {
            let message = "the session cannot be forked: its sandbox was built without \
                           `SandboxBuilder::forkable`";
            return Err(Error::new(ErrorKind::Config, message).with_session_alive());
        };
        self.quick(Command::Fork(ForkMoment::Before)).await?;
        let copied = {
            let _driver = self.take_turn(Turn::Command).await?;
            self.check_ready()?;
            // As for a command. Half of the program's hooks have run.
            self.set_state(SessionState::Abandoned);
            let guard = KillOnDrop(self);
            let copied = forker.fork(host).await;
            std::mem::forget(guard);
            self.set_state(SessionState::Ready);
            copied
        };
        // The program's hooks come in pairs.
        self.quick(Command::Fork(ForkMoment::AfterInOriginal)).await?;
        copied
    }

    /// Runs a copied interpreter's hooks. The first command of a copy.
    pub(super) async fn began_as_copy(self: &Arc<Self>) -> Result<(), Error> {
        self.quick(Command::Fork(ForkMoment::AfterInCopy)).await.map(drop)
    }

    /// Decodes the guest's report. Its value may take at most `max_value_bytes` bytes of memory.
    async fn read(&self, report: Vec<u8>, max_value_bytes: u64) -> Result<Report, String> {
        let (observed, limit) =
            (report.len() as u64, codec::max_report_bytes(self.limits.value_bytes()));
        if observed > limit {
            return Err(format!("it has {observed} bytes, the limit is {limit}"));
        }
        if report.is_empty() {
            return Err("there is none".to_owned());
        }
        let is_much = offload::is_much_to_decode(&report);
        offload::run(is_much, move || codec::decode(&report, max_value_bytes)).await?
    }

    /// Serves the guest's tool calls until the command's reply arrives. Returns `None` if the guest
    /// was killed without a reply.
    async fn serve(
        self: &Arc<Self>,
        driver: &mut Driver,
        stopping: &Stopping<'_>,
    ) -> Option<Reply> {
        let _peeks = PeekWindow::open(&self.peeks);
        let session = SessionHandle::new(Arc::clone(self) as _);
        let mut calls = Calls::new(session, self.host.tools(), stopping.clock());
        let mut peeked = Vec::new();
        let reply = loop {
            tokio::select! {
                biased;
                reply = driver.replies.recv() => match reply {
                    Some(Reply::Peeked { number, refusal, report }) => {
                        peeked.push((number, refusal.map_or(Ok(report), Err)));
                    }
                    last => break last,
                },
                (call, answer) = calls.next() => self.answer(call, answer),
                // Once the calls have begun that the guest had made before it answered.
                () = std::future::ready(()), if !peeked.is_empty() => {
                    for (number, report) in peeked.drain(..) {
                        self.peeked(number, report);
                    }
                }
                () = stopping.overdue() => break None,
            }
        };
        let over = "the run that made this call has ended";
        for call in calls.cancel_all() {
            let refusal = Err(ToolError::new("RuntimeError", over));
            self.answer(call, codec::encode_answer(refusal, self.limits.value_bytes()));
        }
        reply
    }

    /// Runs a command that runs no cell. If a run is under way, the guest answers as soon as the
    /// run waits.
    pub(super) async fn look(
        self: &Arc<Self>,
        command: impl Fn() -> Command,
    ) -> Result<Report, Error> {
        loop {
            if let Some(answer) = self.peek(|| codec::encode(command())) {
                // The run ended before it answered; try again.
                let Ok(report) = answer.await else { continue };
                let read = match report {
                    Ok(report) => self.read(report, self.limits.value_bytes()).await,
                    Err(reason) => Err(reason),
                };
                return read.map_err(|reason| {
                    let message = format!("the guest's answer cannot be read: {reason}");
                    Error::new(ErrorKind::Value, message).with_session_alive()
                });
            }
            match self.quick(command()).await {
                // A run is just starting or ending.
                Err(error) if error.kind() == ErrorKind::Busy => tokio::task::yield_now().await,
                done => return done,
            }
        }
    }

    /// Sends the frame to the guest as a peek. Returns `None` if no other command is under way.
    fn peek(
        &self,
        frame: impl FnOnce() -> Vec<u8>,
    ) -> Option<oneshot::Receiver<Result<Vec<u8>, String>>> {
        let mut peeks = lock(&self.peeks);
        if !peeks.open {
            return None;
        }
        peeks.last += 1;
        let number = peeks.last;
        let (sender, answer) = oneshot::channel();
        peeks.waiting.insert(number, sender);
        self.send(Message::Peek(number, frame()));
        Some(answer)
    }

    /// Runs a command that runs no cell, within the deadline of a run.
    pub(super) async fn quick(self: &Arc<Self>, command: Command) -> Result<Report, Error> {
        self.quick_within(command, self.limits.run_time()).await
    }

    /// Runs a command that runs no cell, within the given time.
    pub(super) async fn quick_within(
        self: &Arc<Self>,
        command: Command,
        run_time: Duration,
    ) -> Result<Report, Error> {
        self.quick_frame(Frame::of(command), run_time).await
    }

    /// Runs an encoded command that runs no cell, within the given time.
    pub(super) async fn quick_frame(
        self: &Arc<Self>,
        frame: Frame,
        run_time: Duration,
    ) -> Result<Report, Error> {
        self.quick_ended(frame, run_time).await.map(|ended| ended.report)
    }

    /// The same, with all that the command ended with.
    pub(super) async fn quick_ended(
        self: &Arc<Self>,
        frame: Frame,
        run_time: Duration,
    ) -> Result<Ended, Error> {
        let ended = self.command(frame, run_time, None, Stdin::empty(), None).await?;
        match ended.termination {
            None if self.state() == SessionState::Exited => Err(self.closed()),
            None => Ok(ended),
            Some(termination) => {
                let error = termination.to_error();
                let alive = self.state() == SessionState::Ready;
                Err(if alive { error.with_session_alive() } else { error })
            }
        }
    }

    /// Gives the interpreter a command that another one has carried out.
    pub(super) async fn repeat(self: &Arc<Self>, command: Vec<u8>) -> Result<(), Error> {
        self.quick_frame(Frame::again(command), self.limits.run_time()).await.map(drop)
    }

    fn peeked(&self, number: u64, report: Result<Vec<u8>, String>) {
        if let Some(sender) = lock(&self.peeks).waiting.remove(&number) {
            let _ = sender.send(report);
        }
    }

    fn answer(&self, call: u32, answer: Vec<u8>) {
        let answer = self.host.tools().unread(answer);
        self.send(Message::Answer(call, answer));
    }

    fn send(&self, message: Message) {
        (self.messages)(message);
    }

    fn check_ready(&self) -> Result<(), Error> {
        if self.state() == SessionState::Ready { Ok(()) } else { Err(self.closed()) }
    }

    fn closed(&self) -> Error {
        let message = format!("the session is {}, make a new one", self.state());
        Error::new(ErrorKind::Closed, message)
    }

    fn busy(&self) -> Error {
        let message = format!("session {} is busy, something runs in it already", self.id);
        Error::new(ErrorKind::Busy, message).with_session_alive()
    }
}

impl SessionAccess for Shared {
    fn id(&self) -> u64 {
        self.id
    }

    fn log(&self, line: &str) {
        self.host.log(line);
    }

    fn run(self: Arc<Self>, cell: Cell) -> BoxFuture<'static, Result<Execution, Error>> {
        Box::pin(async move { self.run_cell(cell, None).await })
    }

    fn get(self: Arc<Self>, name: &str) -> BoxFuture<'_, Result<Option<Value>, Error>> {
        Box::pin(async move { self.get_variable(name).await })
    }

    fn variables(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Variable>, Error>> {
        Box::pin(async move { self.list_variables().await })
    }

    fn settled(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut before = None;
            // The event loop has a turn between two peeks, and a turn makes the calls that are due.
            while let Some(waits) = self.peek(Vec::new) {
                let (true, calls) = (waits.await.is_ok(), self.host.tools().queue().last()) else {
                    return;
                };
                if before.replace(calls) == Some(calls) {
                    return;
                }
            }
        })
    }
}

/// Kills the guest if the future of a run or a fork is dropped before its end.
struct KillOnDrop<'a>(&'a Shared);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stopper.kill();
        self.0.host.close();
    }
}

/// Peeks are accepted while this exists. On drop, unanswered peeks fail and their callers retry.
struct PeekWindow<'a>(&'a Mutex<Peeks>);

impl<'a> PeekWindow<'a> {
    fn open(peeks: &'a Mutex<Peeks>) -> Self {
        lock(peeks).open = true;
        Self(peeks)
    }
}

impl Drop for PeekWindow<'_> {
    fn drop(&mut self) {
        let mut peeks = lock(self.0);
        peeks.open = false;
        peeks.waiting.clear();
    }
}
