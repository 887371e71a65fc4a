//! OpenEnv's `PythonExecutor`, the REPL of its recursive language models: the same methods, results
//! and helpers.
//!
//! ```no_run
//! use isolet::profile::python_executor::{ExecutorOptions, PythonExecutor};
//!
//! # async fn example(engine: &isolet::Engine) -> Result<(), isolet::Error> {
//! let mut executor = PythonExecutor::new(engine, ExecutorOptions::default()).await?;
//! executor.set_context("a long document").await?;
//! let result = executor.execute("FINAL(len(context.split()))").await?;
//! assert_eq!(executor.final_answer(&result).await?.as_deref(), Some("3"));
//! # Ok(()) }
//! ```

mod mark;
mod result;
mod shown;

use std::collections::{BTreeSet, HashSet};

pub use mark::Mark;
pub use result::ExecutionResult;

use crate::api::engine::Engine;
use crate::api::sandbox::Sandbox;
use crate::api::session::{InterruptHandle, Session, SessionState};
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::limits::Limits;
use crate::data::value::Value;
use crate::host::tools::Tool;

/// The modules that OpenEnv's executor allows by default, for [`ExecutorOptions::allowed_imports`].
pub const DEFAULT_ALLOWED_IMPORTS: [&str; 28] = [
    "re",
    "json",
    "math",
    "random",
    "collections",
    "itertools",
    "functools",
    "operator",
    "string",
    "textwrap",
    "difflib",
    "statistics",
    "decimal",
    "fractions",
    "datetime",
    "copy",
    "pprint",
    "typing",
    "dataclasses",
    "enum",
    "bisect",
    "heapq",
    "array",
    "struct",
    "base64",
    "hashlib",
    "hmac",
    "uuid",
];

/// The source of the helpers, for sessions that are no [`PythonExecutor`]'s.
pub const PRELUDE: &str = include_str!("prelude.py");

/// The file name of [`PRELUDE`]. Tracebacks omit frames whose file name begins with `<isolet>`.
pub const PRELUDE_NAME: &str = "<isolet>/python_executor";

/// The variable that passes arguments from the host to the helpers, which unbind it.
pub const ARGUMENT: &str = "_isolet_argument";

/// The code whose value is the answer in the variable that [`ARGUMENT`] names, or in `answer`, once
/// [`PRELUDE`] has run.
pub const FINAL_ANSWER: &str = "_isolet_final_answer()";

/// Options of an executor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// The maximum length of a result's standard output and standard error, in characters (Unicode
    /// scalar values) each. A longer text is truncated and ends in a line with its original length.
    ///
    /// Default: [`DEFAULT_MAX_OUTPUT_LENGTH`](Self::DEFAULT_MAX_OUTPUT_LENGTH).
    pub max_output_length: usize,
    /// The modules that the code may import, with their submodules, such as
    /// [`DEFAULT_ALLOWED_IMPORTS`]. Any other import raises `ImportError`; an empty list allows
    /// none. Imports by these modules themselves are not checked.
    ///
    /// This keeps a model to its instructions but is not a security boundary. Code can bypass it,
    /// but gains nothing: the sandbox decides what a session may do.
    ///
    /// Default: `None`, which allows every module.
    pub allowed_imports: Option<Vec<String>>,
    /// Limits of each execution. They apply before the output is truncated to
    /// [`max_output_length`](Self::max_output_length).
    pub limits: Limits,
}

impl ExecutorOptions {
    /// The default of [`max_output_length`](Self::max_output_length), in characters.
    pub const DEFAULT_MAX_OUTPUT_LENGTH: usize = 8192;
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self {
            max_output_length: Self::DEFAULT_MAX_OUTPUT_LENGTH,
            allowed_imports: None,
            limits: Limits::default(),
        }
    }
}

/// A Python session as OpenEnv's REPL environment uses it: it takes host variables and tools, runs
/// code, and returns text.
///
/// The code can use these helpers:
///
/// * `FINAL(value)` and `FINAL_VAR(name)` return the text that marks an answer, see
///   [`final_answer`](Self::final_answer);
/// * `SHOW_VARS()` returns the sorted names of the variables, without modules, helpers and tools;
/// * `format_exc` is `traceback.format_exc`;
/// * `safe_json_dumps(obj)` is `json.dumps`, with the `repr` of objects that JSON cannot represent.
///
/// An execution that a limit ends closes the session. After that every method except
/// [`reset`](Self::reset) fails with [`Closed`](crate::ErrorKind::Closed).
#[derive(Debug)]
pub struct PythonExecutor {
    session: Session,
    options: ExecutorOptions,
    /// All public names that were bound so far.
    known: HashSet<String>,
    /// The names that the host has bound.
    given: BTreeSet<String>,
}

impl PythonExecutor {
    /// Starts a session and defines the helpers in it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the limits are invalid,
    /// [`ErrorKind::Start`](crate::ErrorKind::Start) if the session cannot start.
    pub async fn new(engine: &Engine, options: ExecutorOptions) -> Result<Self, Error> {
        let sandbox = Sandbox::builder(engine).limits(options.limits.clone()).build()?;
        let session = sandbox.session().await?;
        let (known, given) = (HashSet::new(), BTreeSet::new());
        let mut executor = Self { session, options, known, given };
        executor.register_helpers().await?;
        Ok(executor)
    }

