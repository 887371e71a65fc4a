//! The result of a run: its outcome, its output and the resources that it used.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::data::display::Display;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution_form::seconds;
use crate::data::output::Captured;
use crate::data::value::Value;
use crate::data::written_file::WrittenFile;

/// The result of one run, whatever its outcome.
///
/// Serialises as the HTTP API and `isolet serve --stdio` answer, `docs/reference/protocol.md`:
/// times in seconds, bytes in values and displays as `{"$bytes": "BASE64"}` in JSON, and without
/// empty fields.
///
/// ```no_run
/// # async fn example(session: &mut isolet::Session) -> Result<(), Box<dyn std::error::Error>> {
/// let execution = session.run("print('hi'); 6 * 7").await?;
/// let json = serde_json::to_value(&execution)?;
/// assert_eq!((json["status"].as_str(), json["value"].as_i64()), (Some("completed"), Some(42)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Execution {
    pub(crate) outcome: Outcome,
    pub(crate) system_exit: Option<PyException>,
    pub(crate) repr: Option<String>,
    pub(crate) value_error: Option<String>,
    /// Set if the guest reports that the value has only types that Python's `json.dumps` accepts.
    pub(crate) is_json: bool,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) displays: Vec<Display>,
    pub(crate) dropped_displays: u64,
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) dropped_files: u64,
    pub(crate) locals: Vec<Variable>,
    pub(crate) usage: Usage,
    pub(crate) session_alive: bool,
    pub(crate) restored: Option<Restored>,
}

/// How a session goes on after a run that ended its interpreter.
///
/// See [`SandboxBuilder::checkpoint`](crate::SandboxBuilder::checkpoint).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Restored {
    /// How many runs the session has lost: the one that ended the interpreter, and those before it
    /// whose state was not kept yet. What the owner bound, wrote or loaded meanwhile is lost too.
    pub lost_runs: u64,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost_runs {
            ..=1 => f.write_str(
                "the session goes on as it was before this run: what the run changed is lost",
            ),
            runs => write!(
                f,
                "the session goes on as it was before its last {runs} runs: what they changed is \
                 lost"
            ),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The run completed. `None`: the cell does not end in an expression, or its value cannot cross
    /// ([`Execution::value_error`]). `Some(Value::None)`: the value is Python's `None`.
    Completed(Option<Value>),
    /// The run submitted its result with `SUBMIT`, or the function of another name that submits: a
    /// dict of the fields, see [`SandboxBuilder::submit`](crate::SandboxBuilder::submit).
    Submitted(Value),
    /// An exception left the cell.
    Raised(PyException),
    /// `SystemExit` left the cell, with this status. Or the guest ended its interpreter with
    /// `os._exit`, which also ends the session.
    Exited(i32),
    /// The host ended the run.
    Terminated(Termination),
}

/// Why the host ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Termination {
    /// The run took longer than [`Limits::max_run_time`](crate::Limits::max_run_time). The session
    /// stays usable if the guest ended within the [grace](crate::Limits::max_grace).
    Deadline {
        /// The limit.
        limit: Duration,
        /// The time from the call until the host decided how the run ended, without the time that
        /// tools took.
        observed: Duration,
    },
    /// The tools that the run called took longer than
    /// [`Limits::max_host_time`](crate::Limits::max_host_time). The session stays usable if the
    /// guest ended within the [grace](crate::Limits::max_grace).
    HostTime {
        /// The limit.
        limit: Duration,
        /// The time during which at least one tool was running.
        observed: Duration,
    },
    /// The run exceeded the limit of a count. The session stays usable if the guest ended within
    /// the [grace](crate::Limits::max_grace).
    Limit {
        /// What was counted.
        kind: LimitKind,
        /// The limit.
        limit: u64,
        /// The count.
        observed: u64,
    },
    /// The guest took more memory than follows from
    /// [`Limits::max_memory_bytes`](crate::Limits::max_memory_bytes). The session is closed.
    Memory {
        /// Which memory.
        kind: MemoryKind,
        /// The limit of that memory, in bytes.
        limit: u64,
        /// How much of it there was when the guest was stopped, in bytes. For V8's heap equal to
        /// the limit if the guest was stopped before the heap could grow.
        observed: u64,
    },
    /// The run was interrupted, see
    /// [`Session::interrupt_handle`](crate::Session::interrupt_handle). The session stays usable.
    Interrupted,
    /// The interpreter died, for example because the guest called `os.abort()` or corrupted its own
    /// memory. The session is lost.
    Died {
        /// The known cause.
        reason: String,
    },
}

