//! The same API without async: each method has the name and arguments of its async counterpart and
//! blocks the calling thread.
//!
//! [`Sandbox::blocking`](crate::Sandbox::blocking) and
//! [`Engine::blocking`](crate::Engine::blocking) lead here.
//!
//! ```no_run
//! # fn example(sandbox: &isolet::Sandbox) -> Result<(), isolet::Error> {
//! let mut session = sandbox.blocking().session()?; // async: `sandbox.session().await?`
//! session.files().put("in.csv", "a,b\n1,2\n")?;
//! let execution = session.run("len(open('in.csv').readlines())")?;
//! # Ok(()) }
//! ```

mod runs;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::api::copied_files::CopiedFiles;
use crate::api::journal::Journal;
use crate::api::replay::Replay;
use crate::api::session::{FileEntry, InterruptHandle, SessionState, StoppedAt};
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::tool::Param;
use crate::data::value::Value;
use crate::fs::{ExportDirectory, FileChange};
use crate::host::tools::Tool;
use crate::packages::LoadedPackage;
pub use crate::support::block_on::block_on;

/// An [`Engine`](crate::Engine) whose calls block.
#[derive(Clone, Debug)]
pub struct Engine(crate::api::engine::Engine);

/// A [`Sandbox`](crate::Sandbox) whose calls block.
#[derive(Clone, Debug)]
pub struct Sandbox(crate::api::sandbox::Sandbox);

/// A [`Session`](crate::Session) whose calls block.
#[derive(Debug)]
pub struct Session(crate::api::session::Session);

/// The [files](crate::Files) of a session, with calls that block.
#[derive(Debug)]
pub struct Files<'a>(crate::api::session::Files<'a>);

/// A [run](crate::RunStream) under way: an iterator that blocks until the next event, and
/// then the result.
#[derive(Debug)]
pub struct RunStream<'a>(crate::api::stream::RunStream<'a>);

/// The [output](crate::RunOutput) of a run, as an iterator that blocks until the next event.
#[derive(Debug)]
pub struct RunOutput(crate::api::stream::RunOutput);

/// A [handle to a session](crate::SessionHandle) whose calls block.
#[derive(Clone, Debug)]
pub struct SessionHandle(crate::host::tools::SessionHandle);

impl Engine {
    pub(super) fn new(engine: crate::api::engine::Engine) -> Self {
        Self(engine)
    }

    /// Keeps interpreters ready, as [`Engine::prewarm`](crate::Engine::prewarm) does.
    ///
    /// # Errors
    ///
    /// As [`Engine::prewarm`](crate::Engine::prewarm).
    pub fn prewarm(&self, sessions: usize) -> Result<(), Error> {
        self.0.prewarm(sessions)
    }

    /// Waits for the ready interpreters, as [`Engine::prewarmed`](crate::Engine::prewarmed) does.
    ///
    /// # Errors
    ///
    /// As [`Engine::prewarmed`](crate::Engine::prewarmed).
    pub fn prewarmed(&self) -> Result<(), Error> {
        block_on(self.0.prewarmed())
    }
}

/// The same session, for async callers.
impl From<Session> for crate::api::session::Session {
    fn from(session: Session) -> Self {
        session.0
    }
}

impl Sandbox {
    pub(super) fn new(sandbox: crate::api::sandbox::Sandbox) -> Self {
        Self(sandbox)
    }

    /// Starts a session, as [`Sandbox::session`](crate::Sandbox::session) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::session`](crate::Sandbox::session).
    pub fn session(&self) -> Result<Session, Error> {
        block_on(self.0.session()).map(Session)
    }

    /// Resolves and fetches packages, as
    /// [`Sandbox::resolve_packages`](crate::Sandbox::resolve_packages) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::resolve_packages`](crate::Sandbox::resolve_packages).
    pub fn resolve_packages<S: AsRef<str>>(
        &self,
        requirements: impl IntoIterator<Item = S>,
    ) -> Result<(), Error> {
        block_on(self.0.resolve_packages(requirements))
    }

    /// Starts a session that was saved, as [`Sandbox::restore`](crate::Sandbox::restore) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::restore`](crate::Sandbox::restore).
    pub fn restore(&self, path: impl Into<PathBuf>) -> Result<Session, Error> {
        block_on(self.0.restore(path)).map(Session)
    }

    /// Starts a session that is recorded, as [`Sandbox::record`](crate::Sandbox::record) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::record`](crate::Sandbox::record).
    pub fn record(&self, journal: impl Into<Journal>) -> Result<Session, Error> {
        block_on(self.0.record(journal)).map(Session)
    }

    /// Makes the session of a journal, as [`Sandbox::resume`](crate::Sandbox::resume) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::resume`](crate::Sandbox::resume).
    pub fn resume(&self, journal: impl Into<Journal>) -> Result<Session, Error> {
        block_on(self.0.resume(journal)).map(Session)
    }

