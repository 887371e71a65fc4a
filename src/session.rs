//! A session: one interpreter, and the runs in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::cell::Cell;
use crate::error::{Error, ErrorKind};
use crate::execution::{Execution, Outcome, Termination, Usage};
use crate::host::SessionHost;
use crate::limits::Limits;
use crate::output::{Captured, Stream};
use crate::stdin::Stdin;
use crate::stream::RunStream;
use crate::waist::{Command, Control, Link, Reply, Report, RunCommand, Status};
use crate::watchdog;

/// How often a kill is repeated until the isolate has stopped.
const REARM: Duration = Duration::from_millis(5);

/// One Python interpreter with its state, on a thread of its own.
///
/// Runs keep their state: what one defines the next one sees. A session is made by
/// [`Sandbox::session`](crate::Sandbox::session) and is shared by nobody; dropping it ends the
/// interpreter, killing a run that is under way.
pub struct Session {
    link: Link,
    host: Arc<SessionHost>,
    limits: Limits,
    state: SessionState,
}

/// Whether a session can run code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// It can.
    Ready,
    /// A limit ended its last run, and the interpreter with it.
    Terminated,
    /// A run was abandoned half-way: its future was dropped.
    Abandoned,
    /// The guest ended its interpreter, as `os._exit` does.
    Exited,
    /// Its interpreter died.
    Died,
}

impl std::fmt::Display for SessionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready => "ready",
            Self::Terminated => "closed by a limit",
            Self::Abandoned => "closed by an abandoned run",
            Self::Exited => "closed by the guest itself",
            Self::Died => "lost, its interpreter died",
        })
    }
}

/// Who ended a run. Set once, by whoever is first; the guest has no say in it.
#[derive(Default)]
struct Verdict(AtomicU8);

impl Verdict {
    const RUNNING: u8 = 0;
    const FINISHED: u8 = 1;
    const DEADLINE: u8 = 2;

    fn decide(&self, verdict: u8) -> bool {
        self.0.compare_exchange(Self::RUNNING, verdict, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn is_deadline(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::DEADLINE
    }
}

/// Interrupts the run of one session, from any thread.
#[derive(Clone)]
pub struct InterruptHandle {
    control: Arc<dyn Control>,
    host: Arc<SessionHost>,
}

impl InterruptHandle {
    /// Raises `KeyboardInterrupt` in the run that is under way.
    ///
    /// The session lives on. A guest that catches it goes on too, until its deadline; long C calls
    /// that never look for signals, such as `sum(range(10**9))`, see it when they return. Without a
    /// run under way nothing happens.
    pub fn interrupt(&self) {
        self.control.interrupt();
        self.host.interrupt_input();
    }
}

impl std::fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterruptHandle").finish_non_exhaustive()
    }
}

impl Session {
    /// Connects to a fresh isolate and makes its interpreter this session's own.
    pub(crate) async fn start(
        link: Link,
        host: Arc<SessionHost>,
        limits: Limits,
        env: Vec<(String, String)>,
    ) -> Result<Self, Error> {
        let mut session = Self { link, host, limits, state: SessionState::Ready };
        let _ = session.link.commands.send(Command::Start { env });
        match session.link.replies.recv().await {
            Some(Reply::Done { .. }) => Ok(session),
            Some(Reply::Failed(reason)) => Err(Error::new(ErrorKind::Start, reason)),
            Some(Reply::Terminated | Reply::Exited(_)) | None => {
                Err(Error::new(ErrorKind::Start, "the interpreter ended while it started"))
            }
        }
    }

    /// Runs a cell and returns what became of it.
    ///
    /// Top-level `await` is allowed, and the value of a last expression is the cell's value. State
    /// stays in the session. Tasks that a cell leaves behind go on only while a later cell runs.
    ///
    /// # Errors
    ///
    /// A Python exception or a limit is no error but an [`Outcome`]. An error means that the host
    /// could not run the cell: [`ErrorKind::Closed`] if the session had ended before.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the run, and the session with it.
    pub async fn run(&mut self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.run_with_sink(cell.into(), None).await
    }