/// A count that a run's limits restrict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Tool calls that were accepted, see
    /// [`Limits::max_tool_calls`](crate::Limits::max_tool_calls).
    ToolCalls,
    /// Requests that were refused, see [`Limits::max_refusals`](crate::Limits::max_refusals).
    Refusals,
}

/// Memory that has a limit of its own, at which the host ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// V8's heap, in which JavaScript's objects, strings and code are.
    Heap,
    /// All memory of the session's worker, with its page tables.
    Worker,
    /// The page tables that the kernel keeps for the session's worker.
    PageTables,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Heap => "JavaScript's heap in use",
            Self::Worker => "memory of its worker in use",
            Self::PageTables => "page tables of its worker in use",
        })
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToolCalls => "tool calls",
            Self::Refusals => "refused requests",
        })
    }
}

impl Termination {
    pub(crate) fn to_error(&self) -> Error {
        let kind = match self {
            Self::Died { .. } => ErrorKind::WorkerDied,
            _ => ErrorKind::Limit,
        };
        Error::new(kind, self.to_string())
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
            Self::HostTime { limit, observed } => write!(
                f,
                "the run was terminated after its tools had taken {:.3} s, the limit is {} s \
                 (`Limits::max_host_time`)",
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
            Self::Memory { kind, limit, observed } => write!(
                f,
                "the run was terminated with {observed} bytes of {kind}, the limit is {limit} \
                 bytes, which follows from `Limits::max_memory_bytes`; the session is closed"
            ),
            Self::Interrupted => f.write_str("the run was interrupted"),
            Self::Died { reason } => write!(f, "the interpreter died: {reason}"),
        }
    }
}

/// A Python exception as the guest described it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct PyException {
    /// The name of its class, such as `ZeroDivisionError`. Serialised as `type`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The exception's `str()`.
    pub message: String,
    /// The exception's `args` as a JSON array, if JSON can represent them. Serialised as `args`.
    #[serde(rename = "args")]
    pub args_json: Option<String>,
    /// The traceback as python prints it, with the guest's frames only.
    pub traceback: String,
    /// The exception that this one was raised from or while handling.
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

/// A name in the guest's namespace and a description of its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The name of the value's class. Serialised as `type`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The value's `len()`, for `str`, `bytes`, `list`, `dict` and the other built-in types that
    /// have one.
    pub size: Option<u64>,
    /// The value's `repr`, truncated to 500 characters.
    pub repr: String,
}

/// The resources that a run used.
///
/// Times are serialised in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Wall-clock time from the call until the host decided how the run ended.
    #[serde(serialize_with = "seconds")]
    pub wall_time: Duration,
    /// The part of the wall-clock time during which at least one tool was running, see
    /// [`Limits::max_host_time`](crate::Limits::max_host_time).
    #[serde(serialize_with = "seconds")]
    pub host_time: Duration,
    /// The session's peak memory so far, in bytes, as
    /// [`Limits::max_memory_bytes`](crate::Limits::max_memory_bytes) counts it. Zero if the run
    /// ended the session.
    pub peak_memory_bytes: u64,
    /// Bytes written to standard output, kept or not.
    pub stdout_bytes: u64,
    /// Bytes written to standard error, kept or not.
    pub stderr_bytes: u64,
    /// Tool calls, without those that were refused.
    pub tool_calls: u64,
}

/// How much output was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Truncation {
    /// Dropped bytes of standard output.
    pub stdout_bytes: u64,
    /// Dropped bytes of standard error.
    pub stderr_bytes: u64,
    /// The number of dropped displays.
    pub displays: u64,
    /// The number of written files that are not listed.
    pub files: u64,
}