    /// Looks back at the session of a journal, as [`Sandbox::replay`](crate::Sandbox::replay) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::replay`](crate::Sandbox::replay).
    pub fn replay(&self, replay: impl Into<Replay>) -> Result<Session, Error> {
        block_on(self.0.replay(replay)).map(Session)
    }

    /// Runs one cell in a new session, as [`Sandbox::run`](crate::Sandbox::run) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::run`](crate::Sandbox::run).
    pub fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        block_on(self.0.run(cell))
    }

    /// Writes wheels into a directory, as
    /// [`Sandbox::fetch_packages`](crate::Sandbox::fetch_packages) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::fetch_packages`](crate::Sandbox::fetch_packages).
    pub fn fetch_packages<S: AsRef<str>>(
        &self,
        requirements: impl IntoIterator<Item = S>,
        to: impl Into<PathBuf>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        block_on(self.0.fetch_packages(requirements, to))
    }

    /// Writes packages into a directory as a bundle, as
    /// [`Sandbox::bundle_packages`](crate::Sandbox::bundle_packages) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::bundle_packages`](crate::Sandbox::bundle_packages).
    pub fn bundle_packages<S: AsRef<str>>(
        &self,
        requirements: impl IntoIterator<Item = S>,
        sets: impl IntoIterator<Item = BTreeSet<String>>,
        to: impl Into<PathBuf>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        block_on(self.0.bundle_packages(requirements, sets, to))
    }

    /// Keeps interpreters ready, as [`Sandbox::prewarm`](crate::Sandbox::prewarm) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::prewarm`](crate::Sandbox::prewarm).
    pub fn prewarm(&self, sessions: usize) -> Result<(), Error> {
        self.0.prewarm(sessions)
    }

    /// Waits for the ready interpreters, as [`Sandbox::prewarmed`](crate::Sandbox::prewarmed) does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::prewarmed`](crate::Sandbox::prewarmed).
    pub fn prewarmed(&self) -> Result<(), Error> {
        block_on(self.0.prewarmed())
    }
}

