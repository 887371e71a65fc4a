//! DSPy's `PythonInterpreter`, natively: the same options, results and errors.
//!
//! ```no_run
//! use isolet::profile::python_interpreter::{InterpreterOptions, Output, PythonInterpreter};
//!
//! # async fn example(engine: &isolet::Engine) -> Result<(), Box<dyn std::error::Error>> {
//! let mut interpreter = PythonInterpreter::new(engine, InterpreterOptions::default());
//! let output = interpreter.execute("print(x + 2)", [("x", 40.into())]).await?;
//! assert_eq!(output, Output::Stdout("42\n".to_owned()));
//! # Ok(()) }
//! ```

use std::fmt;
use std::path::PathBuf;

use crate::api::copied_files::CopiedFiles;
use crate::api::engine::Engine;
use crate::api::permissions::Permissions;
use crate::api::sandbox::Sandbox;
use crate::api::session::{Session, SessionState};
use crate::data::cell::{Cell, Syntax};
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Outcome, PyException};
use crate::data::limits::Limits;
use crate::data::tool::Param;
use crate::data::value::Value;
use crate::host::tools::Tool;

/// Options of an interpreter: what it may access and call. Everything is denied by default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InterpreterOptions {
    /// Host files that are copied to `/sandbox/NAME`.
    pub enable_read_paths: Vec<PathBuf>,
    /// Host files that are copied to `/sandbox/NAME` and written back if they change. A missing
    /// file is created.
    pub enable_write_paths: Vec<PathBuf>,
    /// Environment variables of the host that the code may see.
    pub enable_env_vars: Vec<String>,
    /// Hosts that the code may connect to, as rules of [`Permissions::allow_net`].
    pub enable_network_access: Vec<String>,
    /// Whether `write` files are written back after each execution that the session survives.
    /// Default: `true`.
    pub sync_files: bool,
    /// Tools that the code may call.
    pub tools: Vec<Tool>,
    /// The fields of `SUBMIT`. Default: one field, `output`.
    pub output_fields: Vec<Param>,
    /// Limits of each execution.
    pub limits: Limits,
}

impl Default for InterpreterOptions {
    fn default() -> Self {
        Self {
            enable_read_paths: Vec::new(),
            enable_write_paths: Vec::new(),
            enable_env_vars: Vec::new(),
            enable_network_access: Vec::new(),
            sync_files: true,
            tools: Vec::new(),
            output_fields: vec![Param::new("output")],
            limits: Limits::default(),
        }
    }
}

impl InterpreterOptions {
    fn permissions(&self) -> Result<Permissions, Error> {
        let mut permissions = Permissions::none();
        for rule in &self.enable_network_access {
            permissions = permissions.allow_net(rule)?;
        }
        for name in &self.enable_env_vars {
            permissions = permissions.allow_env(name)?;
        }
        Ok(permissions)
    }
}

/// The result of an execution.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// The value of the last expression. Printed output is discarded.
    Value(Value),
    /// The printed output: there is no last expression, or its value is `None`.
    Stdout(String),
    /// The fields that the code submitted: DSPy's `FinalOutput`.
    Final(Value),
}

/// Why an execution has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum InterpreterError {
    /// The code raised: DSPy's `CodeExecutionError`, or its `SyntaxError` if the code raised
    /// `SyntaxError`. The session stays usable.
    Execution(PyException),
    /// The session ended or never started: DSPy's `CodeInterpreterError`.
    Interpreter(Error),
}

impl InterpreterError {
    /// Returns the Python exception that the error was made from, if any.
    #[must_use]
    pub fn exception(&self) -> Option<&PyException> {
        match self {
            Self::Execution(exception) => Some(exception),
            Self::Interpreter(error) => error.exception(),
        }
    }
}

impl fmt::Display for InterpreterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution(exception) if exception.type_name == "SyntaxError" => {
                write!(f, "Invalid Python syntax. message: {}", exception.traceback.trim())
            }
            Self::Execution(exception) => {
                let details = match exception.args_json.as_deref() {
                    Some("[]") => exception.traceback.trim(),
                    Some(args) => args,
                    None => &exception.message,
                };
                write!(f, "{}: {details}", exception.type_name)
            }
            Self::Interpreter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InterpreterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Execution(_) => None,
            // Its message is this error's message already.
            Self::Interpreter(error) => error.source(),
        }
    }
}

impl From<Error> for InterpreterError {
    fn from(error: Error) -> Self {
        Self::Interpreter(error)
    }
}

/// A Python session as DSPy's modules use it: state persists between executions, until
/// [`shutdown`](Self::shutdown) or an error of the session.
///
/// Unlike in DSPy, an execution ends at [`Limits::max_run_time`] or [`Limits::max_host_time`], and
/// no value, exception or output of the code can end the session. After such a limit the session
/// goes on if the code ends within [`Limits::max_grace`].
#[derive(Debug)]
pub struct PythonInterpreter {
    engine: Engine,
    options: InterpreterOptions,
    session: Option<Session>,
    files: CopiedFiles,
    ended: bool,
}

impl PythonInterpreter {
    /// Makes an interpreter. Starts nothing yet.
    #[must_use]
    pub fn new(engine: &Engine, options: InterpreterOptions) -> Self {
        let files = CopiedFiles::default();
        Self { engine: engine.clone(), options, session: None, files, ended: false }
    }

    /// Starts the session, unless it has been started. The first [`execute`](Self::execute) does
    /// the same.
    ///
    /// # Errors
    ///
    /// [`InterpreterError::Interpreter`] if the session cannot start or has already ended.
    pub async fn start(&mut self) -> Result<(), InterpreterError> {
        self.started().await.map(drop)
    }

