//! The `SandboxedPythonExecutor` of an MCP server over DSPy: runs code with a timeout and returns a
//! normalised result.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use isolet::profile::sandboxed_executor::{SandboxOptions, SandboxedExecutor};
//!
//! # async fn example(engine: &isolet::Engine) -> Result<(), isolet::Error> {
//! let mut executor = SandboxedExecutor::new(engine, SandboxOptions::default());
//! let result = executor.run("x + 2", Duration::from_secs(5), [("x", 40)]).await?;
//! assert_eq!((result.success, result.stdout.as_str()), (true, "42"));
//! # Ok(()) }
//! ```

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::api::copied_files::CopiedFiles;
use crate::api::engine::Engine;
use crate::api::permissions::{Permissions, env};
use crate::api::sandbox::Sandbox;
use crate::api::session::{Session, SessionState};
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Outcome, Termination};
use crate::data::limits::Limits;
use crate::data::value::Value;

/// The maximum timeout of a run.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// What code may access: nothing, everything in the original's sense, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    #[default]
    Denied,
    /// Of the network only this machine (`localhost` and `127.0.0.1`); of the environment every
    /// variable.
    All,
    /// Only these names.
    Only(Vec<String>),
}

impl From<bool> for Access {
    fn from(allowed: bool) -> Self {
        if allowed { Self::All } else { Self::Denied }
    }
}

impl From<Vec<String>> for Access {
    fn from(names: Vec<String>) -> Self {
        Self::Only(names)
    }
}

/// Options of an executor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SandboxOptions {
    /// Hosts that the code may connect to, as rules of [`Permissions::allow_net`].
    pub enable_network_access: Access,
    /// Environment variables of the host that the code may see.
    pub enable_env_vars: Access,
    /// Host files that are copied to `/sandbox/NAME`.
    pub enable_read_paths: Vec<PathBuf>,
    /// Host files that are copied to `/sandbox/NAME` and written back after each run that the
    /// session survives, if they changed. A missing file is created.
    pub enable_write_paths: Vec<PathBuf>,
    /// The maximum length of a result's standard output and standard error, in characters (Unicode
    /// scalar values) each; 0 for no limit. A longer text is truncated and ends in `... [truncated
    /// 5 chars]`.
    ///
    /// Before that, each stream is limited as by [`Limits::max_stdout_bytes`]: to 1 MiB, or to
    /// eight bytes per character of this limit if that is more. The count of truncated characters
    /// does not include what is dropped there.
    ///
    /// Default: 32,768.
    pub max_output_chars: usize,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            enable_network_access: Access::Denied,
            enable_env_vars: Access::Denied,
            enable_read_paths: Vec::new(),
            enable_write_paths: Vec::new(),
            max_output_chars: 32_768,
        }
    }
}

impl SandboxOptions {
    fn permissions(&self) -> Result<Permissions, Error> {
        let mut permissions = Permissions::none();
        let rules = match &self.enable_network_access {
            Access::Denied => &[][..],
            Access::All => &["localhost".to_owned(), "127.0.0.1".to_owned()],
            Access::Only(rules) => rules,
        };
        for rule in rules {
            permissions = permissions.allow_net(rule)?;
        }
        let names = match &self.enable_env_vars {
            Access::Denied => Vec::new(),
            Access::All => env::names(),
            Access::Only(names) => names.clone(),
        };
        for name in names {
            permissions = permissions.allow_env(&name)?;
        }
        Ok(permissions)
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExecutionResult {
    /// `true` if the code completed.
    pub success: bool,
    /// The printed output, then on a separate line the value of the last expression if it is not
    /// `None`: a `str` as it is, anything else as its `repr`. Kept also when the run fails.
    pub stdout: String,
    /// The text written to standard error, then on a separate line the reason of a failure. Each is
    /// truncated separately, so that neither displaces the other.
    pub stderr: String,
    /// Wall-clock time from the call to the result, in whole milliseconds. Includes the start of
    /// the session, if one was started.
    pub duration_ms: u64,
    /// Details of a failure.
    pub diagnostics: Option<Diagnostics>,
}

/// Details of a failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diagnostics {
    /// `TIMEOUT`, `INTERRUPTED`, `DIED`, or the class of the exception.
    pub error_type: String,
    /// The timeout that was exceeded, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// The traceback of the exception.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
}

/// Runs code in a session that persists between runs and is replaced when it has ended.
#[derive(Debug)]
pub struct SandboxedExecutor {
    engine: Engine,
    options: SandboxOptions,
    session: Option<Session>,
    files: CopiedFiles,
}

impl SandboxedExecutor {
    /// Makes an executor. The first run starts its session.
    #[must_use]
    pub fn new(engine: &Engine, options: SandboxOptions) -> Self {
        let files = CopiedFiles::default();
        Self { engine: engine.clone(), options, session: None, files }
    }

    /// Returns what the code may do.
    #[must_use]
    pub fn options(&self) -> &SandboxOptions {
        &self.options
    }

