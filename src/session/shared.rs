//! What a session's owner and its handles share: the link to the isolate, and how a command is
//! carried out over it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::SessionHandle;
use super::state::{SessionState, Verdict};
use crate::error::{Error, ErrorKind};
use crate::execution::Termination;
use crate::host::{SessionHost, Sink};
use crate::limits::Limits;
use crate::output::{Captured, Stream};
use crate::stdin::Stdin;
use crate::tool::{CallEvent, Calls, ToolError};
use crate::waist::{Command, Control, Host, HostRequest, Link, Message, Reply, Report};
use crate::watchdog;

/// How often a kill is repeated until the isolate has stopped.
const REARM: Duration = Duration::from_millis(5);

/// One interpreter, as its owner and its handles see it.
pub(crate) struct Shared {
    id: u64,
    pub(super) host: Arc<SessionHost>,
    pub(super) limits: Limits,
    control: Arc<dyn Control>,
    messages: mpsc::UnboundedSender<Message>,
    state: Mutex<SessionState>,
    /// Held by whoever has the guest do something.
    driver: tokio::sync::Mutex<Driver>,
    peeks: Mutex<Peeks>,
}

/// What only the one who has the guest do something may use.
struct Driver {
    replies: mpsc::UnboundedReceiver<Reply>,
    calls: mpsc::UnboundedReceiver<CallEvent>,
}

#[derive(Default)]
struct Peeks {
    /// Whether a command is under way and its replies are read.
    open: bool,
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Report, String>>>,
}

/// A command that has ended.
pub(super) struct Finished {
    pub(super) ending: Ending,
    pub(super) memory_bytes: u64,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) tool_calls: u64,
    pub(super) submission: Option<crate::value::Value>,
    pub(super) wall_time: Duration,
}

pub(super) enum Ending {
    /// The guest gave an account of it.
    Reported(Report),
    Exited(i32),
    Terminated(Termination),
}

