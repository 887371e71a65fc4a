//! The Python of the server: one sandbox, and sessions in it by handle.

use std::sync::Arc;
use std::time::Duration;

use crate::hub::Hub;
use crate::llm::Llm;
use anyhow::Result;
use futures_util::future::{BoxFuture, join_all};
use isolet::blocking::Session;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{InterruptHandle, Limits, Sandbox, SandboxBuilder, SessionState};
use tokio::sync::{OnceCell, OwnedMutexGuard};
use tokio::task::{JoinError, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::approvals::{ApprovalQueue, MAX_LISTED};
use super::durable::RunJournal;
use super::files::Written;
use super::outputs::Outputs;
use super::parked::ParkedRuns;
use super::running::{BEAT, Begun, Job, Next, PATIENCE, Ran, Running, Step, Work};
use super::settings::{Bounds, Made, Sandboxes, Settings};
use super::store::{Store, Taken};
use super::stubs;
use super::tools::{CATALOGUE_CHARS, Facts, MIN_NAME_CHARS, NUMPY};
use super::turn::Turns;
use isolet_service::core::in_options;
use isolet_service::core::{Lease, Reason, Room, Table};
use isolet_support::skills::Skill;

/// A sandbox, and its sessions.
pub(super) struct Python {
    sandboxes: Box<dyn Sandboxes>,
    bounds: Bounds,
    table: Arc<Table<PythonSession>>,
    /// The store of idle sessions; without one, they end.
    store: Option<Store>,
    made: OnceCell<Made>,
    /// The other servers, if there are any.
    hub: Option<Hub>,
    llm: Option<Llm>,
    has_shell: bool,
    takes_files: bool,
    skills: Vec<Skill>,
    pub(super) approvals: ApprovalQueue,
    pub(super) parked: ParkedRuns,
    facts: OnceCell<Facts>,
}

/// A session of a client.
pub(super) struct PythonSession {
    pub(super) turns: Turns<Interpreter>,
    interrupt: InterruptHandle,
    pub(super) outputs: Outputs,
    pub(super) written: Written,
    /// The number that the library gives it.
    pub(super) id: u64,
    hub: Option<Hub>,
}

impl Drop for PythonSession {
    fn drop(&mut self) {
        if let Some(hub) = &self.hub {
            hub.forget_session(self.id);
        }
    }
}

pub(super) struct Interpreter {
    pub(super) session: Session,
    /// Those of the host that were copied into the session.
    pub(super) files: CopiedFiles,
}

impl Interpreter {
    /// Ends the session in good order: files of the host that it has not closed keep what it has
    /// written.
    fn close(&mut self) {
        if !self.files.is_empty() {
            self.session.end_program();
            self.write_back();
        }
        self.session.close();
    }

    /// Writes files of the host back when no client waits for the result. Errors go to standard
    /// error.
    fn write_back(&mut self) {
        use std::io::Write;
        if let Err(error) = copy_out(&mut self.session, &mut self.files) {
            let _ = writeln!(std::io::stderr(), "error: {}", in_options(&format!("{error:#}")));
        }
    }
}

impl PythonSession {
    pub(super) fn interrupt(&self) -> InterruptHandle {
        self.interrupt.clone()
    }
}

/// Why a session does not sleep.
enum Unkept {
    /// It is used again.
    Lease,
    /// It cannot be saved, for this reason.
    Failed(String),
}

impl Python {
    pub(super) fn new(settings: Settings) -> Result<Self> {
        let Settings { sandboxes, bounds, store, hub, llm, shell, uploads, skills, on_call } =
            settings;
        let approvals = ApprovalQueue::default();
        let hub = hub.map(|builder| {
            let recording = approvals.clone();
            let builder = builder.approver(approvals.clone()).on_call(move |call| {
                recording.record(call);
                if let Some(on_call) = &on_call {
                    on_call(call);
                }
            });
            builder.build()
        });
        let store = store.as_ref().map(Store::open).transpose()?;
        // Only calls of other servers' tools ask.
        let kept = store.as_ref().filter(|_| hub.is_some());
        let parked = ParkedRuns::new(bounds.approval_timeout, kept)?;
        Ok(Self {
            sandboxes,
            bounds,
            table: Table::new(bounds.session_ttl, bounds.max_sessions),
            store,
            made: OnceCell::new(),
            hub: hub.transpose()?,
            llm,
            has_shell: shell,
            takes_files: uploads,
            skills,
            approvals,
            parked,
            facts: OnceCell::new(),
        })
    }

    pub(super) fn hub(&self) -> Option<&Hub> {
        self.hub.as_ref()
    }

    /// Returns the facts of the list of tools, which do not change while the server runs.
    pub(super) async fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| self.find_facts()).await
    }

    async fn find_facts(&self) -> Facts {
        let abilities = self.sandboxes.abilities();
        let servers = match &self.hub {
            Some(hub) => stubs::known(hub, CATALOGUE_CHARS / MIN_NAME_CHARS).await,
            None => Vec::new(),
        };
        Facts {
            timeout: abilities.timeout,
            session_ttl: self.bounds.session_ttl,
            sleep: self.store.as_ref().map(Store::ttl),
            max_sessions: self.bounds.max_sessions,
            result_chars: self.bounds.result_chars,
            packages: abilities.packages.join(", "),
            about_packages: about(&abilities.packages),
            is_destructive: abilities.writes || !servers.is_empty(),
            is_open: abilities.network || !servers.is_empty() || self.llm.is_some(),
            has_llm: self.llm.is_some(),
            has_shell: self.has_shell,
            takes_files: self.takes_files,
            skills: self
                .skills
                .iter()
                .map(|skill| (skill.name.clone(), skill.description.clone()))
                .collect(),
            access: abilities.access,
            servers,
        }
    }

    /// The store of idle sessions.
    pub(super) fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Whether clients may run commands of the shell by a tool.
    pub(super) fn has_shell(&self) -> bool {
        self.has_shell
    }

    /// Whether clients may write files by a tool.
    pub(super) fn takes_files(&self) -> bool {
        self.takes_files
    }

    /// The skills that clients may use.
    pub(super) fn skills(&self) -> &[Skill] {
        &self.skills
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Makes the sandbox ahead of the first call. Each call reports the error again.
    pub(super) async fn warm_up(self: &Arc<Self>) {
        match self.made().await {
            // The first session starts while the client still thinks.
            Ok(made) => {
                let _ = made.sandbox.prewarm(1);
            }
            Err(reason) => {
                use std::io::Write;
                // If standard error is closed, only the client gets the reason.
                let _ = writeln!(std::io::stderr(), "error: {reason}");
            }
        }
    }

    /// Gives up idle sessions, for as long as the server runs.
    pub(super) async fn give_up_idle_sessions(self: &Arc<Self>) {
        let often = (self.bounds.session_ttl / 4).clamp(Duration::from_secs(1), BEAT * 6);
        loop {
            tokio::time::sleep(often).await;
            for idle in self.table.idle() {
                self.give_up(idle, Reason::Idle(self.bounds.session_ttl)).await;
            }
            if let Some(store) = &self.store {
                let store = store.clone();
                // The next round tries again to remove the rest.
                let _ = spawn_blocking(move || store.trim()).await;
            }
        }
    }

    /// Puts all sessions to sleep, or ends them if there is no store. The server ends, so code that
    /// still runs is interrupted, or killed.
    pub(super) async fn end_all(&self) {
        self.leave_parked();
        let all = self.table.all();
        let Some(store) = &self.store else {
            let ends = all.iter().map(|in_use| self.end(Some(Arc::clone(in_use.session()))));
            join_all(ends).await;
            return;
        };
        for in_use in &all {
            in_use.session().interrupt.interrupt();
        }
        // The clients have gone, so errors of saving are not reported.
        join_all(all.iter().map(|in_use| self.keep(store, in_use))).await;
    }

    /// Puts a session to sleep, or ends it if there is no store or it cannot be saved. Does neither
    /// if somebody uses it again.
    async fn give_up(&self, in_use: Lease<PythonSession>, reason: Reason) {
        let Some(store) = &self.store else {
            return self.end(in_use.give_up(Some(reason))).await;
        };
        let (turn, reason) = match self.keep(store, &in_use).await {
            Ok(turn) => (Some(turn), None),
            Err(Unkept::Lease) => return,
            Err(Unkept::Failed(error)) => {
                let reason = format!("{reason}, and it could not be put to sleep: {error}");
                (None, Some(Reason::Ended(reason)))
            }
        };
        let (owner, handle) = (in_use.owner().to_owned(), in_use.handle().to_owned());
        let session = in_use.give_up(reason);
        if session.is_none() {
            // The session continues, so its saved copy is out of date.
            store.remove(&owner, &handle);
        }
        let is_kept = turn.is_some();
        drop(turn);
        if is_kept {
            // It will continue from the saved copy.
            self.let_go(session);
        } else {
            self.end(session).await;
        }
    }

    /// Saves a session, in its turn, which is returned.
    async fn keep(
        &self,
        store: &Store,
        in_use: &Lease<PythonSession>,
    ) -> Result<OwnedMutexGuard<Interpreter>, Unkept> {
        // If anything runs, its client has left or the server ends.
        let turn = tokio::time::timeout(PATIENCE, in_use.session().turns.wait()).await;
        let mut turn = match turn {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) => return Err(Unkept::Lease),
            Err(_) => {
                in_use.session().interrupt.kill();
                return Err(Unkept::Failed("its code could not be interrupted".to_owned()));
            }
        };
        let (store, owner, handle) =
            (store.clone(), in_use.owner().to_owned(), in_use.handle().to_owned());
        let kept = spawn_blocking(move || {
            store.keep(&owner, &handle, &mut turn.session)?;
            // Saving has made the guest flush the buffers of its files.
            turn.write_back();
            Ok(turn)
        });
        let kept = kept.await.map_err(|error| Unkept::Failed(failed(&error)))?;
        kept.map_err(Unkept::Failed)
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
            Some(handle) => self.get_or_wake(owner, handle).await?,
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
        let approvals = self.approvals.register(in_use.session().id);
        let store = self.store.as_ref().filter(|_| job.may_wait && self.hub.is_some());
        let journal = store.map(|store| RunJournal::new(store, owner, in_use.handle()));
        let work = Work::Run(job, journal.clone());
        let running = Running::start(turn, in_use.session(), work);
        Ok(Some(Begun { running, in_use, approvals, journal }))
    }

    /// Waits for the next event of a run. Calls `beat` now and then, with the time since the run
    /// began.
    pub(super) async fn step(
        &self,
        owner: &str,
        mut begun: Begun,
        cancelled: &CancellationToken,
        beat: impl Fn(Duration) -> BoxFuture<'static, ()>,
    ) -> Result<Step, String> {
        let Begun { running, approvals, .. } = &mut begun;
        let done = match running.next(approvals, cancelled, beat).await? {
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
        let files = execution.files().iter().map(|file| file.path.as_str());
        in_use.session().written.note(files);
        if !execution.session_alive() {
            self.remove(owner, in_use.handle(), Reason::Ended("its last run ended it".to_owned()));
        }
        let calls = begun.approvals.calls();
        Ok(Step::Ended(Box::new(Ran { execution, in_use, unwritten, calls })))
    }

    /// Ends a session, also one that sleeps.
    pub(super) async fn close(&self, owner: &str, handle: &str) -> Result<(), String> {
        if let Some(session) = self.table.remove(owner, handle, Reason::Closed) {
            self.end(Some(session)).await;
            return Ok(());
        }
        match &self.store {
            Some(store) if store.remove(owner, handle) => Ok(()),
            _ => self.get(owner, handle).map(drop),
        }
    }

    /// Returns the session of a handle, if it is awake.
    pub(super) fn get(&self, owner: &str, handle: &str) -> Result<Lease<PythonSession>, String> {
        if self.store.is_none() {
            for idle in self.table.idle() {
                let idle = idle.give_up(Some(Reason::Idle(self.bounds.session_ttl)));
                drop(self.end(idle));
            }
        }
        self.table.get(owner, handle).map_err(|reason| gone(handle, reason.as_ref()))
    }

    /// Returns the session of a handle. Wakes it if it sleeps.
    pub(super) async fn get_or_wake(
        self: &Arc<Self>,
        owner: &str,
        handle: &str,
    ) -> Result<Lease<PythonSession>, String> {
        let (gone, store) = match (self.get(owner, handle), &self.store) {
            (Err(gone), Some(store)) => (gone, store),
            (got, _) => return got,
        };
        let turn = store.turn(handle);
        let _turn = turn.lock().await;
        // Another call may have woken it since.
        if let Ok(in_use) = self.get(owner, handle) {
            return Ok(in_use);
        }
        let taken = store.take(owner, handle).map_err(|error| format!("{error:#}"))?;
        let taken = taken.ok_or(gone)?;
        let made = self.made().await?;
        let room = self.room().await?;
        let (sandbox, python) = (made.sandbox.clone(), Arc::clone(self));
        let woken = spawn_blocking(move || python.wake(&sandbox, taken)).await;
        let session = woken.map_err(|error| failed(&error))??;
        Ok(room.fill_again(owner, handle.to_owned(), session))
    }

    /// Returns the sessions of an owner.
    pub(super) fn sessions(&self, owner: &str) -> Vec<(String, Arc<PythonSession>)> {
        self.table.of(owner)
    }

    pub(super) async fn open(
        self: &Arc<Self>,
        owner: &str,
    ) -> Result<Lease<PythonSession>, String> {
        let made = self.made().await?;
        let room = self.room().await?;
        let (sandbox, packages) = (made.sandbox.clone(), made.packages.clone());
        let python = Arc::clone(self);
        let started = spawn_blocking(move || python.start(&sandbox, &packages)).await;
        let session = started.map_err(|error| failed(&error))??;
        room.fill(owner, session).map_err(|error| format!("there is no randomness: {error}"))
    }

    /// Makes room for a session. Gives others up for it.
    pub(super) async fn room(&self) -> Result<Room<PythonSession>, String> {
        let most = self.bounds.max_sessions;
        loop {
            match self.table.make_room() {
                Ok(room) => return Ok(room),
                Err(Some(oldest)) => self.give_up(oldest, Reason::MadeRoom(most)).await,
                Err(None) => {
                    return Err(format!(
                        "all {most} sessions are running code, which is the most \
                         (`--max-sessions`); wait for one of them"
                    ));
                }
            }
        }
    }

    fn start(&self, sandbox: &Sandbox, packages: &[String]) -> Result<PythonSession, String> {
        let session = sandbox.blocking().session();
        let mut session = session.map_err(|error| in_options(&error.to_string()))?;
        let files = self.sandboxes.prepare(&mut session, packages);
        let files = files.map_err(|error| in_options(&format!("{error:#}")))?;
        Ok(self.session(Interpreter { session, files }, Outputs::default()))
    }

    fn wake(&self, sandbox: &Sandbox, taken: Taken) -> Result<PythonSession, String> {
        let unwoken = |error: String| {
            let error = in_options(&error);
            format!("{error}. It stays asleep; call again without `session` for a new one")
        };
        let session = sandbox.blocking().restore(taken.path());
        let mut session = session.map_err(|error| unwoken(error.to_string()))?;
        let files = self.sandboxes.prepare_woken(&mut session);
        let files = files.map_err(|error| unwoken(format!("{error:#}")))?;
        taken.remove();
        Ok(self.session(Interpreter { session, files }, Outputs::of_woken()))
    }

    pub(super) fn session(&self, interpreter: Interpreter, outputs: Outputs) -> PythonSession {
        let interrupt = interpreter.session.interrupt_handle();
        let (id, hub) = (interpreter.session.handle().id(), self.hub.clone());
        let (turns, written) = (Turns::new(interpreter), Written::default());
        PythonSession { turns, interrupt, outputs, written, id, hub }
    }

    pub(super) async fn made(self: &Arc<Self>) -> Result<&Made, String> {
        let make = || async {
            let python = Arc::clone(self);
            let made = spawn_blocking(move || python.make()).await;
            made.map_err(|error| failed(&error))?
        };
        self.made.get_or_try_init(make).await
    }

    fn make(&self) -> Result<Made, String> {
        let extend = |builder: SandboxBuilder, limits: Limits| {
            // All that one question lists. The hub bounds how many a server gets.
            let builder = builder.limits(limits.max_concurrent_tools(MAX_LISTED)).checkpoint(true);
            let modules = self.hub.iter().flat_map(Hub::modules);
            let builder = modules.fold(builder, SandboxBuilder::module);
            self.llm.iter().fold(builder, |builder, llm| builder.tool(llm.tool()))
        };
        self.sandboxes.make(&extend).map_err(|error| in_options(&format!("{error:#}")))
    }

    fn note_end(&self, owner: &str, in_use: &Lease<PythonSession>, reason: &str) {
        self.remove(owner, in_use.handle(), Reason::Ended(reason.to_owned()));
    }

    fn remove(&self, owner: &str, handle: &str, reason: Reason) {
        self.let_go(self.table.remove(owner, handle, reason));
    }

    /// Ends a session in good order, or at once if code runs in it. That begins right away, and the
    /// future only waits for it.
    #[expect(clippy::unused_self, reason = "sessions end on the runtime that has made them")]
    fn end(&self, session: Option<Arc<PythonSession>>) -> impl Future<Output = ()> + use<> {
        let ending = session.map(|session| {
            spawn_blocking(move || match session.turns.try_take() {
                Some(mut turn) => turn.close(),
                None => session.interrupt.kill(),
            })
        });
        async {
            if let Some(ending) = ending {
                // No client waits for the error.
                let _ = ending.await;
            }
        }
    }

    /// Drops a session, away from the event loop.
    #[expect(clippy::unused_self, reason = "sessions end on the runtime that has made them")]
    fn let_go(&self, session: Option<Arc<PythonSession>>) {
        if session.is_some() {
            spawn_blocking(move || drop(session));
        }
    }
}

/// Writes the files of the host back that the guest has changed, unless the session has ended.
pub(super) fn copy_out(session: &mut Session, files: &mut CopiedFiles) -> Result<()> {
    if session.state() == SessionState::Ready && !files.is_empty() {
        session.copy_out(files)?;
    }
    Ok(())
}

pub(super) fn failed(error: &JoinError) -> String {
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

/// Returns what to say about the packages: one may be numpy, or one of those around it.
fn about(packages: &[String]) -> &'static str {
    const AROUND: [&str; 6] =
        ["numpy", "pandas", "scipy", "scikit-learn", "scikit_learn", "seaborn"];
    let is_around = |package: &String| {
        let end = package.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
        let name = package.get(..end.unwrap_or(package.len())).unwrap_or_default();
        AROUND.iter().any(|around| around.eq_ignore_ascii_case(name))
    };
    if packages.iter().any(is_around) { NUMPY } else { "" }
}
