//! A session: one interpreter, and the runs in it.

pub(crate) mod checkpoint;
mod files;
mod finish;
mod frame;
mod interrupt_handle;
mod opening;
mod packages;
mod recorded;
mod revival;
mod run;
mod saved;
mod seat;
pub(crate) mod setup;
mod shared;
mod state;
mod stopped_at;
mod variables;

use std::path::PathBuf;
use std::sync::Arc;

pub use files::{FileEntry, Files};
pub use interrupt_handle::InterruptHandle;
use opening::{config, keeper, next_id};
pub use recorded::{has_program_to_go_on, run_counter};
use seat::Seat;
use shared::Shared;
pub use state::SessionState;
pub use stopped_at::StoppedAt;

use crate::api::engine::{Engine, Slot};
use crate::api::policy::Policy;
use crate::api::stream::RunStream;
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::tool::{Param, ToolSpec};
use crate::data::value::Value;
use crate::host::catch_panic::CatchPanic;
use crate::host::pipe::pipe;
use crate::host::tools::{SessionHandle, Tool};
use crate::packages::LoadedPackage;
use crate::protocol::Command;

/// One Python interpreter with its state, on a thread or in a process of its own.
///
/// Runs keep their state: each run sees what earlier ones defined.
/// [`Sandbox::session`](crate::Sandbox::session) makes a session, and sessions share no state.
/// [`close`](Self::close) ends one in good order; dropping one ends the interpreter at once and
/// kills a run that is under way.
pub struct Session {
    /// What handles refer to: it has the same interpreter.
    seat: Arc<Seat>,
    shared: Arc<Shared>,
    engine: Engine,
    policy: Arc<Policy>,
    isolation: IsolationReport,
    slot: Option<Slot>,
    /// What was registered in addition to what the sandbox has.
    registered: Vec<Tool>,
    /// The requirements of the packages that were loaded.
    loaded: Vec<String>,
    submits: Vec<Arc<ToolSpec>>,
}

impl Session {
    /// Runs a cell and returns its result.
    ///
    /// The cell may use top-level `await`, and the value of its last expression is the cell's
    /// value. State stays in the session. Tasks that a cell leaves behind make progress only while
    /// a later cell runs, and the tool calls that they wait for are cancelled.
    ///
    /// This future serves the tools that the cell calls.
    ///
    /// # Errors
    ///
    /// A Python exception or a limit is not an error but an [`Outcome`](crate::Outcome). An error
    /// means that the host could not run the cell:
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the session had already ended;
    /// * [`ErrorKind::Busy`](crate::ErrorKind::Busy) if a [`SessionHandle`] is running something in
    ///   it;
    /// * [`ErrorKind::Start`](crate::ErrorKind::Start) if this is the session's first command and
    ///   its interpreter has died before.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the run and the session.
    pub async fn run(&mut self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        let before = self.revive_if_ended().await;
        let cell = cell.into();
        self.move_for(&cell.code).await;
        let execution = self.shared.run_cell(cell, None).await?;
        Ok(self.after(execution, before).await)
    }