    async fn register_helpers(&mut self) -> Result<(), Error> {
        if let Some(allowed) = self.options.allowed_imports.clone() {
            self.session.set(ARGUMENT, allowed).await?;
        }
        let execution = self.session.run(Cell::new(PRELUDE).name(PRELUDE_NAME)).await?;
        self.known = execution.locals().iter().map(|local| local.name.clone()).collect();
        execution.into_result().map(drop)
    }

    /// Binds the variable `context`.
    ///
    /// # Errors
    ///
    /// As [`Session::set`](crate::Session::set).
    pub async fn set_context(&mut self, text: impl Into<String>) -> Result<(), Error> {
        self.set_context_as(text, "context").await
    }

    /// Binds the variable `name` to a context.
    ///
    /// # Errors
    ///
    /// As [`Session::set`](crate::Session::set).
    pub async fn set_context_as(
        &mut self,
        text: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<(), Error> {
        self.set_variable(name, text.into()).await
    }

    /// Binds a variable.
    ///
    /// # Errors
    ///
    /// As [`Session::set`](crate::Session::set).
    pub async fn set_variable(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), Error> {
        let name = name.into();
        self.session.set(name.as_str(), value).await?;
        self.give(name);
        Ok(())
    }

    /// Returns the value of a variable; `None` if it is not bound.
    ///
    /// # Errors
    ///
    /// As [`Session::get`](crate::Session::get), which also fails for values that cannot cross.
    pub async fn get_variable(&self, name: &str) -> Result<Option<Value>, Error> {
        self.session.get(name).await
    }

    /// Lists the names of all public variables, and of all variables and functions that the host
    /// has bound, including the helpers. Sorted.
    ///
    /// Modules are omitted. A name that the host has bound stays in the list even if the code
    /// deletes it.
    ///
    /// # Errors
    ///
    /// As [`Session::variables`](crate::Session::variables).
    pub async fn list_variables(&self) -> Result<Vec<String>, Error> {
        let variables = self.session.variables().await?;
        let mut names: BTreeSet<String> = variables.into_iter().map(|one| one.name).collect();
        names.extend(self.given.iter().cloned());
        Ok(names.into_iter().collect())
    }

    /// Registers a tool that the code can call. A tool of the same name is replaced.
    ///
    /// # Errors
    ///
    /// As [`Session::register`](crate::Session::register).
    pub async fn inject_function(&mut self, tool: Tool) -> Result<(), Error> {
        let name = tool.spec().name().to_owned();
        self.session.register(tool).await?;
        self.give(name);
        Ok(())
    }

    fn give(&mut self, name: String) {
        self.known.insert(name.clone());
        self.given.insert(name);
    }

    /// Runs code. State stays in the session.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run). Failures of the code itself are part of the
    /// result.
    pub async fn execute(&mut self, code: impl Into<String>) -> Result<ExecutionResult, Error> {
        let execution = self.session.run(code.into()).await?;
        let limit = self.options.max_output_length;
        let result = ExecutionResult::new(&execution, limit, &self.known);
        self.known.extend(execution.locals().iter().map(|local| local.name.clone()));
        Ok(result)
    }

    /// Returns the final answer, if the code has given one. As in OpenEnv, the candidates are, in
    /// this order:
    ///
    /// 1. `FINAL(...)` in the output, up to the parenthesis that closes the first one, without
    ///    surrounding white space. A `FINAL(` that is not closed does not count.
    /// 2. `FINAL_VAR(name)` in the output: `str()` of that variable, unless it is `None`.
    /// 3. The variable `answer`, if it is a dict whose `ready` is true: `str()` of its `content`.
    ///
    /// Unlike OpenEnv, this searches the whole output, not only the part within
    /// [`ExecutorOptions::max_output_length`]. The answer of a last expression `FINAL(text)` is the
    /// text itself, without JSON escapes.
    ///
    /// If the session has ended, only the first candidate is found.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Raised`](crate::ErrorKind::Raised) if `str()` raises,
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) if its result cannot cross, otherwise as
    /// [`Session::run`](crate::Session::run).
    pub async fn final_answer(
        &mut self,
        result: &ExecutionResult,
    ) -> Result<Option<String>, Error> {
        let name = match &result.mark {
            Some(Mark::Answer(answer)) => return Ok(Some(answer.clone())),
            Some(Mark::Variable(name)) => Value::from(name),
            None => Value::None,
        };
        if self.session.state() != SessionState::Ready {
            return Ok(None);
        }
        self.session.set(ARGUMENT, name).await?;
        let answer = self.session.run(FINAL_ANSWER).await?.into_result()?;
        Ok(answer.as_str().map(str::to_owned))
    }

    /// Starts a fresh session: all variables and tools are gone, and the helpers are defined again.
    /// Also works after a limit has closed the session.
    ///
    /// # Errors
    ///
    /// As [`Session::reset`](crate::Session::reset).
    pub async fn reset(&mut self) -> Result<(), Error> {
        self.session.reset().await?;
        self.given.clear();
        self.register_helpers().await
    }

    /// Returns a handle that interrupts executions from any thread, until the next
    /// [`reset`](Self::reset).
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.session.interrupt_handle()
    }
}
