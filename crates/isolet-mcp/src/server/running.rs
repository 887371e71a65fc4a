//! A run under way: its thread, its cancellation, and its questions to the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use isolet::{Cell, Execution, InterruptHandle};
use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::approvals::{Question, RunApprovals};
use super::python::{Interpreter, Job, PythonSession, copy_out, failed};
use isolet_service::core::in_options;

/// The interval of progress notifications to a client.
pub(super) const BEAT: Duration = Duration::from_secs(10);

/// The time that a cancelled run may take to end before its session is killed.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The next event of a run under way.
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

impl Running {
    pub(super) fn start(
        mut turn: OwnedMutexGuard<Interpreter>,
        session: &Arc<PythonSession>,
        job: Job,
    ) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let mut cell = Cell::new(job.code).syntax(job.runner.syntax());
        cell = cell.allow_return().chart_pictures().interrupt_flag(Arc::clone(&flag));
        if let Some(timeout) = job.timeout {
            cell = cell.timeout(timeout);
        }
        let thread = spawn_blocking(move || {
            let Interpreter { session, files } = &mut *turn;
            let ran = session.run(cell);
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
