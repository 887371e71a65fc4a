//! The JSON object that `isolet run --json` prints.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::{Display, Error, ErrorKind, Execution, Outcome, PyException, Termination};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::show::exit;
use isolet_service::core::{hint_in_options, in_options};
use isolet_support::json::Json;

/// The status if something other than the run failed.
const FAILED: &str = "failed";

/// Everything about a run. The field names are part of the contract.
#[derive(Default, serde::Serialize)]
pub(crate) struct RunReport<'a> {
    status: &'static str,
    success: bool,
    stdout: &'a str,
    stderr: &'a str,
    value: Option<Json<'a>>,
    repr: Option<&'a str>,
    exception: Option<Exception<'a>>,
    exit_code: Option<i32>,
    /// The displays of the run, in order: the data by format.
    displays: Vec<Bundle<'a>>,
    /// The files that the run has written.
    files: Vec<File<'a>>,
    locals: BTreeMap<&'a str, &'a str>,
    truncated: bool,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Diagnostics<'a>>,
}

#[derive(serde::Serialize)]
struct Exception<'a> {
    r#type: &'a str,
    message: &'a str,
    args: Option<Box<RawValue>>,
    traceback: &'a str,
    cause: Option<Box<Self>>,
}

#[derive(serde::Serialize)]
struct File<'a> {
    path: &'a str,
    size: u64,
}

/// The resources that a run has used. Times are in seconds, as in all of isolet's JSON.
#[derive(Default, serde::Serialize)]
struct Usage {
    wall_time: f64,
    host_time: f64,
    peak_memory_bytes: u64,
    stdout_bytes: u64,
    stderr_bytes: u64,
    tool_calls: u64,
}

/// Details of a failure, for programs.
#[derive(Default, serde::Serialize)]
struct Diagnostics<'a> {
    error_type: &'a str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
}

/// The report of a notebook: that of its last cell, with a report for each cell; or a failure after
/// them.
#[derive(serde::Serialize)]
pub(crate) struct NotebookReport<'a> {
    status: &'static str,
    success: bool,
    cells: Vec<RunReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Diagnostics<'a>>,
}

impl<'a> NotebookReport<'a> {
    /// Makes the report of these cells. `hint` is of the last one; `may_raise` is set if that has
    /// raised an exception that is no failure.
    pub(crate) fn new(
        executions: &'a [Execution],
        hint: Option<String>,
        may_raise: bool,
        error: Option<&anyhow::Error>,
    ) -> Self {
        let mut cells: Vec<RunReport<'a>> = executions.iter().map(RunReport::new).collect();
        if let Some(last) = cells.pop() {
            cells.push(last.hinted(hint));
        }
        let (status, success) = match (error, cells.last()) {
            (Some(_), _) => (FAILED, false),
            (None, Some(last)) if !may_raise => (last.status, last.success),
            _ => ("completed", true),
        };
        Self { status, success, cells, diagnostics: error.map(Diagnostics::of_error) }
    }
}

/// Reports a failure of usage, files, packages or the host in an object of the same shape. It
/// includes the result of the run, if there was one before.
pub(crate) fn failure<'a>(
    error: &anyhow::Error,
    execution: Option<&'a Execution>,
) -> RunReport<'a> {
    failed(Diagnostics::of_error(error), execution)
}

/// Reports a command line that cannot be parsed.
pub(crate) fn usage(error: &clap::Error) -> RunReport<'static> {
    let message = error.to_string();
    let message = message.trim_end().strip_prefix("error: ").unwrap_or(&message).to_owned();
    failed(Diagnostics { error_type: "USAGE", message, ..Diagnostics::default() }, None)
}

fn failed<'a>(diagnostics: Diagnostics<'a>, execution: Option<&'a Execution>) -> RunReport<'a> {
    let report = execution.map(RunReport::new).unwrap_or_default();
    RunReport { status: FAILED, success: false, diagnostics: Some(diagnostics), ..report }
}

impl<'a> RunReport<'a> {
    /// Adds what helps, as it is shown without `--json`, to the details of a failure.
    pub(crate) fn hinted(mut self, hint: Option<String>) -> Self {
        if let (Some(diagnostics), Some(hint)) = (&mut self.diagnostics, hint) {
            diagnostics.hint = Some(hint);
        }
        self
    }

