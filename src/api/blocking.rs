//! Blocking versions of [`Session`](crate::Session) and its types. Every call blocks the calling
//! thread.

use std::path::Path;

use crate::api::copied_files::CopiedFiles;
use crate::api::sandbox::Sandbox;
use crate::api::session::{FileEntry, InterruptHandle, SessionState};
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Truncation, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::output::OutputChunk;
use crate::data::tool::Param;
use crate::data::value::Value;
use crate::fs::{ExportDirectory, FileChange};
use crate::host::tools::{SessionHandle, Tool};
use crate::packages::LoadedPackage;
use crate::support::block_on::block_on;

/// A [`Session`](crate::Session) whose calls block.
#[derive(Debug)]
pub struct Session(crate::api::session::Session);

/// The [output](crate::RunOutput) of a run, as an iterator that blocks until the next chunk.
#[derive(Debug)]
pub struct RunOutput(crate::api::stream::RunOutput);

impl RunOutput {
    /// Returns how much output was dropped so far, as
    /// [`RunOutput::dropped`](crate::RunOutput::dropped) does.
    #[must_use]
    pub fn dropped(&self) -> Truncation {
        self.0.dropped()
    }
}

impl Iterator for RunOutput {
    type Item = OutputChunk;

    fn next(&mut self) -> Option<OutputChunk> {
        block_on(self.0.next())
    }
}

/// Runs one cell in a session of its own, as [`Sandbox::run`] does.
///
/// # Errors
///
/// As [`Sandbox::run`].
pub fn run(sandbox: &Sandbox, cell: impl Into<Cell>) -> Result<Execution, Error> {
    block_on(sandbox.run(cell))
}

impl Session {
    /// Starts a session, as [`Sandbox::session`] does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::session`].
    pub fn new(sandbox: &Sandbox) -> Result<Self, Error> {
        block_on(sandbox.session()).map(Self)
    }

    /// Runs a cell, as [`Session::run`](crate::Session::run) does.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn run(&mut self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        block_on(self.0.run(cell))
    }

    /// Runs a cell and calls `output` with each chunk of output as the cell writes it. The guest
    /// waits while a slow call is running, as described at [`RunStream`](crate::RunStream).
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn run_streaming(
        &mut self,
        cell: impl Into<Cell>,
        mut output: impl FnMut(OutputChunk),
    ) -> Result<Execution, Error> {
        block_on(async {
            let mut run = self.0.run_streaming(cell);
            while let Some(chunk) = run.next().await {
                output(chunk);
            }
            run.finish().await
        })
    }

    /// Runs a cell and first passes its output to `take`, so that another thread can read it. The
    /// result does not wait for that reader: see
    /// [`RunStream::take_output`](crate::RunStream::take_output).
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn run_with_output(
        &mut self,
        cell: impl Into<Cell>,
        take: impl FnOnce(RunOutput),
    ) -> Result<Execution, Error> {
        let mut run = self.0.run_streaming(cell);
        if let Some(output) = run.take_output() {
            take(RunOutput(output));
        }
        block_on(run.finish())
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

    /// Writes a file in the guest, as [`Files::put`](crate::Files::put) does.
    ///
    /// # Errors
    ///
    /// As [`Files::put`](crate::Files::put).
    pub fn put_file(&mut self, path: &str, contents: impl Into<Vec<u8>>) -> Result<(), Error> {
        block_on(self.0.files().put(path, contents))
    }

    /// Reads a file in the guest, as [`Files::get`](crate::Files::get) does.
    ///
    /// # Errors
    ///
    /// As [`Files::get`](crate::Files::get).
    pub fn get_file(&mut self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        block_on(self.0.files().get(path))
    }

    /// Lists a directory in the guest, as [`Files::list`](crate::Files::list) does.
    ///
    /// # Errors
    ///
    /// As [`Files::list`](crate::Files::list).
    pub fn list_files(&mut self, path: &str) -> Result<Vec<FileEntry>, Error> {
        block_on(self.0.files().list(path))
    }

    /// Removes a file in the guest, as [`Files::remove`](crate::Files::remove) does.
    ///
    /// # Errors
    ///
    /// As [`Files::remove`](crate::Files::remove).
    pub fn remove_file(&mut self, path: &str) -> Result<bool, Error> {
        block_on(self.0.files().remove(path))
    }

    /// Lists the changes in an overlay, as [`Files::changes`](crate::Files::changes) does.
    ///
    /// # Errors
    ///
    /// As [`Files::changes`](crate::Files::changes).
    pub fn changes(&mut self, mount: &str) -> Result<Vec<FileChange>, Error> {
        self.0.files().changes(mount)
    }

    /// Writes the changes in an overlay to the host, as [`Files::export`](crate::Files::export)
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Files::export`](crate::Files::export).
    pub fn export(&mut self, mount: &str, directory: impl AsRef<Path>) -> Result<u64, Error> {
        self.0.files().export(mount, directory)
    }

    /// Opens a directory to export to, as [`Files::open_export`](crate::Files::open_export) does.
    ///
    /// # Errors
    ///
    /// As [`Files::export`](crate::Files::export).
    pub fn open_export(
        &mut self,
        mount: &str,
        directory: impl AsRef<Path>,
    ) -> Result<ExportDirectory, Error> {
        self.0.files().open_export(mount, directory)
    }

    /// Writes the changes in an overlay to a directory that was opened before, as
    /// [`Files::export_to`](crate::Files::export_to) does.
    ///
    /// # Errors
    ///
    /// As [`Files::export`](crate::Files::export).
    pub fn export_to(&mut self, mount: &str, directory: &ExportDirectory) -> Result<u64, Error> {
        self.0.files().export_to(mount, directory)
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

    /// Returns a handle with which others can use the session.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        self.0.handle()
    }

    /// Returns `true` if `code` is incomplete, as
    /// [`Session::is_incomplete`](crate::Session::is_incomplete) does.
    ///
    /// # Errors
    ///
    /// As [`Session::is_incomplete`](crate::Session::is_incomplete).
    pub fn is_incomplete(&mut self, code: impl Into<String>) -> Result<bool, Error> {
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
