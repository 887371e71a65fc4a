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

use mark::Mark;
pub use result::ExecutionResult;

use crate::api::engine::Engine;
use crate::api::sandbox::Sandbox;
use crate::api::session::{InterruptHandle, Session, SessionState};
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::limits::Limits;
use crate::data::value::Value;
use crate::host::tools::Tool;

/// The modules that OpenEnv's executor allows to be imported unless it is told otherwise, for
/// [`ExecutorOptions::allowed_imports`].
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

/// The helpers' source. Tracebacks leave out what has such a name.
const PRELUDE: &str = include_str!("prelude.py");
const PRELUDE_NAME: &str = "<isolet>/python_executor";

/// What the helpers take from the host; they unbind it.
const ARGUMENT: &str = "_isolet_argument";
const FINAL_ANSWER: &str = "_isolet_final_answer()";

/// How an executor differs from the default one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// Longest standard output and standard error of a result, in characters (Unicode scalar
    /// values). A longer one is cut and ends in a line that says how long it was.
    ///
    /// By default this is [`DEFAULT_MAX_OUTPUT_LENGTH`](Self::DEFAULT_MAX_OUTPUT_LENGTH).
    pub max_output_length: usize,
    /// The modules that the code may import, with their submodules, such as
    /// [`DEFAULT_ALLOWED_IMPORTS`]. Another one raises `ImportError`, and an empty list allows
    /// none. What those modules import themselves is not looked at.
    ///
    /// This is a convenience that keeps a model to what it was told, and no boundary: code that
    /// wants to can get around it, and gains nothing by it. What a session may do is up to its
    /// sandbox.
    ///
    /// By default this is `None`: everything there is can be imported.
    pub allowed_imports: Option<Vec<String>>,
    /// Limits of each execution. The output is cut to
    /// [`max_output_length`](Self::max_output_length) after these have been applied to it.
    pub limits: Limits,
}

impl ExecutorOptions {
    /// Default of [`max_output_length`](Self::max_output_length), in characters.
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

/// A Python session as OpenEnv's REPL environment uses it: variables and functions of the host go
/// in, code runs, text comes out.
///
/// The code has these helpers:
///
/// * `FINAL(value)` and `FINAL_VAR(name)` return the text that marks an answer, see
///   [`final_answer`](Self::final_answer);
/// * `SHOW_VARS()` returns the sorted names of the variables, without modules, the helpers and host
///   functions;
/// * `format_exc` is `traceback.format_exc`;
/// * `safe_json_dumps(obj)` is `json.dumps` with the `repr` of whatever JSON does not know.
///
/// An execution that a limit ends closes the session: every method but [`reset`](Self::reset) is an
/// error of the kind [`Closed`](crate::ErrorKind::Closed) then.
#[derive(Debug)]
pub struct PythonExecutor {
    session: Session,
    options: ExecutorOptions,
    /// Every public name that was bound so far.
    known: HashSet<String>,
    /// The names that the host bound.
    given: BTreeSet<String>,
}

impl PythonExecutor {
    /// Starts a session and puts the helpers into it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the limits are refused,
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

    /// Returns the value of a variable; `None` if there is none of that name.
    ///
    /// # Errors
    ///
    /// As [`Session::get`](crate::Session::get), for values that cannot cross among others.
    pub async fn get_variable(&self, name: &str) -> Result<Option<Value>, Error> {
        self.session.get(name).await
    }

    /// Lists the names of the variables that are not private, and the names of all variables and
    /// functions that the host has bound, the helpers among them. They are sorted.
    ///
    /// Modules are no variables. A name that the host has bound stays, also when the code deletes
    /// it.
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

    /// Allows the code a function of the host. One of the same name is replaced.
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
    /// As [`Session::run`](crate::Session::run): what the code does wrong is in the result.
    pub async fn execute(&mut self, code: impl Into<String>) -> Result<ExecutionResult, Error> {
        let execution = self.session.run(code.into()).await?;
        let limit = self.options.max_output_length;
        let result = ExecutionResult::new(&execution, limit, &self.known);
        self.known.extend(execution.locals().iter().map(|local| local.name.clone()));
        Ok(result)
    }

    /// Returns the final answer, if the code has given one. As in OpenEnv these are, in this order:
    ///
    /// 1. `FINAL(...)` in the output, up to the parenthesis that closes the first one, without the
    ///    white space around it; one that none closes does not count;
    /// 2. `FINAL_VAR(name)` in the output: `str()` of that variable, unless it is `None`;
    /// 3. the variable `answer`, a dict whose `ready` is true: `str()` of its `content`.
    ///
    /// Other than there, the whole output counts, not only the part of it that
    /// [`ExecutorOptions::max_output_length`] leaves, and the answer of a last expression
    /// `FINAL(text)` is the text itself, without JSON's escapes.
    ///
    /// If the session has ended, only the first one can be found.
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

    /// Starts over in a fresh session: no variable and no function of the host is left, the helpers
    /// are there. It works after a limit has closed the session, too.
    ///
    /// # Errors
    ///
    /// As [`Session::reset`](crate::Session::reset).
    pub async fn reset(&mut self) -> Result<(), Error> {
        self.session.reset().await?;
        self.given.clear();
        self.register_helpers().await
    }

    /// Returns a handle that interrupts executions from elsewhere, until the next
    /// [`reset`](Self::reset).
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.session.interrupt_handle()
    }
}