impl Session {
    /// Runs a cell, as [`Session::run`](crate::Session::run) does.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn run(&mut self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        block_on(self.0.run(cell))
    }

    /// Runs a cell whose output can be read while it runs, as
    /// [`Session::run_streaming`](crate::Session::run_streaming) does.
    pub fn run_streaming(&mut self, cell: impl Into<Cell>) -> RunStream<'_> {
        RunStream(self.0.run_streaming(cell))
    }

    /// Runs a script in the session's shell, as [`Session::shell`](crate::Session::shell) does.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn shell(&mut self, script: impl Into<String>) -> Result<Execution, Error> {
        block_on(self.0.shell(script))
    }

    /// Runs a script in the session's shell, whose output can be read while it runs, as
    /// [`Session::shell_stream`](crate::Session::shell_stream) does.
    pub fn shell_stream(&mut self, script: impl Into<String>) -> RunStream<'_> {
        RunStream(self.0.shell_stream(script))
    }

    /// Binds a variable, as [`Session::set`](crate::Session::set) does.
    ///
    /// # Errors
    ///
    /// As [`Session::set`](crate::Session::set).
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        block_on(self.0.set(name, value))
    }

    /// Binds several variables at once, as [`Session::set_many`](crate::Session::set_many) does.
    ///
    /// # Errors
    ///
    /// As [`Session::set_many`](crate::Session::set_many).
    pub fn set_many<N: Into<String>, V: Into<Value>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(), Error> {
        block_on(self.0.set_many(variables))
    }

    /// Returns the value of a variable, as [`Session::get`](crate::Session::get) does.
    ///
    /// # Errors
    ///
    /// As [`Session::get`](crate::Session::get).
    pub fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        block_on(self.0.get(name))
    }

    /// Lists the variables, as [`Session::variables`](crate::Session::variables) does.
    ///
    /// # Errors
    ///
    /// As [`Session::variables`](crate::Session::variables).
    pub fn variables(&self) -> Result<Vec<Variable>, Error> {
        block_on(self.0.variables())
    }

    /// Completes a name, as [`Session::complete`](crate::Session::complete) does.
    ///
    /// # Errors
    ///
    /// As [`Session::complete`](crate::Session::complete).
    pub fn complete(&mut self, text: impl Into<String>) -> Result<Vec<String>, Error> {
        block_on(self.0.complete(text))
    }

    /// Unbinds a variable, as [`Session::delete`](crate::Session::delete) does.
    ///
    /// # Errors
    ///
    /// As [`Session::delete`](crate::Session::delete).
    pub fn delete(&mut self, name: &str) -> Result<bool, Error> {
        block_on(self.0.delete(name))
    }

    /// Returns the session's files, as [`Session::files`](crate::Session::files) does.
    pub fn files(&mut self) -> Files<'_> {
        Files(self.0.files())
    }

    /// Copies host files into the session, as [`CopiedFiles::copy_in`] does.
    ///
    /// # Errors
    ///
    /// As [`CopiedFiles::copy_in`].
    pub fn copy_in(&mut self, files: &mut CopiedFiles) -> Result<(), Error> {
        block_on(files.copy_in(&mut self.0))
    }

    /// Writes changed files back to the host, as [`CopiedFiles::copy_out`] does.
    ///
    /// # Errors
    ///
    /// As [`CopiedFiles::copy_out`].
    pub fn copy_out(&mut self, files: &mut CopiedFiles) -> Result<(), Error> {
        block_on(files.copy_out(&mut self.0))
    }

    /// Loads packages, as [`Session::load_packages`](crate::Session::load_packages) does.
    ///
    /// # Errors
    ///
    /// As [`Session::load_packages`](crate::Session::load_packages).
    pub fn load_packages<S: AsRef<str>>(
        &mut self,
        requirements: impl IntoIterator<Item = S>,
    ) -> Result<Vec<LoadedPackage>, Error> {
        block_on(self.0.load_packages(requirements))
    }

    /// Makes a second session that has everything that this one has, as
    /// [`Session::fork`](crate::Session::fork) does.
    ///
    /// # Errors
    ///
    /// As [`Session::fork`](crate::Session::fork).
    pub fn fork(&mut self) -> Result<Self, Error> {
        block_on(self.0.fork()).map(Self)
    }

    /// Makes several copies, as [`Session::fork_many`](crate::Session::fork_many) does.
    ///
    /// # Errors
    ///
    /// As [`Session::fork`](crate::Session::fork).
    pub fn fork_many(&mut self, copies: usize) -> Result<Vec<Self>, Error> {
        Ok(block_on(self.0.fork_many(copies))?.into_iter().map(Self).collect())
    }

    /// Saves the session to a file, as [`Session::save`](crate::Session::save) does.
    ///
    /// # Errors
    ///
    /// As [`Session::save`](crate::Session::save).
    pub fn save(&mut self, path: impl Into<PathBuf>) -> Result<(), Error> {
        block_on(self.0.save(path))
    }

    /// Records the session from here on, as [`Session::record`](crate::Session::record) does.
    ///
    /// # Errors
    ///
    /// As [`Session::record`](crate::Session::record).
    pub fn record(&mut self, journal: impl Into<Journal>) -> Result<(), Error> {
        block_on(self.0.record(journal))
    }

    /// Records the session no longer, as
    /// [`Session::end_recording`](crate::Session::end_recording) does.
    pub fn end_recording(&mut self) {
        self.0.end_recording();
    }

    /// Runs the last run of the session's journal, as [`Session::go_on`](crate::Session::go_on)
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Session::go_on`](crate::Session::go_on).
    pub fn go_on(&mut self) -> Result<Option<Execution>, Error> {
        block_on(self.0.go_on())
    }

    /// Returns the number of runs in the session's journal, as
    /// [`Session::recorded_runs`](crate::Session::recorded_runs) does.
    #[must_use]
    pub fn recorded_runs(&self) -> u64 {
        self.0.recorded_runs()
    }

    /// Returns `true` if [`go_on`](Self::go_on) has a run to run.
    #[must_use]
    pub fn has_run_to_go_on(&self) -> bool {
        self.0.has_run_to_go_on()
    }

    /// Binds the variables of the function in which the run was stopped, as
    /// [`Session::bind_locals`](crate::Session::bind_locals) does.
    ///
    /// # Errors
    ///
    /// As [`Session::bind_locals`](crate::Session::bind_locals).
    pub fn bind_locals(&mut self) -> Result<Option<StoppedAt>, Error> {
        block_on(self.0.bind_locals())
    }

    /// Runs it with output that can be read meanwhile, as
    /// [`Session::go_on_streaming`](crate::Session::go_on_streaming) does.
    pub fn go_on_streaming(&mut self) -> RunStream<'_> {
        RunStream(self.0.go_on_streaming())
    }

    /// Keeps the session's state, as [`Session::checkpoint`](crate::Session::checkpoint) does.
    ///
    /// # Errors
    ///
    /// As [`Session::checkpoint`](crate::Session::checkpoint).
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        block_on(self.0.checkpoint())
    }

    /// Ends the guest's program, as [`Session::end_program`](crate::Session::end_program) does.
    pub fn end_program(&mut self) {
        block_on(self.0.end_program());
    }

    /// Ends the session in good order, as [`Session::close`](crate::Session::close) does.
    pub fn close(&mut self) {
        block_on(self.0.close());
    }

    /// Starts over with a fresh interpreter, as [`Session::reset`](crate::Session::reset) does.
    ///
    /// # Errors
    ///
    /// As [`Session::reset`](crate::Session::reset).
    pub fn reset(&mut self) -> Result<(), Error> {
        block_on(self.0.reset())
    }

    /// Registers a tool that the guest can call, as [`Session::register`](crate::Session::register)
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Session::register`](crate::Session::register).
    pub fn register(&mut self, tool: Tool) -> Result<(), Error> {
        block_on(self.0.register(tool))
    }

    /// Adds or changes `SUBMIT`, as [`Session::set_submit`](crate::Session::set_submit) does.
    ///
    /// # Errors
    ///
    /// As [`Session::set_submit`](crate::Session::set_submit).
    pub fn set_submit(&mut self, fields: impl IntoIterator<Item = Param>) -> Result<(), Error> {
        block_on(self.0.set_submit(fields))
    }

    /// Adds or changes a function that submits, as
    /// [`Session::set_submit_as`](crate::Session::set_submit_as) does.
    ///
    /// # Errors
    ///
    /// As [`Session::set_submit_as`](crate::Session::set_submit_as).
    pub fn set_submit_as(
        &mut self,
        name: impl Into<String>,
        fields: impl IntoIterator<Item = Param>,
    ) -> Result<(), Error> {
        block_on(self.0.set_submit_as(name, fields))
    }

    /// Returns a handle with which others can use the session.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle(self.0.handle())
    }

    /// Returns `true` if `code` is incomplete, as
    /// [`Session::is_incomplete`](crate::Session::is_incomplete) does.
    ///
    /// # Errors
    ///
    /// As [`Session::is_incomplete`](crate::Session::is_incomplete).
    pub fn is_incomplete(&mut self, code: impl Into<Cell>) -> Result<bool, Error> {
        block_on(self.0.is_incomplete(code))
    }

    /// Returns a handle that interrupts the session's runs from another thread.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.0.interrupt_handle()
    }

    /// Returns how the session is isolated from this process, as
    /// [`Session::isolation`](crate::Session::isolation) does.
    #[must_use]
    pub fn isolation(&self) -> &IsolationReport {
        self.0.isolation()
    }

    /// Returns the state of the session: whether it can run code, or why not.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.0.state()
    }
}