    /// Binds variables, then runs code.
    ///
    /// State persists between runs. A timeout, `os._exit` or the death of the interpreter loses it:
    /// the next run starts a fresh session.
    ///
    /// The timeout applies to the code; its maximum is a year. Starting a session does not count,
    /// and binding the variables has the same timeout separately.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the timeout is zero; [`ErrorKind::Value`] if a variable cannot be
    /// bound, in which case the code does not run; otherwise as [`Sandbox::session`] and
    /// [`Session::run`]. Failures of the code itself are part of the result.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the run. The next run starts a fresh session.
    pub async fn run<N: Into<String>, V: Into<Value>>(
        &mut self,
        code: &str,
        timeout: Duration,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<ExecutionResult, Error> {
        if timeout.is_zero() {
            let message = "timeout must be greater than zero seconds";
            return Err(Error::new(ErrorKind::Config, message));
        }
        let started = Instant::now();
        let limit = self.options.max_output_chars;
        self.start().await?;
        let missing = || Error::new(ErrorKind::Closed, "the session is gone");
        let session = self.session.as_mut().ok_or_else(missing)?;
        let cell = Cell::new(code).inputs(variables).timeout(timeout);
        let execution = session.run(cell).await?;
        if session.state() == SessionState::Ready {
            self.files.copy_out(session).await?;
        }
        let failure = failure(&execution, timeout);
        let value = value_text(&execution).filter(|_| failure.is_none());
        let stdout = with_line(execution.stdout(), value);
        Ok(result(&stdout, execution.stderr(), failure, started.elapsed(), limit))
    }

    /// Starts a session, unless there is a usable one.
    async fn start(&mut self) -> Result<(), Error> {
        if self.session.as_ref().is_some_and(|session| session.state() == SessionState::Ready) {
            return Ok(());
        }
        self.session = None;
        // Twice the size that these characters can have, because a session drops the middle of
        // longer output.
        let bytes = self.options.max_output_chars.saturating_mul(8) as u64;
        let limits = Limits::default()
            .max_run_time(LONGEST)
            .max_stdout_bytes(bytes.max(Limits::DEFAULT_STDOUT_BYTES))
            .max_stderr_bytes(bytes.max(Limits::DEFAULT_STDERR_BYTES));
        let builder = Sandbox::builder(&self.engine).limits(limits);
        let sandbox = builder.permissions(self.options.permissions()?).build()?;
        let mut session = sandbox.session().await?;
        let SandboxOptions { enable_read_paths, enable_write_paths, .. } = &self.options;
        self.files = CopiedFiles::new(enable_read_paths.clone(), enable_write_paths.clone())?;
        self.files.copy_in(&mut session).await?;
        self.session = Some(session);
        Ok(())
    }
}

fn result(
    stdout: &str,
    stderr: &str,
    failure: Option<(String, Diagnostics)>,
    duration: Duration,
    limit: usize,
) -> ExecutionResult {
    let (reason, diagnostics) = failure.unzip();
    let reason = reason.map(|reason| cut(&reason, limit));
    ExecutionResult {
        success: diagnostics.is_none(),
        stdout: cut(stdout, limit),
        stderr: with_line(&cut(stderr, limit), reason.as_deref()),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        diagnostics,
    }
}

/// Returns why the run failed, as text and as details.
fn failure(execution: &Execution, timeout: Duration) -> Option<(String, Diagnostics)> {
    match execution.outcome() {
        Outcome::Completed(_) | Outcome::Submitted(_) | Outcome::Exited(0) => None,
        Outcome::Raised(exception) => {
            let traceback = Some(exception.traceback.clone());
            let diagnostics = Diagnostics { traceback, ..diagnosed(&exception.type_name) };
            Some((exception.to_string(), diagnostics))
        }
        Outcome::Exited(status) => {
            let exit = execution.system_exit();
            let message = exit.map_or_else(|| format!("SystemExit: {status}"), ToString::to_string);
            let traceback = exit.map(|exit| exit.traceback.clone());
            Some((message, Diagnostics { traceback, ..diagnosed("SystemExit") }))
        }
        Outcome::Terminated(Termination::Deadline { .. }) => Some(timed_out(timeout)),
        Outcome::Terminated(termination @ Termination::Interrupted) => {
            Some((termination.to_string(), diagnosed("INTERRUPTED")))
        }
        Outcome::Terminated(termination @ Termination::Died { .. }) => {
            Some((termination.to_string(), diagnosed("DIED")))
        }
        Outcome::Terminated(termination) => Some((termination.to_string(), diagnosed("LIMIT"))),
    }
}

fn timed_out(timeout: Duration) -> (String, Diagnostics) {
    let seconds = timeout.as_secs_f64();
    let diagnostics = Diagnostics { timeout_seconds: Some(seconds), ..diagnosed("TIMEOUT") };
    (format!("Execution timed out after {seconds:.2}s"), diagnostics)
}

fn diagnosed(error_type: &str) -> Diagnostics {
    Diagnostics { error_type: error_type.to_owned(), timeout_seconds: None, traceback: None }
}

/// Returns the value of the last expression unless it is `None`: a `str` as it is, anything else as
/// its `repr`.
fn value_text(execution: &Execution) -> Option<&str> {
    let repr = execution.repr();
    match execution.value() {
        Some(Value::None) => None,
        // Some types become a `str` only when they cross to the host; their repr has no quotes.
        Some(Value::Str(text)) if repr.is_some_and(|repr| repr.starts_with(['\'', '"'])) => {
            Some(text)
        }
        _ => repr,
    }
}

/// Returns the text with one more line.
fn with_line(text: &str, line: Option<&str>) -> String {
    match line {
        None => text.to_owned(),
        Some(line) if text.is_empty() || text.ends_with('\n') => format!("{text}{line}"),
        Some(line) => format!("{text}\n{line}"),
    }
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) if limit > 0 => {
            let rest = text[end..].chars().count();
            format!("{}... [truncated {rest} chars]", &text[..end])
        }
        _ => text.to_owned(),
    }
}
