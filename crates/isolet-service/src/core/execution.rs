//! The result of a run, as nodes and dialects read it and all wires write it. See
//! `docs/reference/protocol.md`. Empty fields are omitted.

use std::time::Duration;

use isolet::{MimeData, Outcome, PyException};
use serde::{Serialize, Serializer};

use super::Failure;
use super::hints::hint_in_fields;
use super::plain::Plain;
use super::vocabulary::in_fields;

/// The result of a run. Empty fields are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Execution {
    pub status: Status,
    /// The exception that ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<Exception>,
    /// What helps, if a module was missing that a package has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The status of `sys.exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The `SystemExit` that ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_exit: Option<Exception>,
    /// Why the host ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    pub usage: Usage,
    /// The `repr` of the value of the last expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repr: Option<String>,
    /// Why the value could not be converted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_error: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub stdout: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub stderr: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub displays: Vec<Display>,
    /// The files that the run created or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub files: Vec<File>,
    /// The `repr`s of the names that the run has bound.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "texts")]
    #[schema(required = false, value_type = std::collections::BTreeMap<String, String>)]
    pub locals: Vec<(String, String)>,
    /// How much output was left out.
    #[serde(skip_serializing_if = "Truncated::is_nothing")]
    #[schema(required = false)]
    pub truncated: Truncated,
    /// `session_alive: false` on the wires: the session ended with the run.
    #[serde(
        rename = "session_alive",
        skip_serializing_if = "std::ops::Not::not",
        serialize_with = "negated"
    )]
    #[schema(required = false)]
    pub session_ended: bool,
    /// Set if the run ended the interpreter, and the session goes on from its last checkpoint.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lost_runs")]
    #[schema(value_type = Option<RestoredEntry>)]
    pub restored: Option<isolet::Restored>,
    /// The value of the last expression, or the submitted value, unless it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub value: Option<Plain>,
}

/// What a session has lost by going on from its last checkpoint.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Restored)]
struct RestoredEntry {
    /// The runs whose changes are lost, the last one included.
    lost_runs: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Completed,
    Submitted,
    Raised,
    Exited,
    Terminated,
}

impl Status {
    /// Returns how a run of the library ended.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Raised(_) => Self::Raised,
            Outcome::Exited(_) => Self::Exited,
            Outcome::Terminated(_) => Self::Terminated,
            Outcome::Submitted(_) => Self::Submitted,
            _ => Self::Completed,
        }
    }
}

/// An exception of the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Exception {
    #[serde(rename = "type")]
    pub type_name: String,
    pub message: String,
    /// Its arguments as JSON, if JSON can represent them.
    #[serde(rename = "args")]
    pub args_json: Option<String>,
    pub traceback: String,
    /// Its cause or context.
    #[schema(no_recursion)]
    pub cause: Option<Box<Self>>,
}

/// Why the host ended a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Termination {
    pub kind: TerminationKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TerminationKind {
    Timeout,
    Limit,
    Memory,
    Interrupted,
    Died,
}

/// The resources that a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Usage {
    /// In seconds.
    #[serde(serialize_with = "seconds")]
    #[schema(value_type = f64)]
    pub wall_time: Duration,
    /// The part of it spent in tools, in seconds.
    #[serde(serialize_with = "seconds")]
    #[schema(value_type = f64)]
    pub host_time: Duration,
    pub peak_memory_bytes: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub tool_calls: u64,
}

/// A file that a run created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct File {
    pub path: String,
    pub size: u64,
}

/// How much of a run's output was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Truncated {
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub displays: u64,
    pub files: u64,
}

/// A display of a run, in several formats.
#[derive(Clone, Debug, PartialEq, utoipa::ToSchema)]
pub struct Display {
    /// By format: a text, or bytes.
    #[schema(rename = "data", value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    bundle: isolet::Display,
    /// `true` if this is the value of the last expression.
    pub is_result: bool,
}

impl Display {
    /// Returns the formats with their data, in the guest's order.
    pub fn formats(&self) -> impl Iterator<Item = (&str, &MimeData)> {
        self.bundle.formats()
    }
}

impl Serialize for Display {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.bundle.serialize(serializer)
    }
}

impl From<isolet::Display> for Display {
    fn from(bundle: isolet::Display) -> Self {
        Self { is_result: bundle.is_result(), bundle }
    }
}

impl Execution {
    /// Returns the result of a run that was interrupted before it started.
    pub fn interrupted() -> Self {
        let termination = Some((&isolet::Termination::Interrupted).into());
        Self { status: Status::Terminated, termination, ..Self::default() }
    }