impl Files<'_> {
    /// Writes a file, as [`Files::put`](crate::Files::put) does.
    ///
    /// # Errors
    ///
    /// As [`Files::put`](crate::Files::put).
    pub fn put(&self, path: &str, contents: impl Into<Vec<u8>>) -> Result<(), Error> {
        block_on(self.0.put(path, contents))
    }

    /// Reads a file, as [`Files::get`](crate::Files::get) does.
    ///
    /// # Errors
    ///
    /// As [`Files::get`](crate::Files::get).
    pub fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        block_on(self.0.get(path))
    }

    /// Lists a directory, as [`Files::list`](crate::Files::list) does.
    ///
    /// # Errors
    ///
    /// As [`Files::list`](crate::Files::list).
    pub fn list(&self, path: &str) -> Result<Vec<FileEntry>, Error> {
        block_on(self.0.list(path))
    }

    /// Removes a file, as [`Files::remove`](crate::Files::remove) does.
    ///
    /// # Errors
    ///
    /// As [`Files::remove`](crate::Files::remove).
    pub fn remove(&self, path: &str) -> Result<bool, Error> {
        block_on(self.0.remove(path))
    }

    /// Lists the changes in an overlay, as [`Files::changes`](crate::Files::changes) does.
    ///
    /// # Errors
    ///
    /// As [`Files::changes`](crate::Files::changes).
    pub fn changes(&self, mount: &str) -> Result<Vec<FileChange>, Error> {
        self.0.changes(mount)
    }

    /// Writes the changes in an overlay to the host, as [`Files::export`](crate::Files::export)
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Files::export`](crate::Files::export).
    pub fn export(&self, mount: &str, directory: impl AsRef<Path>) -> Result<u64, Error> {
        self.0.export(mount, directory)
    }

    /// Opens a directory to export to, as [`Files::open_export`](crate::Files::open_export) does.
    ///
    /// # Errors
    ///
    /// As [`Files::export`](crate::Files::export).
    pub fn open_export(
        &self,
        mount: &str,
        directory: impl AsRef<Path>,
    ) -> Result<ExportDirectory, Error> {
        self.0.open_export(mount, directory)
    }

    /// Exports to a directory that was opened before, as
    /// [`Files::export_to`](crate::Files::export_to) does.
    ///
    /// # Errors
    ///
    /// As [`Files::export`](crate::Files::export).
    pub fn export_to(&self, mount: &str, directory: &ExportDirectory) -> Result<u64, Error> {
        self.0.export_to(mount, directory)
    }
}
