//! The Python of the server: one sandbox, and sessions in it by handle.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use isolet::blocking::Session;
use isolet::{Cell, Execution, InterruptHandle, Sandbox, SessionState};
use tokio::sync::{OnceCell, OwnedMutexGuard};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::McpArgs;
use super::outputs::Outputs;
use super::turn::Turns;
use crate::cli::host_files::HostFiles;
use crate::cli::options::in_options;
use crate::service::{InUse, Reason, Table};

/// How often a client is told that a run goes on.
const BEAT: Duration = Duration::from_secs(10);

/// How long a cancelled run may go on before its session is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// A sandbox with the options of the command, and its sessions.
pub(super) struct Python {
    args: McpArgs,
    assets: Option<PathBuf>,
    table: Arc<Table<PythonSession>>,
    made: OnceCell<Made>,
}

struct Made {
    sandbox: Sandbox,
    packages: Vec<String>,
}

/// A session of a client.
pub(super) struct PythonSession {
    turns: Turns<Interpreter>,
    interrupt: InterruptHandle,
    pub(super) outputs: Outputs,
}

struct Interpreter {
    session: Session,
    files: HostFiles,
}

/// What a client wants to run.
pub(super) struct Job {
    pub(super) code: String,
    pub(super) timeout: Option<Duration>,
}

/// A run that has ended.
pub(super) struct Ran {
    pub(super) execution: Execution,
    pub(super) in_use: InUse<PythonSession>,
    /// Why files could not be written back after it.
    pub(super) unwritten: Option<String>,
}

impl Python {
    pub(super) fn new(args: McpArgs, assets: Option<&Path>) -> Self {
        let table = Table::new(args.session_ttl, args.max_sessions);
        Self { args, assets: assets.map(Path::to_path_buf), table, made: OnceCell::new() }
    }

    pub(super) fn args(&self) -> &McpArgs {
        &self.args
    }

    /// Makes the sandbox ahead of the first call. What is wrong is told again by each call.
    pub(super) async fn warm_up(self: &Arc<Self>) {
        match self.made().await {
            // The first session starts while the client still thinks.
            Ok(made) => {
                let _ = made.sandbox.prewarm(1);
            }
            Err(reason) => {
                use std::io::Write;
                // If standard error is closed, the client alone is told.
                let _ = writeln!(std::io::stderr(), "error: {reason}");
            }
        }
    }

    /// Ends the sessions that nobody uses, for as long as the server runs.
    pub(super) async fn give_up_idle_sessions(self: &Arc<Self>) {
        let often = (self.args.session_ttl / 4).clamp(Duration::from_secs(1), BEAT * 6);
        loop {
            tokio::time::sleep(often).await;
            self.end(self.table.give_up_idle());
        }
    }