impl Truncation {
    /// Returns `true` if any output was dropped.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

impl Execution {
    /// Returns how the run ended.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns the value of the cell's last expression or the submitted value, if the run has one.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match &self.outcome {
            Outcome::Completed(value) => value.as_ref(),
            Outcome::Submitted(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value as [`value`](Self::value) does, without a copy.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        match self.outcome {
            Outcome::Completed(value) => value,
            Outcome::Submitted(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the exception that ended the run, if one did.
    #[must_use]
    pub fn exception(&self) -> Option<&PyException> {
        match &self.outcome {
            Outcome::Raised(exception) => Some(exception),
            _ => None,
        }
    }

    /// Returns the `SystemExit` that ended the run, if one led to the outcome
    /// [`Exited`](Outcome::Exited). It holds the argument of `sys.exit`.
    #[must_use]
    pub fn system_exit(&self) -> Option<&PyException> {
        self.system_exit.as_ref()
    }

    /// Returns the `repr` of the last expression's value, truncated to
    /// [`Limits::REPR_CHARS`](crate::Limits::REPR_CHARS) characters. It is also present when the
    /// value itself cannot cross.
    #[must_use]
    pub fn repr(&self) -> Option<&str> {
        self.repr.as_deref()
    }

    /// Returns why the last expression's value did not cross, if it did not.
    #[must_use]
    pub fn value_error(&self) -> Option<&str> {
        self.value_error.as_deref()
    }

    /// Returns the standard output, which is kept on every outcome. Invalid UTF-8 is shown as `�`.
    #[must_use]
    pub fn stdout(&self) -> &str {
        self.stdout.text()
    }

    /// Returns the standard error, which is kept on every outcome. Invalid UTF-8 is shown as `�`.
    #[must_use]
    pub fn stderr(&self) -> &str {
        self.stderr.text()
    }

    /// Returns how much output was dropped.
    #[must_use]
    pub fn truncated(&self) -> Truncation {
        Truncation {
            stdout_bytes: self.stdout.dropped(),
            stderr_bytes: self.stderr.dropped(),
            displays: self.dropped_displays,
            files: self.dropped_files,
        }
    }

    /// Returns what the run displayed, in order, on every outcome.
    ///
    /// [`Limits::max_displays`](crate::Limits::max_displays) and
    /// [`Limits::max_display_bytes`](crate::Limits::max_display_bytes) bound them;
    /// [`truncated`](Self::truncated) counts the others.
    #[must_use]
    pub fn displays(&self) -> &[Display] {
        &self.displays
    }

    /// Returns the files that the run has opened for writing or moved and that were there when it
    /// ended, sorted by path: in the guest's memory and beneath mount points. Empty if the guest
    /// was killed.
    ///
    /// Not listed are files in `/dev`, `/lib` and `/proc`, in `__pycache__`, and those with a name
    /// in their path that begins with a dot. [`Limits::max_files`](crate::Limits::max_files) bounds
    /// the list; [`truncated`](Self::truncated) counts the others. The list is the guest's claim:
    /// [`Files::get`](crate::Files::get) reads what is there.
    ///
    /// ```no_run
    /// # async fn example(session: &mut isolet::Session) -> Result<(), isolet::Error> {
    /// let execution = session.run("open('out.txt', 'w').write('made')").await?;
    /// for file in execution.files() {
    ///     let contents = session.files().get(&file.path).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn files(&self) -> &[WrittenFile] {
        &self.files
    }

    /// Returns the names that the run bound or rebound, without private names and modules.
    ///
    /// Empty if the run was terminated.
    #[must_use]
    pub fn locals(&self) -> &[Variable] {
        &self.locals
    }

    /// Returns the resources that the run used.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns `true` if the session can run more code.
    #[must_use]
    pub fn session_alive(&self) -> bool {
        self.session_alive
    }

    /// Returns how the session goes on, if the run ended its interpreter and the session was
    /// restored from a [checkpoint](crate::SandboxBuilder::checkpoint).
    #[must_use]
    pub fn restored(&self) -> Option<Restored> {
        self.restored
    }

    /// Returns the value, or every other outcome as an error.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Raised`] for an exception or an exit with a status other than 0;
    ///   [`Error::exception`] returns the exception.
    /// * [`ErrorKind::Limit`] for a terminated run.
    /// * [`ErrorKind::WorkerDied`] if the interpreter died.
    /// * [`ErrorKind::Value`] for a value that cannot cross.
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
            Outcome::Terminated(termination) => termination.to_error(),
        };
        Err(if alive { error.with_session_alive() } else { error })
    }
}