    pub(crate) fn new(execution: &'a Execution) -> Self {
        let usage = execution.usage();
        let seconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e6;
        let (status, exit_code) = match execution.outcome() {
            Outcome::Completed(_) => ("completed", None),
            Outcome::Raised(_) => ("raised", None),
            Outcome::Exited(code) => ("exited", Some(*code)),
            _ => ("terminated", None),
        };
        Self {
            status,
            success: matches!(execution.outcome(), Outcome::Completed(_) | Outcome::Exited(0)),
            stdout: execution.stdout(),
            stderr: execution.stderr(),
            value: execution.value().map(Json),
            repr: execution.repr(),
            exception: execution.exception().map(Exception::new),
            exit_code,
            displays: execution.displays().iter().map(Bundle).collect(),
            files: execution
                .files()
                .iter()
                .map(|file| File { path: &file.path, size: file.size })
                .collect(),
            locals: execution
                .locals()
                .iter()
                .map(|variable| (variable.name.as_str(), variable.repr.as_str()))
                .collect(),
            truncated: execution.truncated().is_any(),
            usage: Usage {
                wall_time: seconds(usage.wall_time),
                host_time: seconds(usage.host_time),
                peak_memory_bytes: usage.peak_memory_bytes,
                stdout_bytes: usage.stdout_bytes,
                stderr_bytes: usage.stderr_bytes,
                tool_calls: usage.tool_calls,
            },
            diagnostics: Diagnostics::new(execution),
        }
    }
}

/// A display as Jupyter writes it: text as a string, JSON as it is, bytes in base64.
struct Bundle<'a>(&'a Display);

impl Serialize for Bundle<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.formats().len()))?;
        for (format, data) in self.0.formats() {
            let is_json = format == "application/json" || format.ends_with("+json");
            let raw = data.as_str().filter(|_| is_json);
            match raw.map(|text| RawValue::from_string(text.to_owned())) {
                Some(Ok(json)) => map.serialize_entry(format, &json)?,
                _ => match data.as_str() {
                    Some(text) => map.serialize_entry(format, text)?,
                    None => map.serialize_entry(format, &STANDARD.encode(data.as_bytes()))?,
                },
            }
        }
        map.end()
    }
}

impl<'a> Exception<'a> {
    fn new(exception: &'a PyException) -> Self {
        let args = exception.args_json.clone().and_then(|json| RawValue::from_string(json).ok());
        Self {
            r#type: &exception.type_name,
            message: &exception.message,
            args,
            traceback: &exception.traceback,
            cause: exception.cause.as_deref().map(|cause| Box::new(Self::new(cause))),
        }
    }
}

impl<'a> Diagnostics<'a> {
    /// Makes the details of a failure of usage, files, packages or the host.
    fn of_error(error: &anyhow::Error) -> Self {
        let ours = error.downcast_ref::<Error>();
        let is_file = error.chain().any(<dyn std::error::Error>::is::<std::io::Error>);
        let error_type = match ours.map(Error::kind) {
            Some(ErrorKind::Config) => "CONFIG",
            Some(ErrorKind::Assets) => "ASSETS",
            Some(ErrorKind::Start) => "START",
            Some(ErrorKind::Limit) => "LIMIT",
            Some(ErrorKind::Value) => "VALUE",
            Some(ErrorKind::Packages) => "PACKAGES",
            Some(ErrorKind::Journal) => "JOURNAL",
            Some(ErrorKind::WorkerDied) => "WORKER_DIED",
            Some(_) => "SESSION",
            None if is_file => "FILE",
            None => "USAGE",
        };
        let hint = ours.and_then(Error::hint).map(in_options);
        let message = in_options(&exit::message(error));
        Self { error_type, message, hint, timeout: None }
    }

    fn new(execution: &'a Execution) -> Option<Self> {
        let (error_type, message, timeout) = match execution.outcome() {
            Outcome::Raised(exception) => {
                (exception.type_name.as_str(), exception.to_string(), None)
            }
            Outcome::Exited(code) if *code != 0 => {
                ("SystemExit", format!("the guest exited with status {code}"), None)
            }
            Outcome::Terminated(termination) => match termination {
                Termination::Deadline { limit, .. } | Termination::HostTime { limit, .. } => {
                    ("TIMEOUT", in_options(&termination.to_string()), Some(limit.as_secs_f64()))
                }
                Termination::Memory { .. } => {
                    ("MEMORY", in_options(&termination.to_string()), None)
                }
                Termination::Died { .. } => ("WORKER_DIED", termination.to_string(), None),
                _ => ("INTERRUPTED", in_options(&termination.to_string()), None),
            },
            _ => ("VALUE", execution.value_error()?.to_owned(), None),
        };
        Some(Self { error_type, message, hint: hint_in_options(execution), timeout })
    }
}