    /// Runs code in the session of a handle, or in a new one. Returns `None` if the client has
    /// cancelled the call. `beat` is called now and then, with the time since the run began.
    pub(super) async fn run(
        self: &Arc<Self>,
        owner: &str,
        handle: Option<&str>,
        job: Job,
        cancelled: &CancellationToken,
        beat: impl Fn(Duration) -> BoxFuture<'static, ()>,
    ) -> Result<Option<Ran>, String> {
        let in_use = match handle {
            Some(handle) => self.get(owner, handle)?,
            None => self.open(owner).await?,
        };
        let turn = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Ok(None),
            turn = in_use.session().turns.wait() => turn,
        };
        let turn = turn.map_err(|waiting| {
            format!("{waiting} calls wait for this session already, start another one")
        })?;
        let running = Running::start(turn, in_use.session(), job);
        let Some((execution, turn, unwritten)) = running.finish(cancelled, beat).await? else {
            self.note_end(owner, &in_use, "its code went on after the call was cancelled");
            return Ok(None);
        };
        drop(turn);
        let execution = match execution {
            Ok(execution) => execution,
            Err(error) => {
                let reason = in_options(&error.to_string());
                if !error.session_survives() {
                    self.note_end(owner, &in_use, &reason);
                    return Err(format!("{reason}; the session has ended"));
                }
                return Err(reason);
            }
        };
        if !execution.session_alive() {
            self.remove(owner, in_use.handle(), Reason::Ended("its last run ended it".to_owned()));
        }
        Ok(Some(Ran { execution, in_use, unwritten }))
    }

    /// Ends a session. Returns whether there was one.
    pub(super) fn close(&self, owner: &str, handle: &str) -> Result<(), String> {
        match self.table.remove(owner, handle, Reason::Closed) {
            Some(session) => {
                session.interrupt.kill();
                self.end(vec![session]);
                Ok(())
            }
            None => self.get_reason(owner, handle),
        }
    }

    /// Returns the session of a handle.
    pub(super) fn get(&self, owner: &str, handle: &str) -> Result<InUse<PythonSession>, String> {
        self.table.get(owner, handle).map_err(|reason| gone(handle, reason.as_ref()))
    }

    /// Returns the sessions of an owner.
    pub(super) fn sessions(&self, owner: &str) -> Vec<(String, Arc<PythonSession>)> {
        self.table.of(owner)
    }

    fn get_reason(&self, owner: &str, handle: &str) -> Result<(), String> {
        self.get(owner, handle).map(drop)
    }

    async fn open(self: &Arc<Self>, owner: &str) -> Result<InUse<PythonSession>, String> {
        let made = self.made().await?;
        let (room, given_up) = self.table.make_room().ok_or_else(|| {
            format!(
                "all {} sessions are running code, which is the most (`--max-sessions`); wait for \
                 one of them",
                self.args.max_sessions
            )
        })?;
        self.end(given_up);
        let (sandbox, packages) = (made.sandbox.clone(), made.packages.clone());
        let python = Arc::clone(self);
        let started = spawn_blocking(move || python.start(&sandbox, &packages)).await;
        let session = started.map_err(|error| failed(&error))??;
        room.fill(owner, session).map_err(|error| format!("there is no randomness: {error}"))
    }

    fn start(&self, sandbox: &Sandbox, packages: &[String]) -> Result<PythonSession, String> {
        let session = sandbox.blocking().session();
        let mut session = session.map_err(|error| in_options(&error.to_string()))?;
        let interrupt = session.interrupt_handle();
        let files = self.args.policy.permissions.prepare(&mut session, packages);
        let files = files.map_err(|error| in_options(&format!("{error:#}")))?;
        let turns = Turns::new(Interpreter { session, files });
        Ok(PythonSession { turns, interrupt, outputs: Outputs::default() })
    }

    async fn made(self: &Arc<Self>) -> Result<&Made, String> {
        let make = || async {
            let python = Arc::clone(self);
            let made = spawn_blocking(move || python.make()).await;
            made.map_err(|error| failed(&error))?
        };
        self.made.get_or_try_init(make).await
    }

    fn make(&self) -> Result<Made, String> {
        let policy = &self.args.policy;
        let made = policy
            .permissions
            .packages("")
            .and_then(|packages| policy.sandbox(self.assets.as_deref(), true, &packages));
        let (sandbox, packages) = made.map_err(|error| in_options(&format!("{error:#}")))?;
        Ok(Made { sandbox, packages })
    }

    fn note_end(&self, owner: &str, in_use: &InUse<PythonSession>, reason: &str) {
        self.remove(owner, in_use.handle(), Reason::Ended(reason.to_owned()));
    }

    fn remove(&self, owner: &str, handle: &str, reason: Reason) {
        if let Some(session) = self.table.remove(owner, handle, reason) {
            self.end(vec![session]);
        }
    }

    /// Drops sessions, away from the event loop.
    #[expect(clippy::unused_self, reason = "sessions end on the runtime that has made them")]
    fn end(&self, sessions: Vec<Arc<PythonSession>>) {
        if !sessions.is_empty() {
            spawn_blocking(move || drop(sessions));
        }
    }
}

type Done = (Result<Execution, isolet::Error>, OwnedMutexGuard<Interpreter>, Option<String>);

/// A run under way, on a thread of its own. Dropping it interrupts the code.
struct Running {
    thread: JoinHandle<Done>,
    flag: Arc<AtomicBool>,
    interrupt: InterruptHandle,
}

impl Running {
    fn start(
        mut turn: OwnedMutexGuard<Interpreter>,
        session: &Arc<PythonSession>,
        job: Job,
    ) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let mut cell = Cell::new(job.code).allow_return().interrupt_flag(Arc::clone(&flag));
        if let Some(timeout) = job.timeout {
            cell = cell.max_run_time(timeout);
        }
        let thread = spawn_blocking(move || {
            let Interpreter { session, files } = &mut *turn;
            let ran = session.run(cell);
            let written = if session.state() == SessionState::Ready {
                files.write_back(session).err()
            } else {
                None
            };
            (ran, turn, written.map(|error| in_options(&format!("{error:#}"))))
        });
        Self { thread, flag, interrupt: session.interrupt.clone() }
    }

    /// Waits for the end. Returns `None` if it had to kill the session.
    async fn finish(
        mut self,
        cancelled: &CancellationToken,
        beat: impl Fn(Duration) -> BoxFuture<'static, ()>,
    ) -> Result<Option<Done>, String> {
        let started = Instant::now();
        let mut beats = tokio::time::interval(BEAT);
        beats.tick().await;
        loop {
            tokio::select! {
                biased;
                done = &mut self.thread => return done.map(Some).map_err(|error| failed(&error)),
                () = cancelled.cancelled() => break,
                _ = beats.tick() => beat(started.elapsed()).await,
            }
        }
        self.stop();
        if let Ok(done) = tokio::time::timeout(PATIENCE, &mut self.thread).await {
            return done.map(Some).map_err(|error| failed(&error));
        }
        self.interrupt.kill();
        Ok(None)
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

fn failed(error: &JoinError) -> String {
    format!("isolet failed: {error}")
}

fn gone(handle: &str, reason: Option<&Reason>) -> String {
    let shown = handle.chars().take(40).collect::<String>().escape_debug().to_string();
    let why = match reason {
        Some(reason) => format!("session {shown} has ended: {reason}"),
        None => format!("there is no session {shown}, or it ended long ago"),
    };
    format!("{why}. Its variables and files are gone. Call again without `session` for a new one")
}
