//! A run under way: its thread, its cancellation, and its questions to the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use isolet::{Cell, Error, ErrorKind, Execution, InterruptHandle};
use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::approvals::{Calls, Question, RunApprovals};
use super::durable::RunJournal;
use super::python::{Interpreter, PythonSession, copy_out, failed};
use super::tools::Runner;
use isolet_service::core::{Lease, in_options};

/// The interval of progress notifications to a client.
pub(super) const BEAT: Duration = Duration::from_secs(10);

/// The time that a cancelled run may take to end before its session is killed.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The code that a client wants to run.
pub(super) struct Job {
    pub(super) code: String,
    pub(super) runner: Runner,
    pub(super) timeout: Option<Duration>,
    /// Whether the client shows tables.
    pub(super) has_tables: bool,
    /// Whether it may wait for a decision beyond the end of the server.
    pub(super) may_wait: bool,
}

/// A run that has ended.
pub(super) struct Ran {
    pub(super) execution: Execution,
    pub(super) in_use: Lease<PythonSession>,
    /// Why files could not be written back after it.
    pub(super) unwritten: Option<String>,
    /// The calls of other servers' tools.
    pub(super) calls: Calls,
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) running: Running,
    pub(super) in_use: Lease<PythonSession>,
    pub(super) approvals: RunApprovals,
    /// With which the next server can go on with it.
    pub(super) journal: Option<Arc<RunJournal>>,
}

impl Begun {
    /// Returns the handle of its session.
    pub(super) fn handle(&self) -> &str {
        self.in_use.handle()
    }

    pub(super) fn interrupt(&self) -> InterruptHandle {
        self.running.interrupt()
    }
}

/// The next event of a run.
pub(super) enum Step {
    Ended(Box<Ran>),
    /// A person has to decide about these calls. Python waits.
    Asked(Begun, Vec<Question>),
    /// The client has cancelled the call.
    Cancelled,
}

/// What comes next of a run under way.
pub(super) enum Next {
    Done(Box<Done>),
    Asked(Vec<Question>),
    Cancelled,
    /// It was cancelled and went on, so its session has ended.
    Killed,
}

pub(super) type Done =
    (Result<Execution, isolet::Error>, OwnedMutexGuard<Interpreter>, Option<String>);

/// A run under way, on a separate thread. Dropping it interrupts the code.
pub(super) struct Running {
    started: Instant,
    thread: JoinHandle<Done>,
    flag: Arc<AtomicBool>,
    interrupt: InterruptHandle,
}

/// What a run does.
pub(super) enum Work {
    /// It runs code, and is recorded to the journal if there is one.
    Run(Job, Option<Arc<RunJournal>>),
    /// It goes on with the run of the session's journal.
    GoOn,
}

impl Running {
    pub(super) fn start(
        mut turn: OwnedMutexGuard<Interpreter>,
        session: &Arc<PythonSession>,
        work: Work,
    ) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let interrupted = Arc::clone(&flag);
        let thread = spawn_blocking(move || {
            let Interpreter { session, files } = &mut *turn;
            let ran = match work {
                Work::Run(job, journal) => {
                    // Files of the host are no part of a journal.
                    if let Some(journal) = journal.filter(|_| files.is_empty()) {
                        journal.begin(session);
                    }
                    session.run(cell(job, interrupted))
                }
                Work::GoOn => session.go_on().and_then(|execution| {
                    execution.ok_or_else(|| Error::new(ErrorKind::Journal, "it has no run"))
                }),
            };
            session.end_recording();
            let written = copy_out(session, files).err();
            (ran, turn, written.map(|error| in_options(&format!("{error:#}"))))
        });
        Self { started: Instant::now(), thread, flag, interrupt: session.interrupt() }
    }

    /// Waits for the end, or for calls that a person has to decide about.
    pub(super) async fn next(
        &mut self,
        approvals: &mut RunApprovals,
        cancelled: &CancellationToken,
        beat: impl Fn(Duration) -> BoxFuture<'static, ()>,
    ) -> Result<Next, String> {
        let mut beats = tokio::time::interval(BEAT);
        beats.tick().await;
        loop {
            tokio::select! {
                biased;
                done = &mut self.thread => {
                    let done = done.map_err(|error| failed(&error))?;
                    return Ok(Next::Done(Box::new(done)));
                }
                () = cancelled.cancelled() => break,
                questions = approvals.questions() => return Ok(Next::Asked(questions)),
                _ = beats.tick() => beat(self.started.elapsed()).await,
            }
        }
        self.stop();
        if let Ok(done) = tokio::time::timeout(PATIENCE, &mut self.thread).await {
            return done.map(|_| Next::Cancelled).map_err(|error| failed(&error));
        }
        self.interrupt.kill();
        Ok(Next::Killed)
    }

    /// Returns what interrupts it.
    pub(super) fn interrupt(&self) -> InterruptHandle {
        self.interrupt.clone()
    }

    fn stop(&self) {
        self.flag.store(true, Ordering::SeqCst);
        self.interrupt.interrupt();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.thread.is_finished() {
            self.stop();
        }
    }
}

/// Makes the cell of a job.
fn cell(job: Job, interrupted: Arc<AtomicBool>) -> Cell {
    let cell = Cell::new(job.code).syntax(job.runner.syntax());
    let cell = cell.allow_return().chart_pictures().interrupt_flag(interrupted);
    let cell = if job.has_tables { cell.table_data() } else { cell };
    match job.timeout {
        Some(timeout) => cell.timeout(timeout),
        None => cell,
    }
}