    /// Runs a cell and streams its output, then returns the result.
    ///
    /// See [`RunStream`]; everything else is as in [`run`](Self::run).
    pub fn run_streaming(&mut self, cell: impl Into<Cell>) -> RunStream<'_> {
        let (writer, reader) = pipe();
        let cell = cell.into();
        let run = async move {
            let before = self.revive_if_ended().await;
            self.move_for(&cell.code).await;
            let execution = self.shared.run_cell(cell, Some(writer)).await?;
            Ok(self.after(execution, before).await)
        };
        RunStream::new(reader, Box::pin(run))
    }

    /// Runs a script in the session's shell, as bash would, and returns its result.
    ///
    /// The outcome is [`Outcome::Exited`](crate::Outcome::Exited) with the script's status. See
    /// [`Cell::shell`], which [`run`](Self::run) takes with more options.
    ///
    /// ```no_run
    /// # async fn example(mut session: isolet::Session) -> Result<(), isolet::Error> {
    /// let listing = session.shell("ls *.csv | wc -l").await?;
    /// println!("{}", listing.stdout());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn shell(&mut self, script: impl Into<String>) -> Result<Execution, Error> {
        self.run(Cell::shell(script)).await
    }

    /// Runs a script in the session's shell and streams its output, then returns the result.
    ///
    /// See [`RunStream`]; everything else is as in [`shell`](Self::shell).
    pub fn shell_stream(&mut self, script: impl Into<String>) -> RunStream<'_> {
        self.run_streaming(Cell::shell(script))
    }

    /// Binds a variable in the guest's namespace.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) if:
    /// * `name` is not a Python name;
    /// * the value is nested deeper than 100 levels;
    /// * the value is larger than [`Limits::max_value_bytes`](crate::Limits::max_value_bytes);
    /// * the guest has no memory for it.
    ///
    /// The session stays usable. Otherwise as [`run`](Self::run).
    pub async fn set(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), Error> {
        self.shared.set(vec![(name.into(), value.into())]).await
    }

    /// Binds several variables at once. If one cannot be bound, none is.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set); the size limit applies to the sum of all values.
    pub async fn set_many<N: Into<String>, V: Into<Value>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(), Error> {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.shared.set(variables.collect()).await
    }

    /// Returns the value of a variable; `None` if it is not bound.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) if the value cannot cross; the session stays
    /// usable. Otherwise as [`run`](Self::run). The deadline of a run applies here too; past it the
    /// error is [`ErrorKind::Limit`](crate::ErrorKind::Limit).
    pub async fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        self.shared.get_variable(name).await
    }

    /// Lists the variables of the guest's namespace, in the order in which they were first bound.
    ///
    /// Omits modules, tools and names that begin with an underscore. The guest itself describes the
    /// variables: a class that it defines can lie in its `repr`.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn variables(&self) -> Result<Vec<Variable>, Error> {
        self.shared.list_variables().await
    }

    /// Returns completions of the last name in a dotted path, such as `join` for `os.path.jo`. At
    /// most 1,000, sorted.
    ///
    /// Calls no guest code: computed attributes are not followed.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), with a deadline of one second.
    pub async fn complete(&mut self, text: impl Into<String>) -> Result<Vec<String>, Error> {
        self.shared.complete(text.into()).await
    }

    /// Unbinds a variable. Returns `true` if it was bound.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn delete(&mut self, name: &str) -> Result<bool, Error> {
        self.shared.delete(name).await
    }

    /// Returns access to the guest's files, to write and read them.
    pub fn files(&mut self) -> Files<'_> {
        Files::new(self)
    }

    /// Loads packages with their dependencies, and returns the names of those that were not loaded
    /// before.
    ///
    /// Each package is `NAME`, or has a version as in `NAME==2.1`. The host resolves and fetches
    /// the packages from the directories of [`Permissions::wheels`](crate::Permissions::wheels),
    /// its cache, or the index that `pip` is configured for. It accepts only wheels, and only with
    /// the sha256 that the index gave. The guest sees them as read-only files and may compile
    /// WebAssembly in them. No permission is needed, because the session's owner makes the request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Packages`](crate::ErrorKind::Packages) if a package is unavailable or conflicts
    /// with one that is loaded; the session stays usable. Otherwise as [`run`](Self::run).
    pub async fn load_packages<S: AsRef<str>>(
        &mut self,
        requirements: impl IntoIterator<Item = S>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        let requirements = requirements.into_iter().map(|one| one.as_ref().to_owned());
        let requirements: Vec<_> = requirements.collect();
        let packages = self.shared.load_packages(requirements.clone()).await?;
        let is_new = |one: &String| !self.loaded.contains(one);
        let new: Vec<_> = requirements.into_iter().filter(is_new).collect();
        self.loaded.extend(new);
        Ok(packages)
    }

    /// Makes a second session that has everything that this one has at this moment: variables,
    /// modules, native packages, files. From then on the two are apart.
    ///
    /// The sandbox must be [forkable](crate::SandboxBuilder::forkable). The copy has this session's
    /// permissions, limits and tools, also those [registered](Self::register) later. Its
    /// counters start at zero: calls of tools, requests. Quotas of mounts count on. It lives until
    /// it is dropped, also after this session.
    ///
    /// As with Python's `os.fork`, functions of `os.register_at_fork` run: `random` is seeded anew,
    /// and the system's entropy differs. Everything else is equal, such as the seeds of numpy's
    /// global generator and the order of sets. Unlike with `os.fork`, Python's threads go on in
    /// both.
    ///
    /// Connections are not copied. In the copy, an exchange that was open fails when it is used,
    /// and a call that was waiting for its answer raises `RuntimeError`.
    ///
    /// # Errors
    ///
    /// The session stays usable after an error unless a function of `os.register_at_fork` exceeds a
    /// limit.
    /// * [`ErrorKind::Config`](crate::ErrorKind::Config) if the sandbox is not forkable;
    /// * [`ErrorKind::Busy`](crate::ErrorKind::Busy) if a [`SessionHandle`] is running something;
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the session has ended;
    /// * [`ErrorKind::Limit`](crate::ErrorKind::Limit) if the engine has too many sessions, or this
    ///   one too many copies;
    /// * [`ErrorKind::Start`](crate::ErrorKind::Start) if the system cannot copy the worker.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the session, as for [`run`](Self::run). There is no copy then.
    pub async fn fork(&mut self) -> Result<Self, Error> {
        let slot = self.engine.take_slot()?;
        let id = next_id();
        let unopened = |error| {
            let message = format!("the session cannot be forked: an open file: {error}");
            Error::new(ErrorKind::Start, message).with_session_alive()
        };
        let host =
            self.shared.host.copy(config(id, &self.engine, &self.policy)).map_err(unopened)?;
        let host = Arc::new(host);
        let (link, isolation) =
            self.shared.copy(Arc::new(CatchPanic(Arc::clone(&host) as _))).await?;
        host.connect(&link.messages);
        let keeper = keeper(&self.engine, &self.policy);
        let shared = Shared::new(id, link, host, self.policy.limits.clone(), keeper, None);
        let copy = Self::of(Arc::new(shared), isolation, &self.engine, &self.policy);
        let mut copy = copy.in_slot(slot);
        copy.registered.clone_from(&self.registered);
        copy.loaded.clone_from(&self.loaded);
        copy.submits.clone_from(&self.submits);
        copy.shared.began_as_copy().await.map_err(Error::with_session_alive)?;
        self.shared.host.tell_of_copy(id);
        Ok(copy)
    }

    /// Makes several copies, as [`fork`](Self::fork) does. If one cannot be made, there are none.
    ///
    /// # Errors
    ///
    /// As [`fork`](Self::fork).
    pub async fn fork_many(&mut self, copies: usize) -> Result<Vec<Self>, Error> {
        let mut made = Vec::new();
        for _ in 0..copies {
            made.push(self.fork().await?);
        }
        Ok(made)
    }

    /// Saves the session to a file, from which [`Sandbox::restore`](crate::Sandbox::restore) makes
    /// a session that goes on: in this process or another one, and on another machine with the same
    /// version of isolet.
    ///
    /// The file has everything that the guest has: variables, modules, native packages, files in
    /// memory, open files, changes in overlays, tasks that wait for time. It takes the place of
    /// another one only when it is whole, and only its owner may read it. The session stays as it
    /// is.
    ///
    /// # Errors
    ///
    /// The session stays usable, unless an object of the guest exceeds a limit while it is freed.
    /// * [`ErrorKind::Value`](crate::ErrorKind::Value) if the guest has what cannot be saved:
    ///   threads that have not ended, open connections and pipes, objects of JavaScript other than
    ///   those that every session has. The message names it, and what holds it;
    /// * [`ErrorKind::Config`](crate::ErrorKind::Config) if the file cannot be written;
    /// * otherwise as [`run`](Self::run).
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the session, as for [`run`](Self::run), and writes no file.
    pub async fn save(&mut self, path: impl Into<PathBuf>) -> Result<(), Error> {
        self.shared.save(path.into()).await
    }

    /// Keeps the session's state now, and not only once it is idle: if a later run ends the
    /// interpreter, the session goes on from here. See
    /// [`SandboxBuilder::checkpoint`](crate::SandboxBuilder::checkpoint).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the sandbox was built without
    /// checkpoints, or the session is recorded; otherwise as [`save`](Self::save). The session
    /// keeps its earlier state.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the session, as for [`run`](Self::run).
    pub async fn checkpoint(&mut self) -> Result<(), Error> {
        self.shared.keep_now().await
    }

    /// Has the guest do what `python` does at its exit, if the session is
    /// [ready](SessionState::Ready): it waits for threads, calls `atexit` handlers, writes and
    /// closes open files, and deletes its variables. Then [`files`](Self::files) has what it wrote.
    ///
    /// That takes at most the [grace](crate::Limits::max_grace) time, and as long again until the
    /// guest is killed; the tools refuse their calls meanwhile, and what it prints is discarded.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the session.
    pub async fn end_program(&mut self) {
        self.shared.end().await;
    }

    /// Ends the session in good order. What it has written to files of a
    /// [read-write](crate::Mount::read_write) mount and not closed is kept, as when `python` exits.
    ///
    /// If there is such a mount, this first [ends the program](Self::end_program). Without one, or
    /// if the session is not [ready](SessionState::Ready), it ends at once, as when it is dropped.
    /// Afterwards its state is [`Closed`](SessionState::Closed).
    ///
    /// # Cancellation
    ///
    /// Dropping the future ends the session at once.
    pub async fn close(&mut self) {
        if self.policy.permissions.mounts.is_any_writable() {
            self.shared.end().await;
        }
        self.shared.close();
        self.slot = None;
    }

    /// Replaces the interpreter with a fresh one under the same policy.
    ///
    /// The old one ends as by [`close`](Self::close), so files that it has left open on mounts are
    /// kept. Nothing else of the guest remains, and only the sandbox's tools are registered. Also
    /// works on a session that a limit has closed. Existing handles still refer to the old
    /// interpreter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`](crate::ErrorKind::Start) if the interpreter cannot start; the session
    /// is then closed.
    pub async fn reset(&mut self) -> Result<(), Error> {
        self.close().await;
        *self = Self::start(self.engine.clone(), Arc::clone(&self.policy)).await?;
        Ok(())
    }

    /// Registers a tool in addition to those of the sandbox. A tool of the same name is replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if Python could not define a function for
    /// the tool; otherwise as [`run`](Self::run).
    pub async fn register(&mut self, tool: Tool) -> Result<(), Error> {
        tool.validate()?;
        self.shared.define(vec![tool.clone()], Vec::new(), None).await?;
        self.registered.retain(|earlier| earlier.spec().name() != tool.spec().name());
        self.registered.push(tool);
        Ok(())
    }

    /// Adds or changes `SUBMIT`, as [`SandboxBuilder::submit`](crate::SandboxBuilder::submit) does.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub async fn set_submit(
        &mut self,
        fields: impl IntoIterator<Item = Param>,
    ) -> Result<(), Error> {
        self.set_submit_as(ToolSpec::SUBMIT, fields).await
    }

    /// Adds or changes a function that submits, as
    /// [`SandboxBuilder::submit_as`](crate::SandboxBuilder::submit_as) does.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub async fn set_submit_as(
        &mut self,
        name: impl Into<String>,
        fields: impl IntoIterator<Item = Param>,
    ) -> Result<(), Error> {
        let spec = Arc::new(ToolSpec::submit(name, fields)?);
        self.shared.define(Vec::new(), vec![Arc::clone(&spec)], None).await?;
        self.submits.retain(|earlier| earlier.name() != spec.name());
        self.submits.push(spec);
        Ok(())
    }

    /// Returns a handle with which others can use the session. See [`SessionHandle`].
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle::new(Arc::clone(&self.seat) as _)
    }

    /// Returns a handle that interrupts the session's runs from any thread.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(Arc::clone(&self.seat))
    }

    /// Returns how the session is isolated from this process, and which layers are in force.
    #[must_use]
    pub fn isolation(&self) -> &IsolationReport {
        &self.isolation
    }

    /// Returns the state of the session: whether it can run code, or why not.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.shared.state()
    }

    /// Returns `true` if `code` is incomplete, such as an open bracket or an indented block. A
    /// prompt uses this to decide when to run the lines typed so far.
    ///
    /// As in Python's own prompt, a block ends with an empty line, that is, with a newline after
    /// its last line. For a [script of the shell](Cell::shell) it is whether bash would ask for
    /// another line.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn is_incomplete(&mut self, code: impl Into<Cell>) -> Result<bool, Error> {
        let Cell { code, syntax, .. } = code.into();
        self.shared.check_source(&code)?;
        Ok(self.shared.quick(Command::Check { code, syntax }).await?.flag)
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
