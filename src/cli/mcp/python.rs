//! The Python of the server: one sandbox, and sessions in it by handle.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use isolet::blocking::Session;
use isolet::llm::Llm;
use isolet::mcp::Hub;
use isolet::{Cell, Execution, InterruptHandle, Sandbox, SandboxBuilder, SessionState};
use tokio::sync::{OnceCell, OwnedMutexGuard};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::McpArgs;
use super::approvals::{Calls, Desk, MAX_LISTED, Question, Seat};
use super::outputs::Outputs;
use super::parked::ParkedRuns;
use super::stubs;
use super::tools::{CATALOGUE_CHARS, Facts, MIN_NAME_CHARS};
use super::turn::Turns;
use crate::cli::audit;
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
    /// The other servers, if there are any.
    hub: Option<Hub>,
    llm: Option<Llm>,
    desk: Desk,
    pub(super) parked: ParkedRuns,
    facts: OnceCell<Facts>,
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
    /// The number that the library gives it.
    id: u64,
    hub: Option<Hub>,
}

impl Drop for PythonSession {
    fn drop(&mut self) {
        if let Some(hub) = &self.hub {
            hub.forget_session(self.id);
        }
    }
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
    /// The calls of other servers' tools.
    pub(super) calls: Calls,
}

/// A run that has begun.
pub(super) struct Begun {
    running: Running,
    in_use: InUse<PythonSession>,
    seat: Seat,
}

/// What comes next of a run.
pub(super) enum Step {
    Ended(Box<Ran>),
    /// A person has to decide about these calls. Python waits.
    Asked(Begun, Vec<Question>),
    /// The client has cancelled the call.
    Cancelled,
}

impl Python {
    pub(super) fn new(args: McpArgs, assets: Option<&Path>) -> Result<Self> {
        let table = Table::new(args.session_ttl, args.max_sessions);
        let desk = Desk::default();
        let log = args.policy.permissions.audit_log()?;
        let hub = args.servers.hub()?.map(|builder| {
            let recording = desk.clone();
            let builder = builder.approver(desk.clone()).on_call(move |call| {
                recording.record(call);
                if let Some(log) = &log {
                    log.write(&audit::call_line(call));
                }
            });
            builder.build()
        });
        let llm = args.model.llm()?;
        let parked = ParkedRuns::new(args.approval_timeout).context("there is no randomness")?;
        Ok(Self {
            assets: assets.map(Path::to_path_buf),
            table,
            made: OnceCell::new(),
            hub: hub.transpose()?,
            llm,
            desk,
            parked,
            facts: OnceCell::new(),
            args,
        })
    }

    pub(super) fn hub(&self) -> Option<&Hub> {
        self.hub.as_ref()
    }

    /// Returns what the list of tools says, which is the same for as long as the server runs.
    pub(super) async fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| self.find_facts()).await
    }

    async fn find_facts(&self) -> Facts {
        let (args, permissions) = (&self.args, &self.args.policy.permissions);
        let reach = permissions.reach();
        let servers = match &self.hub {
            Some(hub) => stubs::known(hub, CATALOGUE_CHARS / MIN_NAME_CHARS).await,
            None => Vec::new(),
        };
        Facts {
            timeout: args.policy.timeout,
            session_ttl: args.session_ttl,
            max_sessions: args.max_sessions,
            result_chars: args.result_chars,
            packages: permissions.package_names().join(", "),
            is_destructive: reach.writes || !servers.is_empty(),
            is_open: reach.network || !servers.is_empty() || self.llm.is_some(),
            has_llm: self.llm.is_some(),
            access: reach.in_words(),
            servers,
        }
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

    /// Begins to run code in the session of a handle, or in a new one. Returns `None` if the client
    /// has cancelled the call.
    pub(super) async fn begin(
        self: &Arc<Self>,
        owner: &str,
        handle: Option<&str>,
        job: Job,
        cancelled: &CancellationToken,
    ) -> Result<Option<Begun>, String> {
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
        let seat = self.desk.seat(in_use.session().id);
        let running = Running::start(turn, in_use.session(), job);
        Ok(Some(Begun { running, in_use, seat }))
    }

    /// Waits for what comes next of a run. `beat` is called now and then, with the time since the
    /// run began.
    pub(super) async fn step(
        &self,
        owner: &str,
        mut begun: Begun,
        cancelled: &CancellationToken,
        beat: impl Fn(Duration) -> BoxFuture<'static, ()>,
    ) -> Result<Step, String> {
        let Begun { running, seat, .. } = &mut begun;
        let done = match running.next(seat, cancelled, beat).await? {
            Next::Asked(questions) => return Ok(Step::Asked(begun, questions)),
            Next::Done(done) => done,
            Next::Cancelled => return Ok(Step::Cancelled),
            Next::Killed => {
                let reason = "its code went on after the call was cancelled";
                self.note_end(owner, &begun.in_use, reason);
                return Ok(Step::Cancelled);
            }
        };
        let (execution, turn, unwritten) = *done;
        drop(turn);
        let in_use = begun.in_use;
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
        let calls = begun.seat.calls();
        Ok(Step::Ended(Box::new(Ran { execution, in_use, unwritten, calls })))
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
        let (id, hub) = (session.handle().id(), self.hub.clone());
        let turns = Turns::new(Interpreter { session, files });
        Ok(PythonSession { turns, interrupt, outputs: Outputs::default(), id, hub })
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
        let made = policy.permissions.packages("").and_then(|packages| {
            policy.sandbox_with(self.assets.as_deref(), true, &packages, |builder, limits| {
                // All that one question lists. The hub bounds how many a server gets.
                let builder = builder.limits(limits.max_concurrent_tools(MAX_LISTED));
                let modules = self.hub.iter().flat_map(Hub::modules);
                let builder = modules.fold(builder, SandboxBuilder::module);
                self.llm.iter().fold(builder, |builder, llm| builder.tool(llm.tool()))
            })
        });
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

/// What comes next of a run under way.
enum Next {
    Done(Box<Done>),
    Asked(Vec<Question>),
    Cancelled,
    /// It was cancelled and went on, so its session has ended.
    Killed,
}

type Done = (Result<Execution, isolet::Error>, OwnedMutexGuard<Interpreter>, Option<String>);

/// A run under way, on a thread of its own. Dropping it interrupts the code.
struct Running {
    started: Instant,
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
        Self { started: Instant::now(), thread, flag, interrupt: session.interrupt.clone() }
    }

    /// Waits for the end, or for calls that a person has to decide about.
    async fn next(
        &mut self,
        seat: &mut Seat,
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
                questions = seat.questions() => return Ok(Next::Asked(questions)),
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
