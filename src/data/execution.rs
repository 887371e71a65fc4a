//! What became of a run: its outcome, its output and what it used.

use std::fmt;
use std::time::Duration;

use crate::data::error::{Error, ErrorKind};
use crate::data::output::Captured;
use crate::data::value::Value;

/// The result of one run, whatever its outcome.
#[derive(Clone, Debug)]
pub struct Execution {
    pub(crate) outcome: Outcome,
    pub(crate) system_exit: Option<PyException>,
    pub(crate) repr: Option<String>,
    pub(crate) value_error: Option<String>,
    /// Whether the value has only types that Python's `json.dumps` takes, by the guest's word.
    pub(crate) is_json: bool,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) locals: Vec<Variable>,
    pub(crate) usage: Usage,
    pub(crate) session_alive: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It ran to its end. `None`: the cell does not end in an expression, or the expression's value
    /// cannot cross ([`Execution::value_error`]); `Some(Value::None)`: the value is Python's
    /// `None`.
    Completed(Option<Value>),
    /// It handed its result over with `SUBMIT`: a dict of the fields, see
    /// [`SandboxBuilder::submit`](crate::SandboxBuilder::submit).
    Submitted(Value),
    /// An exception left the cell.
    Raised(PyException),
    /// `SystemExit` left the cell, with this status; or the guest ended its interpreter by
    /// `os._exit`, and the session with it.
    Exited(i32),
    /// The host ended it.
    Terminated(Termination),
}

/// Why the host ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Termination {
    /// It took longer than [`Limits::max_run_time`](crate::Limits::max_run_time). The session lives
    /// on if the guest ended within the [grace](crate::Limits::max_grace).
    Deadline {
        /// The limit.
        limit: Duration,
        /// The time from the call to the verdict.
        observed: Duration,
    },
    /// It had more of something than its limits allow. The session lives on if the guest ended
    /// within the [grace](crate::Limits::max_grace).
    Limit {
        /// What it had too many of.
        kind: LimitKind,
        /// The limit.
        limit: u64,
        /// How many it had.
        observed: u64,
    },
    /// Its JavaScript outgrew the part of
    /// [`Limits::max_memory_bytes`](crate::Limits::max_memory_bytes) that V8's heap has. The
    /// session is closed.
    Memory {
        /// The limit of that heap, in bytes.
        limit: u64,
        /// The size of the heap when the guest was stopped, in bytes. It is the limit if the guest
        /// was stopped before the heap could grow.
        observed: u64,
    },
    /// It was interrupted, see [`Session::interrupt_handle`](crate::Session::interrupt_handle). The
    /// session lives on.
    Interrupted,
    /// The interpreter died under the guest, by `os.abort()` or a wild write of its own for
    /// example. The session is lost.
    Died {
        /// What is known of the cause.
        reason: String,
    },
}

/// What a run can have too many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Calls of host functions that were allowed, see
    /// [`Limits::max_tool_calls`](crate::Limits::max_tool_calls).
    ToolCalls,
    /// Requests that were refused, see [`Limits::max_refusals`](crate::Limits::max_refusals).
    Refusals,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToolCalls => "calls of host functions",
            Self::Refusals => "refused requests",
        })
    }
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline { limit, observed } => write!(
                f,
                "the run was terminated after {:.3} s, the limit is {} s (`Limits::max_run_time`)",
                observed.as_secs_f64(),
                limit.as_secs_f64()
            ),
            Self::Limit { kind, limit, observed } => {
                let call = match kind {
                    LimitKind::ToolCalls => "max_tool_calls",
                    LimitKind::Refusals => "max_refusals",
                };
                write!(
                    f,
                    "the run was terminated at {observed} {kind}, the limit is {limit} \
                     (`Limits::{call}`)"
                )
            }
            Self::Memory { limit, observed } => write!(
                f,
                "the run was terminated with {observed} bytes of JavaScript's heap in use, the \
                 limit is {limit} bytes, a part of `Limits::max_memory_bytes`; the session is \
                 closed"
            ),
            Self::Interrupted => f.write_str("the run was interrupted"),
            Self::Died { reason } => write!(f, "the interpreter died: {reason}"),
        }
    }
}

/// A Python exception as the guest described it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PyException {
    /// The name of its class, such as `ZeroDivisionError`.
    pub type_name: String,
    /// `str()` of it.
    pub message: String,
    /// Its `args` as a JSON array, if they are JSON.
    pub args_json: Option<String>,
    /// The traceback as python prints it, with the guest's frames only.
    pub traceback: String,
    /// The exception it was raised from or while handling.
    pub cause: Option<Box<Self>>,
}

impl fmt::Display for PyException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            f.write_str(&self.type_name)
        } else {
            write!(f, "{}: {}", self.type_name, self.message)
        }
    }
}

