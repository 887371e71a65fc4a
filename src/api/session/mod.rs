//! A session: one interpreter, and the runs in it.

mod files;
mod finish;
mod interrupt_handle;
mod packages;
mod run;
mod shared;
mod state;
mod variables;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use files::{FileEntry, Files};
pub use interrupt_handle::InterruptHandle;
use shared::Shared;
pub use state::SessionState;

use crate::api::engine::pool::Refill;
use crate::api::engine::ready::BootedInterpreter;
use crate::api::engine::{Engine, Slot};
use crate::api::policy::Policy;
use crate::api::stream::RunStream;
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::tool::{Param, ToolSpec};
use crate::data::value::Value;
use crate::host::guarded::Guarded;
use crate::host::pipe::pipe;
use crate::host::tools::{SessionHandle, Tool};
use crate::host::{HostConfig, SessionHost};
use crate::packages::LoadedPackage;
use crate::protocol::Command;

/// One Python interpreter with its state, on a thread or in a process of its own.
///
/// Runs keep their state: what one defines the next one sees. A session is made by
/// [`Sandbox::session`](crate::Sandbox::session) and is shared by nobody; dropping it ends the
/// interpreter, killing a run that is under way.
pub struct Session {
    shared: Arc<Shared>,
    engine: Engine,
    policy: Arc<Policy>,
    isolation: IsolationReport,
    slot: Option<Slot>,
}

impl Session {
    /// Starts a fresh interpreter under the sandbox's policy.
    pub(crate) async fn start(engine: Engine, policy: Arc<Policy>) -> Result<Self, Error> {
        let slot = engine.take_slot()?;
        let (pool, kind) = (engine.pool(), policy.kind());
        // What replaces a ready one boots when the session is there, not beside it.
        let _refill = Refill { pool, kind: &kind };
        let made = match pool.take(&kind) {
            Some(ready) => Self::make(&engine, &policy, ready, true).await.ok(),
            None => None,
        };
        let mut session = if let Some(session) = made {
            session
        } else {
            // A ready one may have died since it was looked at.
            let fresh = pool.boot(&kind).await?;
            Self::make(&engine, &policy, fresh, false).await?
        };
        session.slot = Some(slot);
        Ok(session)
    }