    /// Converts the library's result. `has_value` is `false` for a program.
    pub fn of(execution: isolet::Execution, has_value: bool) -> Self {
        let kept = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let mut this = Self {
            repr: kept(execution.repr().filter(|_| has_value)),
            value_error: kept(execution.value_error()),
            hint: hint_in_fields(&execution),
            stdout: execution.stdout().to_owned(),
            stderr: execution.stderr().to_owned(),
            displays: execution.displays().iter().cloned().map(Display::from).collect(),
            files: execution
                .files()
                .iter()
                .map(|file| File { path: file.path.clone(), size: file.size })
                .collect(),
            locals: execution
                .locals()
                .iter()
                .map(|local| (local.name.clone(), local.repr.clone()))
                .collect(),
            usage: (*execution.usage()).into(),
            truncated: execution.truncated().into(),
            session_ended: !execution.session_alive(),
            restored: execution.restored(),
            ..Self::default()
        };
        this.status = Status::of(execution.outcome());
        match execution.outcome() {
            Outcome::Raised(exception) => this.exception = Some(exception.into()),
            Outcome::Exited(code) => {
                this.exit_code = Some(*code);
                this.system_exit = execution.system_exit().map(Exception::from);
            }
            Outcome::Terminated(termination) => this.termination = Some(termination.into()),
            _ => {}
        }
        let value = execution.into_value().filter(|value| has_value && !value.is_none());
        this.value = value.map(Plain);
        this
    }

    /// Returns what the session has lost by the run, as a sentence without a full stop.
    pub fn loss(&self) -> Option<String> {
        if self.session_ended {
            return Some("the session has ended: variables and imports are lost".to_owned());
        }
        self.restored.map(|restored| restored.to_string())
    }

    /// Returns the value of the last expression, or the submitted value.
    pub fn value(&self) -> Option<&isolet::Value> {
        self.value.as_ref().map(|Plain(value)| value)
    }

    /// Returns `true` if the last expression has a value other than `None`, even if it could not be
    /// converted.
    pub fn has_value(&self) -> bool {
        self.value.is_some() || self.value_error.is_some()
    }

    /// Returns the `repr` of the value, or an empty string.
    pub fn repr(&self) -> &str {
        self.repr.as_deref().unwrap_or_default()
    }
}

impl Status {
    /// Returns its name on the wires, in metrics and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Submitted => "submitted",
            Self::Raised => "raised",
            Self::Exited => "exited",
            Self::Terminated => "terminated",
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl From<&PyException> for Exception {
    fn from(exception: &PyException) -> Self {
        Self {
            type_name: exception.type_name.clone(),
            message: exception.message.clone(),
            args_json: exception.args_json.clone(),
            traceback: exception.traceback.clone(),
            cause: exception.cause.as_deref().map(|cause| Box::new(cause.into())),
        }
    }
}

impl Exception {
    /// Returns the name of its class without module and enclosing names.
    pub fn bare_name(&self) -> &str {
        self.type_name.rsplit('.').next().unwrap_or_default()
    }
}

impl From<&isolet::Termination> for Termination {
    fn from(termination: &isolet::Termination) -> Self {
        use isolet::Termination as Ended;
        let kind = match termination {
            Ended::Deadline { .. } | Ended::HostTime { .. } => TerminationKind::Timeout,
            Ended::Memory { .. } => TerminationKind::Memory,
            Ended::Interrupted => TerminationKind::Interrupted,
            Ended::Died { .. } => TerminationKind::Died,
            _ => TerminationKind::Limit,
        };
        Self { kind, message: in_fields(&termination.to_string()) }
    }
}

impl From<isolet::Usage> for Usage {
    fn from(usage: isolet::Usage) -> Self {
        Self {
            wall_time: usage.wall_time,
            host_time: usage.host_time,
            peak_memory_bytes: usage.peak_memory_bytes,
            stdout_bytes: usage.stdout_bytes,
            stderr_bytes: usage.stderr_bytes,
            tool_calls: usage.tool_calls,
        }
    }
}

impl From<isolet::Truncation> for Truncated {
    fn from(truncated: isolet::Truncation) -> Self {
        Self {
            stdout_bytes: truncated.stdout_bytes,
            stderr_bytes: truncated.stderr_bytes,
            displays: truncated.displays,
            files: truncated.files,
        }
    }
}

impl Truncated {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn negated<S: Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(!flag)
}

#[expect(clippy::ref_option, reason = "serde passes it so")]
fn lost_runs<S: Serializer>(
    restored: &Option<isolet::Restored>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    restored.map(|restored| RestoredEntry { lost_runs: restored.lost_runs }).serialize(serializer)
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn texts<S: Serializer>(items: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(items.iter().map(|(name, text)| (name, text)))
}

/// Reads a duration in seconds.
pub(crate) fn duration(name: &str, seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::config(format!(
            "`{name}` is {seconds}, and has to be a number of seconds, 0 or more"
        ))
    })
}