    /// Runs a cell and gives its output as it comes, then the result.
    ///
    /// See [`RunStream`] for how; everything else is as in [`run`](Self::run).
    pub fn run_streaming(&mut self, cell: impl Into<Cell>) -> RunStream<'_> {
        let (sink, output) = mpsc::unbounded_channel();
        let cell = cell.into();
        RunStream::new(output, Box::pin(self.run_with_sink(cell, Some(sink))))
    }

    /// Returns a handle that interrupts the session's runs from elsewhere.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle { control: Arc::clone(&self.link.control), host: Arc::clone(&self.host) }
    }

    /// Returns whether the session can run code.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Returns whether `code` is the beginning of something longer, as an open bracket or an
    /// indented block is: what a prompt has to know before it runs what was typed.
    ///
    /// As at python's own prompt, a block ends with an empty line, that is, with a newline after
    /// its last one.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); the deadline counts here too, and past it the error is
    /// [`ErrorKind::Limit`].
    pub async fn is_incomplete(&mut self, code: impl Into<String>) -> Result<bool, Error> {
        let command = Command::Check { code: code.into() };
        let finished = self.command(command, Stdin::empty(), None).await?;
        match finished.ending {
            Ending::Reported(report) => Ok(report.is_incomplete),
            Ending::Exited(_) => Ok(false),
            Ending::Terminated(termination) => {
                Err(Error::new(ErrorKind::Limit, termination.to_string()))
            }
        }
    }

    async fn run_with_sink(
        &mut self,
        cell: Cell,
        sink: Option<mpsc::UnboundedSender<(Stream, Vec<u8>)>>,
    ) -> Result<Execution, Error> {
        let command = Command::Run(RunCommand {
            code: cell.code,
            name: cell.name,
            is_file: cell.is_file,
            role: cell.role,
            has_stdin: !cell.stdin.is_empty(),
            argv: cell.argv,
            max_repr_chars: Limits::REPR_CHARS,
            max_value_bytes: self.limits.value_bytes(),
        });
        let finished = self.command(command, cell.stdin, sink).await?;
        let usage = Usage {
            wall_time: finished.wall_time,
            peak_memory_bytes: finished.memory_bytes,
            stdout_bytes: finished.stdout.written(),
            stderr_bytes: finished.stderr.written(),
            tool_calls: 0,
        };
        let (outcome, report) = match finished.ending {
            Ending::Reported(mut report) => (self.outcome(&mut report), report),
            Ending::Exited(status) => (Outcome::Exited(status), Report::default()),
            Ending::Terminated(termination) => {
                (Outcome::Terminated(termination), Report::default())
            }
        };
        Ok(Execution {
            outcome,
            repr: report.repr,
            value_error: report.value_error,
            stdout: finished.stdout,
            stderr: finished.stderr,
            locals: report.locals,
            usage,
            session_alive: self.state == SessionState::Ready,
        })
    }

    /// Has the guest carry out a command, within the deadline.
    async fn command(
        &mut self,
        command: Command,
        stdin: Stdin,
        sink: Option<mpsc::UnboundedSender<(Stream, Vec<u8>)>>,
    ) -> Result<Finished, Error> {
        if self.state != SessionState::Ready {
            return Err(Error::new(
                ErrorKind::Closed,
                format!("the session is {}, make a new one", self.state),
            ));
        }
        let started = Instant::now();
        self.host.begin(&self.limits, stdin, sink);
        self.link.control.clear_interrupt();
        let verdict = Arc::new(Verdict::default());
        // Until the reply is here a drop of this future leaves the session abandoned, and the guest
        // is killed by the guard.
        self.state = SessionState::Abandoned;
        let guard = KillOnDrop(self);
        let armed = guard.0.arm(started + guard.0.limits.run_time(), &verdict)?;
        let _ = guard.0.link.commands.send(command);
        let reply = guard.0.link.replies.recv().await;
        verdict.decide(Verdict::FINISHED);
        drop(armed);
        std::mem::forget(guard);
        Ok(self.finish(reply, &verdict, started))
    }

    fn finish(&mut self, reply: Option<Reply>, verdict: &Verdict, started: Instant) -> Finished {
        let (stdout, stderr) = self.host.finish();
        let wall_time = started.elapsed();
        let limit = self.limits.run_time();
        let (state, ending, memory_bytes) = match reply {
            // The deadline came first, whatever the guest says.
            _ if verdict.is_deadline() => {
                // An isolate that had just finished waits for commands; it gets no more.
                self.link.control.terminate();
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
            Some(Reply::Terminated) | None => {
                let reason = "its thread ended during the run".to_owned();
                (SessionState::Died, Ending::Terminated(Termination::Died { reason }), 0)
            }
        };
        self.state = state;
        Finished { ending, memory_bytes, stdout, stderr, wall_time }
    }

    /// Has the guest killed at `deadline`, again and again until it has stopped.
    fn arm(&self, deadline: Instant, verdict: &Arc<Verdict>) -> Result<watchdog::Armed, Error> {
        let control = Arc::clone(&self.link.control);
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

    fn outcome(&self, report: &mut Report) -> Outcome {
        match std::mem::take(&mut report.status) {
            Status::Completed => Outcome::Completed(report.value.take()),
            Status::Exited(code) => Outcome::Exited(code),
            Status::Raised(exception)
                if exception.type_name == "KeyboardInterrupt"
                    && self.link.control.interrupted() =>
            {
                Outcome::Terminated(Termination::Interrupted)
            }
            Status::Raised(exception) => Outcome::Raised(exception),
        }
    }
}

/// A command that has ended.
struct Finished {
    ending: Ending,
    memory_bytes: u64,
    stdout: Captured,
    stderr: Captured,
    wall_time: Duration,
}

enum Ending {
    /// The guest gave an account of it.
    Reported(Report),
    Exited(i32),
    Terminated(Termination),
}

impl Drop for Session {
    fn drop(&mut self) {
        self.link.control.terminate();
        self.host.interrupt_input();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Kills the guest of a run whose future is dropped before its reply came.
struct KillOnDrop<'a>(&'a mut Session);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.0.link.control.terminate();
        self.0.host.interrupt_input();
    }
}