    /// Makes a session of an interpreter that is nobody's. One that has rehearsed its start is not
    /// waited for: the session's first command does.
    async fn make(
        engine: &Engine,
        policy: &Arc<Policy>,
        fresh: BootedInterpreter,
        has_rehearsed: bool,
    ) -> Result<Self, Error> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let host = Arc::new(SessionHost::new(HostConfig {
            session: id,
            limits: &policy.limits,
            mounts: &policy.permissions.mounts,
            net: &policy.permissions.net,
            packages: &policy.packages,
            preload: engine.preload(),
            audit: policy.audit.clone(),
        }));
        let (link, isolation) = fresh.adopt(Arc::new(Guarded(Arc::clone(&host) as _)));
        host.connect(&link.messages);
        let shared = Arc::new(Shared::new(id, link, host, policy.limits.clone()));
        let (engine, policy) = (engine.clone(), Arc::clone(policy));
        let session = Self { shared, engine, policy, isolation, slot: None };
        let Policy { env, terminal, tools, submit, .. } = &*session.policy;
        session.shared.start(env.clone(), *terminal).await;
        if !has_rehearsed {
            session.shared.started().await?;
        }
        if !tools.is_empty() || submit.is_some() {
            session.shared.define(tools.clone(), submit.clone()).await?;
        }
        Ok(session)
    }

    /// Runs a cell and returns what became of it.
    ///
    /// Top-level `await` is allowed, and the value of a last expression is the cell's value. State
    /// stays in the session. Tasks that a cell leaves behind go on only while a later cell runs,
    /// and the calls of host functions that they wait for are cancelled.
    ///
    /// The host functions that the cell calls are served by this future.
    ///
    /// # Errors
    ///
    /// A Python exception or a limit is no error but an [`Outcome`](crate::Outcome). An error means
    /// that the host could not run the cell: [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the
    /// session had ended before, [`ErrorKind::Busy`](crate::ErrorKind::Busy) if a [`SessionHandle`]
    /// runs something in it, [`ErrorKind::Start`](crate::ErrorKind::Start) if this is the first
    /// command of an interpreter that was [kept ready](crate::Engine::prewarm) and it has died
    /// meanwhile.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the run, and the session with it.
    pub async fn run(&mut self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.shared.run_cell(cell.into(), None).await
    }

    /// Runs a cell and gives all of its output as it comes, then the result.
    ///
    /// See [`RunStream`] for how; everything else is as in [`run`](Self::run).
    pub fn run_streaming(&mut self, cell: impl Into<Cell>) -> RunStream<'_> {
        let (writer, reader) = pipe();
        let cell = cell.into();
        RunStream::new(reader, Box::pin(self.shared.run_cell(cell, Some(writer))))
    }

    /// Binds a variable in the guest's namespace.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) if `name` is no Python name, or the value is
    /// nested deeper than 100 levels or larger than
    /// [`Limits::max_value_bytes`](crate::Limits::max_value_bytes), or the guest has no memory for
    /// it; the session lives on. Otherwise as [`run`](Self::run).
    pub async fn set(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), Error> {
        self.shared.set(vec![(name.into(), value.into())]).await
    }

    /// Binds several variables at once; none of them if one cannot be.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set); the limit on the size is for all of them together.
    pub async fn set_many<N: Into<String>, V: Into<Value>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(), Error> {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.shared.set(variables.collect()).await
    }

    /// Returns the value of a variable; `None` if there is none of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) if the value cannot cross; the session lives
    /// on. Otherwise as [`run`](Self::run); the deadline counts here too, and past it the error is
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit).
    pub async fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        self.shared.get_variable(name).await
    }

    /// Lists the variables of the guest's namespace, in the order in which they were first bound.
    ///
    /// Names that begin with an underscore, modules and host functions are left out. The guest
    /// itself describes them: a class of its own can lie about its `repr`.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn variables(&self) -> Result<Vec<Variable>, Error> {
        self.shared.list_variables().await
    }

    /// Returns the names that the last one of a dotted path may become, such as `join` for
    /// `os.path.jo`. At most 1,000, sorted.
    ///
    /// Nothing of the guest is called for it: attributes that are computed are not followed.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), with a deadline of one second.
    pub async fn complete(&mut self, text: impl Into<String>) -> Result<Vec<String>, Error> {
        self.shared.complete(text.into()).await
    }

    /// Unbinds a variable. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn delete(&mut self, name: &str) -> Result<bool, Error> {
        self.shared.delete(name).await
    }

    /// The guest's files, to put some there and to get what it wrote.
    pub fn files(&mut self) -> Files<'_> {
        Files::new(self)
    }

    /// Loads packages, with all that they require, and returns those that were not there before.
    ///
    /// Each is `NAME`, or has a version as in `NAME==2.1`. The host resolves and fetches them, from
    /// the directories of [`Permissions::wheels`](crate::Permissions::wheels), its cache, or the
    /// index that `pip` is configured for; only wheels, each of which has to have the sha256 that
    /// the index gave. The guest sees them as read-only files, and WebAssembly in them may be
    /// compiled. This needs no permission: it is the owner who asks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Packages`](crate::ErrorKind::Packages) if one cannot be had, or does not go
    /// with what is loaded; the session lives on. Otherwise as [`run`](Self::run).
    pub async fn load_packages<S: AsRef<str>>(
        &mut self,
        requirements: impl IntoIterator<Item = S>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        let requirements = requirements.into_iter().map(|one| one.as_ref().to_owned());
        self.shared.load_packages(requirements.collect()).await
    }

    /// Starts over with a fresh interpreter under the same policy.
    ///
    /// Nothing of the guest is left, and no host function but the sandbox's. It works on a session
    /// that a limit has closed too. Handles made before do not follow.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`](crate::ErrorKind::Start) if the interpreter cannot start; the session
    /// is closed then.
    pub async fn reset(&mut self) -> Result<(), Error> {
        self.shared.close();
        self.slot = None;
        *self = Self::start(self.engine.clone(), Arc::clone(&self.policy)).await?;
        Ok(())
    }

    /// Allows the guest a host function, in addition to those of the sandbox. One of the same name
    /// is replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if Python could not define such a function;
    /// otherwise as [`run`](Self::run).
    pub async fn register(&mut self, tool: Tool) -> Result<(), Error> {
        tool.validate()?;
        self.shared.define(vec![tool], None).await
    }

    /// Makes or changes `SUBMIT`, as
    /// [`SandboxBuilder::submit`](crate::SandboxBuilder::submit) does.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub async fn set_submit(
        &mut self,
        fields: impl IntoIterator<Item = Param>,
    ) -> Result<(), Error> {
        let spec = ToolSpec::submit(fields)?;
        self.shared.define(Vec::new(), Some(Arc::new(spec))).await
    }

    /// Returns a handle to the session for others, see [`SessionHandle`].
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle::new(Arc::clone(&self.shared) as _)
    }

    /// Returns a handle that interrupts the session's runs from elsewhere.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(Arc::clone(&self.shared))
    }

    /// Returns how the session is kept apart from this process, and what of that is in force.
    #[must_use]
    pub fn isolation(&self) -> &IsolationReport {
        &self.isolation
    }

    /// Returns whether the session can run code.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.shared.state()
    }

    /// Returns whether `code` is the beginning of something longer, as an open bracket or an
    /// indented block is: what a prompt has to know before it runs what was typed.
    ///
    /// As at python's own prompt, a block ends with an empty line, that is, with a newline after
    /// its last one.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn is_incomplete(&mut self, code: impl Into<String>) -> Result<bool, Error> {
        let code = code.into();
        self.shared.check_source(&code)?;
        Ok(self.shared.quick(Command::Check { code }).await?.flag)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("state", &self.state()).finish_non_exhaustive()
    }
}
