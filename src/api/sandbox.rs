//! A sandbox: the policy that its sessions run under.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use crate::api::blocking;
use crate::api::engine::Engine;
use crate::api::journal::Journal;
use crate::api::permissions::{Permissions, env};
use crate::api::policy::Policy;
use crate::api::replay::Replay;
use crate::api::session::Session;
use crate::data::cell::Cell;
use crate::data::determinism::{Clocks, Determinism};
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::Execution;
use crate::data::isolation::{Confinement, Isolation, Layer};
use crate::data::limits::Limits;
use crate::data::terminal::Terminal;
use crate::data::tool::{Param, ToolSpec};
use crate::host::audit::{AuditEvent, Auditor};
use crate::host::tools::{ModuleSet, Tool, ToolModule};
use crate::packages::{LazyStore, LoadedPackage, Requirement};
use crate::support::cache_dir::own_directories;

/// The policy of sessions: their limits, what they may see of the host, and the tools that they may
/// call.
///
/// It holds no guest state, is cheap to clone and can be shared between threads. Everything not
/// allowed by the builder is denied:
///
/// * files, network, environment, packages: see [`Permissions`];
/// * subprocesses and threads: never available;
/// * tools: none;
/// * standard input: empty.
#[derive(Clone, Debug)]
pub struct Sandbox {
    engine: Engine,
    policy: Arc<Policy>,
}

/// Builds a [`Sandbox`].
#[derive(Clone)]
#[must_use]
pub struct SandboxBuilder {
    engine: Engine,
    tenant: Arc<str>,
    limits: Limits,
    permissions: Permissions,
    terminal: Option<Terminal>,
    audit: Auditor,
    tools: Vec<Tool>,
    modules: Vec<ToolModule>,
    submit: Vec<(String, Vec<Param>)>,
    confinement: Confinement,
    max_copies: Option<usize>,
    has_checkpoints: bool,
    determinism: Option<Determinism>,
}

impl SandboxBuilder {
    /// Names the tenant on whose behalf the sessions run.
    ///
    /// Tenants share the interpreters that an engine keeps [ready](Engine::prewarm): while several
    /// open sessions, the last ready one is not for a tenant that takes more than its share. Its
    /// sessions boot their own, and the engine keeps one more. So a tenant that opens session after
    /// session does not make the others wait. A tenant counts for a minute.
    ///
    /// Default: the empty name, which is a tenant as any other.
    pub fn tenant(mut self, name: impl Into<Arc<str>>) -> Self {
        self.tenant = name.into();
        self
    }