/// A name of the guest's namespace and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The name of the value's class.
    pub type_name: String,
    /// The value's `len()`, if it is a `str`, `bytes`, `list`, `dict` or another of the built-in
    /// types that have one.
    pub size: Option<u64>,
    /// The value's `repr`, cut after 500 characters.
    pub repr: String,
}

/// What a run used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Wall-clock time from the call to the verdict.
    pub wall_time: Duration,
    /// The most memory that the session has had so far, in bytes, as
    /// [`Limits::max_memory_bytes`](crate::Limits::max_memory_bytes) counts it. Zero if the run
    /// ended the session.
    pub peak_memory_bytes: u64,
    /// Bytes written to standard output, kept or not.
    pub stdout_bytes: u64,
    /// Bytes written to standard error, kept or not.
    pub stderr_bytes: u64,
    /// Calls of host functions, those that were refused aside.
    pub tool_calls: u64,
}

/// How much output was dropped, in bytes per stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Truncation {
    /// Bytes of standard output that were dropped.
    pub stdout_bytes: u64,
    /// Bytes of standard error that were dropped.
    pub stderr_bytes: u64,
}

impl Truncation {
    /// Returns whether anything was dropped.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.stdout_bytes > 0 || self.stderr_bytes > 0
    }
}

impl Execution {
    /// Returns how the run ended.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns the value of the cell's last expression, if the run completed and it has one, or
    /// what it submitted.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match &self.outcome {
            Outcome::Completed(value) => value.as_ref(),
            Outcome::Submitted(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the exception that ended the run.
    #[must_use]
    pub fn exception(&self) -> Option<&PyException> {
        match &self.outcome {
            Outcome::Raised(exception) => Some(exception),
            _ => None,
        }
    }

    /// Returns the `SystemExit` that ended the run, if the outcome is
    /// [`Exited`](Outcome::Exited) by one: it says what `sys.exit` was called with.
    #[must_use]
    pub fn system_exit(&self) -> Option<&PyException> {
        self.system_exit.as_ref()
    }

    /// Returns the `repr` of the last expression's value, cut after
    /// [`Limits::REPR_CHARS`](crate::Limits::REPR_CHARS) characters; also when the value itself
    /// cannot cross.
    #[must_use]
    pub fn repr(&self) -> Option<&str> {
        self.repr.as_deref()
    }

    /// Returns why the last expression's value did not cross, if it did not.
    #[must_use]
    pub fn value_error(&self) -> Option<&str> {
        self.value_error.as_deref()
    }

    /// Returns the standard output, kept on every outcome. Bytes that are no UTF-8 show as `�`.
    #[must_use]
    pub fn stdout(&self) -> &str {
        self.stdout.text()
    }

    /// Returns the standard error, kept on every outcome. Bytes that are no UTF-8 show as `�`.
    #[must_use]
    pub fn stderr(&self) -> &str {
        self.stderr.text()
    }

    /// Returns how much output was dropped.
    #[must_use]
    pub fn truncated(&self) -> Truncation {
        Truncation { stdout_bytes: self.stdout.dropped(), stderr_bytes: self.stderr.dropped() }
    }

    /// Returns the names that the run bound or rebound, private names and modules aside.
    ///
    /// Empty if the run was terminated.
    #[must_use]
    pub fn locals(&self) -> &[Variable] {
        &self.locals
    }

    /// Returns what the run used.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns whether the session can run more code.
    #[must_use]
    pub fn session_alive(&self) -> bool {
        self.session_alive
    }

    /// Returns the value, with every other outcome as an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Raised`] for an exception or an exit with a status other than 0, with the
    /// exception in [`Error::exception`],
    /// [`ErrorKind::Limit`] for a terminated run, [`ErrorKind::WorkerDied`] if the interpreter
    /// died, [`ErrorKind::Value`] for a value that cannot cross.
    pub fn into_result(self) -> Result<Value, Error> {
        let alive = self.session_alive;
        let error = match self.outcome {
            Outcome::Completed(Some(value)) | Outcome::Submitted(value) => return Ok(value),
            Outcome::Completed(None) | Outcome::Exited(0) => match self.value_error {
                None => return Ok(Value::None),
                Some(reason) => Error::new(ErrorKind::Value, reason),
            },
            Outcome::Raised(exception) => {
                Error::new(ErrorKind::Raised, exception.to_string()).with_exception(exception)
            }
            Outcome::Exited(status) => {
                let message = format!("the guest exited with status {status}");
                let error = Error::new(ErrorKind::Raised, message);
                match self.system_exit {
                    Some(exit) => error.with_exception(exit),
                    None => error,
                }
            }
            Outcome::Terminated(termination) => {
                let kind = match termination {
                    Termination::Died { .. } => ErrorKind::WorkerDied,
                    _ => ErrorKind::Limit,
                };
                Error::new(kind, termination.to_string())
            }
        };
        Err(if alive { error.with_session_alive() } else { error })
    }
}