impl Shared {
    pub(super) fn new(
        id: u64,
        link: Link,
        host: Arc<SessionHost>,
        calls: mpsc::UnboundedReceiver<CallEvent>,
        limits: Limits,
    ) -> Self {
        let Link { messages, replies, control } = link;
        Self {
            id,
            host,
            limits,
            control,
            messages,
            state: Mutex::new(SessionState::Ready),
            driver: tokio::sync::Mutex::new(Driver { replies, calls }),
            peeks: Mutex::default(),
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn state(&self) -> SessionState {
        *lock(&self.state)
    }

    fn set_state(&self, state: SessionState) {
        let mut current = lock(&self.state);
        // An owner that is gone does not come back.
        if *current != SessionState::Closed {
            *current = state;
        }
    }

    pub(super) fn interrupt(&self) {
        self.control.interrupt();
        self.host.interrupt_input();
    }

    pub(super) fn was_interrupted(&self) -> bool {
        self.control.interrupted()
    }

    /// Ends the interpreter, for good.
    pub(super) fn close(&self) {
        self.set_state(SessionState::Closed);
        self.kill();
    }

    fn kill(&self) {
        self.control.terminate();
        self.host.interrupt_input();
    }

    pub(super) fn log(&self, line: &str) {
        self.host.call(HostRequest::Write(Stream::Stderr, line.as_bytes()));
    }

    /// Makes the restored interpreter this session's own.
    pub(super) async fn start(&self, env: Vec<(String, String)>) -> Result<(), Error> {
        let mut driver = self.driver.lock().await;
        let has_packages = self.host.packages().any_allowed();
        self.send(Message::Command(Command::Start { env, has_packages }));
        match driver.replies.recv().await {
            Some(Reply::Done { .. }) => Ok(()),
            Some(Reply::Failed(reason)) => Err(Error::new(ErrorKind::Start, reason)),
            _ => Err(Error::new(ErrorKind::Start, "the interpreter ended while it started")),
        }
    }

    /// Has the guest carry out a command, within the deadline.
    pub(super) async fn command(
        self: &Arc<Self>,
        command: Command,
        run_time: Duration,
        stdin: Stdin,
        sink: Option<Sink>,
    ) -> Result<Finished, Error> {
        let Ok(mut driver) = self.driver.try_lock() else {
            return Err(self.busy());
        };
        self.check_ready()?;
        let started = Instant::now();
        self.host.begin(&self.limits, stdin, sink);
        if !matches!(command, Command::Run(_)) {
            self.host.tools().pause();
        }
        self.control.clear_interrupt();
        let verdict = Arc::new(Verdict::default());
        // Until the reply is here a drop of this future leaves the session abandoned, and the guest
        // is killed by the guard.
        self.set_state(SessionState::Abandoned);
        let guard = KillOnDrop(self);
        let armed = self.arm(started + run_time, &verdict)?;
        self.send(Message::Command(command));
        let reply = self.serve(&mut driver).await;
        verdict.decide(Verdict::FINISHED);
        drop(armed);
        std::mem::forget(guard);
        Ok(self.finish(reply, &verdict, started, run_time))
    }

    /// Serves the guest's tool calls until the command's reply is here.
    async fn serve(self: &Arc<Self>, driver: &mut Driver) -> Option<Reply> {
        let _peeks = PeekWindow::open(&self.peeks);
        let session = SessionHandle(Arc::clone(self));
        let mut calls = Calls::new(session, self.limits.concurrent_tools());
        let reply = loop {
            tokio::select! {
                biased;
                reply = driver.replies.recv() => match reply {
                    Some(Reply::Peeked(number, report)) => self.peeked(number, report),
                    last => break last,
                },
                Some(event) = driver.calls.recv() => {
                    if let Some((call, outcome)) = calls.handle(event) {
                        self.send(Message::Answer(call, outcome));
                    }
                }
                (call, outcome) = calls.next() => self.send(Message::Answer(call, outcome)),
            }
        };
        let over = "the run that made this call has ended";
        let mut unanswered: Vec<u32> = calls.cancel_all().collect();
        while let Ok(event) = driver.calls.try_recv() {
            if let CallEvent::Start(call) = event {
                unanswered.push(call.id);
            }
        }
        for call in unanswered {
            self.send(Message::Answer(call, Err(ToolError::new("RuntimeError", over))));
        }
        reply
    }

    fn finish(
        &self,
        reply: Option<Reply>,
        verdict: &Verdict,
        started: Instant,
        limit: Duration,
    ) -> Finished {
        let finished = self.host.finish();
        let wall_time = started.elapsed();
        let (state, ending, memory_bytes) = match reply {
            // The deadline came first, whatever the guest says.
            _ if verdict.is_deadline() => {
                // An isolate that had just finished waits for commands; it gets no more.
                self.control.terminate();
                let termination = Termination::Deadline { limit, observed: wall_time };
                (SessionState::Terminated, Ending::Terminated(termination), 0)
            }
            Some(Reply::Done { report, memory_bytes }) => {
                (SessionState::Ready, Ending::Reported(report), memory_bytes)
            }
            Some(Reply::Exited(status)) => (SessionState::Exited, Ending::Exited(status), 0),
            Some(Reply::Failed(reason)) => {
                (SessionState::Died, Ending::Terminated(Termination::Died { reason }), 0)
            }
            Some(Reply::OutOfMemory { limit, observed }) => {
                let termination = Termination::Memory { limit, observed };
                (SessionState::Terminated, Ending::Terminated(termination), 0)
            }
            Some(Reply::Terminated | Reply::Peeked(..)) | None => {
                let reason = "its thread ended during the run".to_owned();
                (SessionState::Died, Ending::Terminated(Termination::Died { reason }), 0)
            }
        };
        self.set_state(state);
        Finished {
            ending,
            memory_bytes,
            stdout: finished.stdout,
            stderr: finished.stderr,
            tool_calls: finished.tool_calls,
            submission: finished.submission,
            wall_time,
        }
    }

    /// Has the guest carry out a command that runs no cell; during a run as soon as the run waits.
    pub(super) async fn look(
        self: &Arc<Self>,
        command: impl Fn() -> Command,
    ) -> Result<Report, Error> {
        loop {
            if let Some(answer) = self.peek(&command) {
                match answer.await {
                    Ok(Ok(report)) => return Ok(report),
                    Ok(Err(reason)) => {
                        let message = format!("the guest's answer cannot be read: {reason}");
                        return Err(Error::new(ErrorKind::Value, message).with_session_alive());
                    }
                    // The run has ended meanwhile.
                    Err(_) => continue,
                }
            }
            match self.quick(command()).await {
                // A run is just beginning or ending.
                Err(error) if error.kind() == ErrorKind::Busy => tokio::task::yield_now().await,
                done => return done,
            }
        }
    }

    /// Asks the guest of the command that is under way, if one is.
    fn peek(
        &self,
        command: impl Fn() -> Command,
    ) -> Option<oneshot::Receiver<Result<Report, String>>> {
        let mut peeks = lock(&self.peeks);
        if !peeks.open {
            return None;
        }
        peeks.last += 1;
        let number = peeks.last;
        let (sender, answer) = oneshot::channel();
        peeks.waiting.insert(number, sender);
        self.send(Message::Peek(number, command()));
        Some(answer)
    }

    /// Has the guest carry out a command that runs no cell, within the deadline of a run.
    pub(super) async fn quick(self: &Arc<Self>, command: Command) -> Result<Report, Error> {
        let run_time = self.limits.run_time();
        let finished = self.command(command, run_time, Stdin::empty(), None).await?;
        match finished.ending {
            Ending::Reported(report) => Ok(report),
            Ending::Exited(_) => Err(self.closed()),
            Ending::Terminated(termination) => {
                Err(Error::new(ErrorKind::Limit, termination.to_string()))
            }
        }
    }

    fn peeked(&self, number: u64, report: Result<Report, String>) {
        if let Some(sender) = lock(&self.peeks).waiting.remove(&number) {
            let _ = sender.send(report);
        }
    }

    fn send(&self, message: Message) {
        // An isolate that is gone says so by its replies.
        let _ = self.messages.send(message);
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

    /// Has the guest killed at `deadline`, again and again until it has stopped.
    fn arm(&self, deadline: Instant, verdict: &Arc<Verdict>) -> Result<watchdog::Armed, Error> {
        let control = Arc::clone(&self.control);
        let host = Arc::clone(&self.host);
        let verdict = Arc::clone(verdict);
        let kill = move || {
            if !verdict.decide(Verdict::DEADLINE) && !verdict.is_deadline() {
                return None;
            }
            control.terminate();
            host.interrupt_input();
            Some(Instant::now() + REARM)
        };
        watchdog::arm(deadline, Box::new(kill)).map_err(|error| {
            Error::new(ErrorKind::Start, format!("the watchdog thread cannot start: {error}"))
        })
    }
}

/// Kills the guest of a run whose future is dropped before its reply came.
struct KillOnDrop<'a>(&'a Shared);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// While it lives, peeks are answered. Those that are not when it goes have to ask anew.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