    /// Sets the limits of the sessions' runs.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what the guest may reach of the host. Replaces earlier permissions.
    ///
    /// Default: nothing.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Sets the terminal that the guest's output is for.
    ///
    /// Default: none.
    pub fn terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = Some(terminal);
        self
    }

    /// Sets a function that is called for each access that the guest is allowed or denied.
    ///
    /// The session's threads call it and wait for it, so it should be fast. If it panics, the
    /// access being decided fails.
    pub fn on_audit(mut self, sink: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        self.audit.sink = Some(Arc::new(sink));
        self
    }

    /// Sets a function that is called for each access that the guest is denied, with the reason,
    /// which the guest does not learn. Unlike with [`on_audit`](Self::on_audit), sessions may start
    /// from images that have imported packages.
    ///
    /// The session's threads call it and wait for it, so it should be fast.
    ///
    /// Default: none.
    pub fn on_refusal(mut self, sink: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        self.audit.refusals = Some(Arc::new(sink));
        self
    }

    /// Sets a function that is asked before each access that [`on_audit`](Self::on_audit) would be
    /// told of as allowed, with the number of the session. If it returns an error, the access is
    /// denied for this reason: what cannot be logged does not happen.
    ///
    /// The session's threads call it and wait for it, so it should be fast.
    ///
    /// Default: none.
    pub fn audit_gate(
        mut self,
        gate: impl Fn(u64) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.audit.gate = Some(Arc::new(gate));
        self
    }

    /// Sets where sessions run.
    ///
    /// Default: where the [engine](crate::EngineBuilder::isolation) runs them.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.confinement.isolation = isolation;
        self
    }

    /// Sets the program that workers are started from: the `isolet` command, or a program whose
    /// `main` begins with [`init`](crate::init). It must be of exactly this version.
    ///
    /// Default: the [engine's](crate::EngineBuilder::worker).
    pub fn worker(mut self, program: impl Into<PathBuf>) -> Self {
        self.confinement.worker = Some(program.into());
        self
    }

    /// Adds isolation layers that must be in force for a session to start, whatever this machine's
    /// kernel supports. The error names the layers that are missing.
    ///
    /// Default: the layers that the [engine](crate::EngineBuilder::require) requires.
    /// [`Session::isolation`] reports the layers in force.
    pub fn require(mut self, layers: impl IntoIterator<Item = Layer>) -> Self {
        self.confinement.required.extend(layers);
        self
    }

    /// Lets sessions be [forked](Session::fork). At most `max_copies` sessions at once descend from
    /// one.
    ///
    /// Needs [`Isolation::Process`] and Linux 5.9. A forkable session starts as a copy of a process
    /// that has booted an interpreter, so the first one takes longer than others do. Its worker has
    /// a filter that lets it copy itself, but the kernel asks this process each time. It permits
    /// exactly the copies that [`Session::fork`] asks for.
    ///
    /// Default: sessions cannot be forked.
    pub fn forkable(mut self, max_copies: usize) -> Self {
        self.max_copies = Some(max_copies);
        self
    }

    /// Has sessions go on when a run ends their interpreter: by `os._exit` or `os.abort`, at a
    /// limit of memory, when the run must be killed, or when the kernel kills the worker.
    ///
    /// A session that is idle for 50 ms has its state kept in this process, in the background. When
    /// a run has ended the interpreter, the session gets another one, with the state that was kept
    /// last, and [`Execution::restored`](crate::Execution::restored) says how many runs it has
    /// lost. Before its first checkpoint it starts afresh.
    ///
    /// * Files of [read-write](crate::Mount::read_write) mounts are not rolled back.
    /// * Calls of tools and quotas of such mounts count on.
    /// * A session that [cannot be saved](Session::save), because it has threads or objects of
    ///   JavaScript, keeps its earlier state. So does one whose memory exceeds 128 MiB, unless
    ///   [`Session::checkpoint`] is called, or whose state takes more than 16 MiB.
    /// * A run that comes while the state is being kept waits for it.
    /// * A run whose future was dropped ends the session, as without checkpoints.
    ///
    /// Default: off. Such a run ends the session.
    pub fn checkpoint(mut self, on: bool) -> Self {
        self.has_checkpoints = on;
        self
    }

    /// Makes sessions deterministic: what the guest takes from chance and time depends on the seed,
    /// on `start_time` and on what it does. The same programs have the same output, byte for byte,
    /// in each session and on each machine with this version.
    ///
    /// * Random numbers, `os.urandom`, `uuid.uuid4` and the like are derived from the seed.
    /// * The session starts at `start_time`; `None` is 2026-01-01 in UTC. Its clocks go on by 1 µs
    ///   with each look at them, by about as much as the interpreter takes for its own steps, and
    ///   by `time.sleep` and other waits, which take no time. They stand still while a tool is
    ///   called and in functions of C.
    /// * Timers, threads and tasks go on in one order. Answers of tools come in the order of the
    ///   calls, however long each takes.
    /// * What the guest gets from elsewhere is not part of this: answers of tools, files, servers,
    ///   interrupts. Real time counts for the [limits](Limits) of runs.
    ///
    /// A session that was [saved](Session::save) goes on as it would have. In a sandbox with
    /// another seed it draws from that one from there on. [Copies](Session::fork) of a session go
    /// on alike.
    ///
    /// Default: the system's entropy and clocks.
    pub fn deterministic(mut self, seed: u64, start_time: impl Into<Option<SystemTime>>) -> Self {
        let start_time = start_time.into().unwrap_or_else(Determinism::default_start);
        self.determinism = Some(Determinism { seed, start_time, clocks: Clocks::Virtual });
        self
    }

    /// Registers a host function that the guest can call.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a module of tools, which the guest can import. See [`ToolModule`].
    ///
    /// If there are modules, there is also a module `tools`, which finds them and their tools. It
    /// is `mcp_tools` if a tool or a module of yours has the name.
    pub fn module(mut self, module: ToolModule) -> Self {
        self.modules.push(module);
        self
    }

    /// Adds a function `SUBMIT` to the guest, which ends a run with a value for each of these
    /// fields.
    ///
    /// The guest passes the values by position or by keyword. Invalid arguments raise `TypeError`
    /// in the guest. Otherwise the outcome of the run is [`Submitted`](crate::Outcome::Submitted),
    /// with a dict of the values. `SUBMIT` ends the run with a `BaseException`; if the guest
    /// catches it and goes on, the first submission still counts.
    pub fn submit(self, fields: impl IntoIterator<Item = Param>) -> Self {
        self.submit_as(ToolSpec::SUBMIT, fields)
    }

    /// Adds a function with this name, which ends a run as [`submit`](Self::submit) describes.
    ///
    /// A second function of the same name replaces the first; one of another name is added.
    pub fn submit_as(
        mut self,
        name: impl Into<String>,
        fields: impl IntoIterator<Item = Param>,
    ) -> Self {
        let name = name.into();
        self.submit.retain(|(earlier, _)| *earlier != name);
        self.submit.push((name, fields.into_iter().collect()));
        self
    }

    /// Builds the sandbox. Starts no interpreter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if:
    /// * a limit that must not be zero is zero;
    /// * a directory with isolet's assets is mounted as writable;
    /// * a layer is required but sessions run on threads;
    /// * the name of an environment variable is empty or contains `=`, its name or value contains
    ///   NUL, or it is also the name of a secret;
    /// * Python could not define a tool or a function that submits, or two of them have the same
    ///   name;
    /// * the name of a module is no Python identifier, or that of a tool or another module.
    pub fn build(self) -> Result<Sandbox, Error> {
        self.limits.validate()?;
        self.confinement.validate()?;
        if let (Some(_), Isolation::Thread) = (self.max_copies, self.confinement.isolation) {
            let message = "sessions are to be forkable, and isolation is `thread`: only a process \
                           of its own can be copied";
            return Err(Error::new(ErrorKind::Config, message)
                .with_hint("use `Isolation::Process`, whose sessions have a process each"));
        }
        self.permissions.mounts.check_assets(self.engine.assets_dir())?;
        for directory in own_directories() {
            self.permissions.check_out_of_reach("isolet's own files", &directory)?;
        }
        if let Some(bundle) = self.engine.bundle() {
            let directory = bundle.directory();
            self.permissions.check_out_of_reach("the engine's bundle", directory)?;
        }
        for directory in self.permissions.wheel_directories() {
            self.permissions.check_out_of_reach("what `Permissions::wheels` names", directory)?;
        }
        for (at, tool) in self.tools.iter().enumerate() {
            tool.validate()?;
            let name = tool.spec().name();
            if self.tools[..at].iter().any(|earlier| earlier.spec().name() == name) {
                let message = format!("there are two tools of the name `{name}`");
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        let mut submit = Vec::with_capacity(self.submit.len());
        for (name, fields) in self.submit {
            if self.tools.iter().any(|tool| tool.spec().name() == name) {
                let message = format!("there is a tool of the name `{name}`, which is to submit");
                return Err(Error::new(ErrorKind::Config, message));
            }
            submit.push(Arc::new(ToolSpec::submit(name, fields)?));
        }
        let functions = self.tools.iter().map(|tool| tool.spec().name());
        let functions = functions.chain(submit.iter().map(|spec| spec.name()));
        let modules = ModuleSet::new(self.modules, &functions.collect::<Vec<_>>())?;
        let mut packages = self.permissions.packages.clone();
        packages.bundle = self.engine.bundle().filter(|_| !packages.forbids_bundle).cloned();
        let policy = Arc::new(Policy {
            tenant: self.tenant,
            limits: self.limits,
            env: env::environment(&self.permissions.env, self.permissions.net.secrets())?,
            packages: Arc::new(LazyStore::new(packages, Arc::clone(self.engine.lock_json()))),
            permissions: self.permissions,
            terminal: self.terminal,
            audit: self.audit,
            tools: self.tools,
            modules,
            submit,
            confinement: self.confinement,
            max_copies: self.max_copies,
            has_checkpoints: self.has_checkpoints,
            determinism: self.determinism,
        });
        Ok(Sandbox { engine: self.engine, policy })
    }
}

impl Sandbox {
    /// Starts building a sandbox whose sessions run in `engine`.
    pub fn builder(engine: &Engine) -> SandboxBuilder {
        SandboxBuilder {
            engine: engine.clone(),
            tenant: Arc::default(),
            limits: Limits::default(),
            permissions: Permissions::none(),
            terminal: None,
            audit: Auditor::default(),
            tools: Vec::new(),
            modules: Vec::new(),
            submit: Vec::new(),
            confinement: engine.confinement().clone(),
            max_copies: None,
            has_checkpoints: false,
            determinism: None,
        }
    }

    /// Starts a session: a fresh interpreter on a thread or in a process of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`] if the interpreter or its worker cannot start, or a
    /// [required](SandboxBuilder::require) layer is not in force; [`ErrorKind::Config`] if no
    /// program to start workers from is found.
    pub async fn session(&self) -> Result<Session, Error> {
        Session::start(self.engine.clone(), Arc::clone(&self.policy)).await
    }

    /// Starts a session that [`Session::save`] has saved to this file. It goes on where it was.
    ///
    /// The file grants nothing: the session has this sandbox's permissions, limits and tools. Tools
    /// of the sandbox are defined anew, and environment variables that it grants are set. Packages
    /// that the session had loaded must be [allowed](Permissions::allow_package), and the overlays
    /// that it had changed must be mounted. An open file beneath a mount that this sandbox does not
    /// have is closed. Calls, requests and the like are counted from zero. The file is not trusted:
    /// whoever can write it can do what code in the session could.
    ///
    /// The monotonic clock goes on from where it was. Random generators go on as well, so that two
    /// sessions of one file draw the same numbers from `random`; the system's entropy differs.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Config`] if the file cannot be read, is damaged or was saved by another
    ///   version, or the sandbox lacks what the session needs;
    /// * [`ErrorKind::Packages`] if a package of the session is not allowed or cannot be loaded;
    /// * [`ErrorKind::Start`] if the session exceeds the sandbox's limits, or the file has no valid
    ///   session; otherwise as [`session`](Self::session).
    pub async fn restore(&self, path: impl Into<PathBuf>) -> Result<Session, Error> {
        Session::restore(self.engine.clone(), Arc::clone(&self.policy), path.into()).await
    }

    /// Starts a session that is recorded: everything that the host tells it goes to the journal, a
    /// file that must not exist. If the process ends, [`resume`](Self::resume) has the session go
    /// on in another one.
    ///
    /// Answers of tools and servers, the contents of files, standard input, the clocks, entropy and
    /// interrupts are recorded before anybody sees what the guest does with them. Only the file's
    /// owner may read it. Who can read it knows what the guest was told, including environment
    /// variables.
    ///
    /// In a recorded session threads and tasks switch only where they wait, as in all sessions, and
    /// answers and timers come one at a time. It cannot be forked or saved, and no
    /// [checkpoints](SandboxBuilder::checkpoint) are made of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Journal`] if the file exists or cannot be written; [`ErrorKind::Config`] if the
    /// sandbox is [forkable](SandboxBuilder::forkable); otherwise as [`session`](Self::session).
    pub async fn record(&self, journal: impl Into<Journal>) -> Result<Session, Error> {
        let (engine, policy) = (self.engine.clone(), Arc::clone(&self.policy));
        Session::start_recorded(engine, policy, journal.into()).await
    }

    /// Makes the session of a journal. It is as it was when its last run began, and
    /// [`Session::go_on`] runs that one: again as far as it is recorded, and from there on as it
    /// goes. What happens then is recorded to the same file.
    ///
    /// Nothing that is recorded is done again: no call of a tool, no request, no change of a file.
    /// A call that was under way when the process ended is made again if its tool is
    /// [idempotent](Tool::idempotent), and a request if it changes nothing at the server (`GET`,
    /// `HEAD`, `OPTIONS`). Others raise `CallInterrupted` in the guest. Connections are lost. Time
    /// has gone on: waits that would have ended meanwhile end at once.
    ///
    /// The journal grants nothing. The sandbox must have the same tools, mount points and
    /// environment variables as the one that was recorded. Its permissions count for what is not
    /// recorded, and answers of servers that it does not allow are not told to the guest. The file
    /// is not trusted: whoever can write it can do what code in the session could.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Journal`] if the journal cannot be read or is damaged, is of another version,
    ///   is in use, or the session does something else than when it was recorded;
    /// * otherwise as [`record`](Self::record).
    pub async fn resume(&self, journal: impl Into<Journal>) -> Result<Session, Error> {
        let (engine, policy) = (self.engine.clone(), Arc::clone(&self.policy));
        Session::resume(engine, policy, journal.into()).await
    }

    /// Makes the session of a journal to look back at it, as far as the [`Replay`] says: its
    /// variables are as they were, and it prints what it had printed.
    ///
    /// [`Session::go_on`] runs the last run. If that does not come to its end, it is interrupted
    /// where the journal ends, or the replay: at what it asks for next. Then code can be run in the
    /// session, which reaches nothing of the host. The journal stays as it is.
    ///
    /// Of this sandbox only the limits count, and where its packages come from.
    ///
    /// # Errors
    ///
    /// As [`resume`](Self::resume); [`ErrorKind::Packages`] if a package that the session had
    /// loaded cannot be had.
    pub async fn replay(&self, replay: impl Into<Replay>) -> Result<Session, Error> {
        let (engine, policy) = (self.engine.clone(), Arc::clone(&self.policy));
        Session::look_back(engine, policy, replay.into()).await
    }

    /// Runs one cell in a new session.
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session) and [`Session::run`].
    pub async fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.session().await?.run(cell).await
    }

    /// Writes the wheels of packages, and of all that they need, into the directory `to`, which is
    /// made if it does not exist. Returns what was written, sorted by name.
    ///
    /// Sessions on another machine can then load the packages without a network, with that
    /// directory in [`Permissions::wheels`] and with [`Permissions::offline_packages`]. The
    /// packages come from the sources of this sandbox's permissions, as for
    /// [`Session::load_packages`]; no permission for the packages is needed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Packages`] if a package is unavailable or the directory cannot be written.
    pub async fn fetch_packages<S: AsRef<str>>(
        &self,
        requirements: impl IntoIterator<Item = S>,
        to: impl Into<PathBuf>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        let requirements: Vec<String> =
            requirements.into_iter().map(|one| one.as_ref().to_owned()).collect();
        let (packages, to) = (Arc::clone(&self.policy.packages), to.into());
        on_packages_thread(move || packages.export(&requirements, &to)).await
    }

    /// Resolves and fetches packages with all that they need, as [`Session::load_packages`] does,
    /// so that sessions of this sandbox load the same ones without waiting for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Packages`] if they cannot be resolved or fetched.
    pub async fn resolve_packages<S: AsRef<str>>(
        &self,
        requirements: impl IntoIterator<Item = S>,
    ) -> Result<(), Error> {
        let mut together = self.engine.preload().pinned().to_vec();
        for requirement in requirements {
            let requirement = requirement.as_ref().parse::<Requirement>().map_err(Error::from)?;
            if !together.contains(&requirement) {
                together.push(requirement);
            }
        }
        let packages = Arc::clone(&self.policy.packages);
        on_packages_thread(move || Ok(packages.store()?.resolve(&together).map(drop)?)).await
    }

    pub(super) fn packages(&self) -> &Arc<LazyStore> {
        &self.policy.packages
    }

    /// Returns the same sandbox with calls that block.
    #[must_use]
    pub fn blocking(&self) -> blocking::Sandbox {
        blocking::Sandbox::new(self.clone())
    }

    /// Keeps `sessions` interpreters ready for sessions of this sandbox, and of others with the
    /// same isolation and the same limits of memory and values. See [`Engine::prewarm`].
    ///
    /// # Errors
    ///
    /// As [`Engine::prewarm`].
    pub fn prewarm(&self, sessions: usize) -> Result<(), Error> {
        self.engine.keep_ready(&self.policy.kind(), sessions)
    }

    /// Waits until the number of interpreters set with [`prewarm`](Self::prewarm) is ready.
    ///
    /// # Errors
    ///
    /// As [`Engine::prewarmed`].
    pub async fn prewarmed(&self) -> Result<(), Error> {
        self.engine.pool().full(&self.policy.kind()).await
    }
}

/// Works on packages on a thread of its own: that may take minutes.
pub(super) async fn on_packages_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (sender, done) = tokio::sync::oneshot::channel();
    let work = move || {
        // Sending fails only if nobody waits for the result any more.
        let _ = sender.send(work());
    };
    let thread = std::thread::Builder::new().name("isolet-packages".to_owned()).spawn(work);
    thread.map_err(|error| {
        let message = format!("the thread that works on packages cannot start: {error}");
        Error::new(ErrorKind::Packages, message).with_source(error)
    })?;
    let ended = |_| Error::new(ErrorKind::Packages, "the thread that works on packages ended");
    done.await.map_err(ended)?
}

impl std::fmt::Debug for SandboxBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxBuilder")
            .field("limits", &self.limits)
            .field("permissions", &self.permissions)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