    /// Binds `variables`, then runs `code`.
    ///
    /// # Errors
    ///
    /// [`InterpreterError::Execution`] if the code raises; the session stays usable.
    /// [`InterpreterError::Interpreter`] if a variable cannot be bound, after which the session
    /// also stays usable, or if the session has ended.
    pub async fn execute<N: Into<String>>(
        &mut self,
        code: &str,
        variables: impl IntoIterator<Item = (N, Value)>,
    ) -> Result<Output, InterpreterError> {
        self.started().await?;
        let session = self.session.as_mut().ok_or_else(missing)?;
        // Pyodide, which DSPy runs code in, reads it so.
        let cell = Cell::new(code).syntax(Syntax::Command).inputs(variables);
        let execution = session.run(cell).await?;
        if session.state() != SessionState::Ready {
            self.ended = true;
        } else if self.options.sync_files {
            self.files.copy_out(session).await?;
        }
        output(&execution, is_quiet(code))
    }

    /// Writes a file in the guest, as [`Files::put`](crate::Files::put) does.
    ///
    /// # Errors
    ///
    /// [`InterpreterError::Interpreter`] if the file cannot be written; the session stays usable.
    pub async fn put_file(
        &mut self,
        path: &str,
        contents: impl Into<Vec<u8>>,
    ) -> Result<(), InterpreterError> {
        Ok(self.started().await?.files().put(path, contents).await?)
    }

    /// Reads a file in the guest, as [`Files::get`](crate::Files::get) does.
    ///
    /// # Errors
    ///
    /// [`InterpreterError::Interpreter`] if the file cannot be read; the session stays usable.
    pub async fn get_file(&mut self, path: &str) -> Result<Option<Vec<u8>>, InterpreterError> {
        Ok(self.started().await?.files().get(path).await?)
    }

    /// Registers these tools, in addition to the existing ones or in place of those with the same
    /// name. Sets the fields of `SUBMIT`; an empty list leaves them unchanged.
    ///
    /// # Errors
    ///
    /// [`InterpreterError::Interpreter`] if Python could not define one of them; the session stays
    /// usable.
    pub async fn register(
        &mut self,
        tools: Vec<Tool>,
        output_fields: Vec<Param>,
    ) -> Result<(), InterpreterError> {
        let session = self.started().await?;
        for tool in tools {
            session.register(tool).await?;
        }
        if !output_fields.is_empty() {
            session.set_submit(output_fields).await?;
        }
        Ok(())
    }

    /// Ends the session permanently.
    pub fn shutdown(&mut self) {
        self.session = None;
        self.ended = true;
    }

    /// Returns `true` if the session has ended, so that nothing more can be executed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    async fn started(&mut self) -> Result<&mut Session, InterpreterError> {
        if self.ended {
            return Err(InterpreterError::Interpreter(Error::new(
                ErrorKind::Closed,
                "the interpreter's session has ended, create a new interpreter for a fresh one",
            )));
        }
        if self.session.is_none() {
            let InterpreterOptions { tools, output_fields, limits, .. } = &self.options;
            let mut builder = Sandbox::builder(&self.engine)
                .limits(limits.clone())
                .permissions(self.options.permissions()?)
                .submit(output_fields.iter().cloned());
            for tool in tools {
                builder = builder.tool(tool.clone());
            }
            let mut session = builder.build()?.session().await?;
            let InterpreterOptions { enable_read_paths, enable_write_paths, .. } = &self.options;
            self.files = CopiedFiles::new(enable_read_paths.clone(), enable_write_paths.clone())?;
            self.files.copy_in(&mut session).await?;
            self.session = Some(session);
        }
        Ok(self.session.as_mut().ok_or_else(missing)?)
    }
}

fn missing() -> Error {
    Error::new(ErrorKind::Closed, "the session is gone")
}

fn output(execution: &Execution, quiet: bool) -> Result<Output, InterpreterError> {
    let alive = execution.session_alive();
    match execution.outcome() {
        Outcome::Submitted(fields) => Ok(Output::Final(fields.clone())),
        Outcome::Completed(_) if quiet => Ok(Output::Stdout(execution.stdout().to_owned())),
        Outcome::Completed(Some(value)) if !value.is_none() => Ok(Output::Value(value.clone())),
        // A value that cannot cross is shown as its `repr`.
        Outcome::Completed(_) if execution.value_error().is_some() => {
            Ok(Output::Value(execution.repr().unwrap_or_default().into()))
        }
        Outcome::Completed(_) => Ok(Output::Stdout(execution.stdout().to_owned())),
        Outcome::Raised(exception) => Err(InterpreterError::Execution(exception.clone())),
        Outcome::Exited(status) => Err(match execution.system_exit() {
            Some(exit) => InterpreterError::Execution(exit.clone()),
            None => InterpreterError::Interpreter(Error::new(
                ErrorKind::Raised,
                format!("the code ended its interpreter with status {status}"),
            )),
        }),
        Outcome::Terminated(termination) if alive => {
            Err(InterpreterError::Execution(PyException {
                type_name: "KeyboardInterrupt".to_owned(),
                message: termination.to_string(),
                args_json: Some("[]".to_owned()),
                traceback: format!("KeyboardInterrupt: {termination}\n"),
                cause: None,
            }))
        }
        Outcome::Terminated(termination) => {
            Err(InterpreterError::Interpreter(termination.to_error()))
        }
    }
}

/// Returns `true` if the last statement ends in a semicolon. DSPy then takes no value, as in a
/// notebook.
fn is_quiet(code: &str) -> bool {
    let last = code.trim_end().lines().next_back().unwrap_or_default();
    last.ends_with(';') && !last.contains('#')
}
