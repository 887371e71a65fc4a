//! A sandbox: the policy that its sessions run under.

use std::path::PathBuf;
use std::sync::Arc;

use crate::api::engine::Engine;
use crate::api::permissions::{Permissions, env};
use crate::api::policy::Policy;
use crate::api::session::Session;
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::Execution;
use crate::data::isolation::{Confinement, Isolation, Layer};
use crate::data::limits::Limits;
use crate::data::terminal::Terminal;
use crate::data::tool::{Param, ToolSpec};
use crate::host::audit::{AuditEvent, AuditSink};
use crate::host::tools::Tool;
use crate::packages::LazyStore;

/// Policy for sessions: their limits, what they may see of the host and what they may call.
///
/// It holds no guest state, is cheap to clone and can be shared by threads. Everything is denied
/// unless the builder was told otherwise:
///
/// * files, network, environment, packages: see [`Permissions`];
/// * subprocesses and threads: none, ever;
/// * host functions: none;
/// * standard input: empty.
#[derive(Clone, Debug)]
pub struct Sandbox {
    engine: Engine,
    policy: Arc<Policy>,
}

/// Makes a [`Sandbox`].
#[derive(Clone)]
#[must_use]
pub struct SandboxBuilder {
    engine: Engine,
    limits: Limits,
    permissions: Permissions,
    terminal: Option<Terminal>,
    audit: Option<AuditSink>,
    tools: Vec<Tool>,
    submit: Option<Vec<Param>>,
    confinement: Confinement,
}

impl SandboxBuilder {
    /// Sets the limits of the sessions' runs.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what the guest may reach of the host; what was set before is forgotten.
    ///
    /// By default that is nothing.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Tells the guest that its output is for a terminal.
    ///
    /// By default it is for none.
    pub fn terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = Some(terminal);
        self
    }

    /// Has a function told of everything that the guest is allowed or denied.
    ///
    /// It is called on the session's threads, which wait for it: it should be quick. If it panics,
    /// what was to be decided fails.
    pub fn on_audit(mut self, sink: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        self.audit = Some(Arc::new(sink));
        self
    }

    /// Sets where sessions run.
    ///
    /// By default that is where the [engine](crate::EngineBuilder::isolation) has them.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.confinement.isolation = isolation;
        self
    }

    /// Names the program that workers are made of: the `isolet` command, or one whose `main` begins
    /// with [`init`](crate::init). It has to be of exactly this version.
    ///
    /// By default it is the [engine's](crate::EngineBuilder::worker).
    pub fn worker(mut self, program: impl Into<PathBuf>) -> Self {
        self.confinement.worker = Some(program.into());
        self
    }

    /// Has sessions start only if these layers of their isolation are in force, whatever the kernel
    /// of this machine thinks of them; the error names those that are not.
    ///
    /// By default it is what the [engine](crate::EngineBuilder::require) requires, and
    /// [`Session::isolation`] says what is in force.
    pub fn require(mut self, layers: impl IntoIterator<Item = Layer>) -> Self {
        self.confinement.required.extend(layers);
        self
    }

    /// Allows the guest a host function.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Gives the guest a function `SUBMIT`, which ends a run with a value for each of these fields.
    ///
    /// It takes them by position or by keyword. Wrong ones raise `TypeError` in the guest;
    /// otherwise the outcome of the run is [`Submitted`](crate::Outcome::Submitted) with a dict of
    /// them. The first submission of a run counts, also if the guest catches what unwinds it (a
    /// `BaseException`) and goes on.
    pub fn submit(mut self, fields: impl IntoIterator<Item = Param>) -> Self {
        self.submit = Some(fields.into_iter().collect());
        self
    }

    /// Makes the sandbox. Starts nothing yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a limit is zero that must not be, or a directory with isolet's
    /// assets is mounted to be written to, or a layer is required of isolation on a thread, or an
    /// environment variable's name is empty or holds `=`, or a NUL is in it or its value, or Python
    /// could not define a tool or `SUBMIT`, or two tools have the same name.
    pub fn build(self) -> Result<Sandbox, Error> {
        self.limits.validate()?;
        self.confinement.validate()?;
        self.permissions.mounts.check_assets(self.engine.assets_dir())?;
        for (at, tool) in self.tools.iter().enumerate() {
            tool.validate()?;
            let name = tool.spec().name();
            if self.tools[..at].iter().any(|earlier| earlier.spec().name() == name) {
                let message = format!("there are two tools of the name `{name}`");
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        let submit = self.submit.map(ToolSpec::submit).transpose()?.map(Arc::new);
        let policy = Arc::new(Policy {
            limits: self.limits,
            env: env::environment(&self.permissions.env)?,
            packages: Arc::new(LazyStore::new(
                self.permissions.packages.clone(),
                Arc::clone(self.engine.lock_json()),
            )),
            permissions: self.permissions,
            terminal: self.terminal,
            audit: self.audit,
            tools: self.tools,
            submit,
            confinement: self.confinement,
        });
        Ok(Sandbox { engine: self.engine, policy })
    }
}

impl Sandbox {
    /// Starts building a sandbox whose sessions run in `engine`.
    pub fn builder(engine: &Engine) -> SandboxBuilder {
        SandboxBuilder {
            engine: engine.clone(),
            limits: Limits::default(),
            permissions: Permissions::none(),
            terminal: None,
            audit: None,
            tools: Vec::new(),
            submit: None,
            confinement: engine.confinement().clone(),
        }
    }

    /// Starts a session: a fresh interpreter on a thread or in a process of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`] if the interpreter or its worker cannot start, or a layer that is
    /// [required](SandboxBuilder::require) is not in force; [`ErrorKind::Config`] if there is no
    /// program to make a worker of.
    pub async fn session(&self) -> Result<Session, Error> {
        Session::start(self.engine.clone(), Arc::clone(&self.policy)).await
    }

    /// Runs one cell in a session of its own.
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session) and [`Session::run`].
    pub async fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.session().await?.run(cell).await
    }

    /// Keeps so many interpreters ready for sessions of this sandbox, and of others with the same
    /// isolation and the same limits of memory and values: see [`Engine::prewarm`].
    ///
    /// # Errors
    ///
    /// As [`Engine::prewarm`].
    pub fn prewarm(&self, sessions: usize) -> Result<(), Error> {
        self.engine.keep_ready(&self.policy.kind(), sessions)
    }

    /// Waits until as many interpreters are ready as [`prewarm`](Self::prewarm) was told.
    ///
    /// # Errors
    ///
    /// As [`Engine::prewarmed`].
    pub async fn prewarmed(&self) -> Result<(), Error> {
        self.engine.pool().full(&self.policy.kind()).await
    }
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
