//! Serialises results of runs in the form that they have on the wires: `docs/reference/protocol.md`
//! describes it. Empty fields are left out.

use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::data::display::{Display, MimeData};
use crate::data::execution::{
    Execution, Outcome, PyException, Restored, Termination, Truncation, Usage, Variable,
};
use crate::data::value::Value;
use crate::data::value::plain::{Bytes, Form};
use crate::data::written_file::WrittenFile;

/// How a run ended. The fields that an outcome does not have are left out.
#[derive(Default, Serialize)]
struct End<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exception: Option<&'a PyException>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    termination: Option<&'a Termination>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Form<'a>>,
}

impl<'a> From<&'a Outcome> for End<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let none = Self::default();
        let form = |value: &'a Value| Some(value).filter(|value| !value.is_none()).map(Form);
        match outcome {
            Outcome::Completed(value) => {
                Self { status: "completed", value: value.as_ref().and_then(form), ..none }
            }
            Outcome::Submitted(value) => Self { status: "submitted", value: form(value), ..none },
            Outcome::Raised(exception) => {
                Self { status: "raised", exception: Some(exception), ..none }
            }
            Outcome::Exited(code) => Self { status: "exited", exit_code: Some(*code), ..none },
            Outcome::Terminated(termination) => {
                Self { status: "terminated", termination: Some(termination), ..none }
            }
        }
    }
}

/// `status`, and what the outcome has of `exception`, `exit_code`, `termination` and `value`.
impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        End::from(self).serialize(serializer)
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    end: End<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_exit: Option<&'a PyException>,
    usage: &'a Usage,
    #[serde(skip_serializing_if = "str::is_empty")]
    repr: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    value_error: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    stdout: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    stderr: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    displays: &'a [Display],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'a [WrittenFile],
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "reprs")]
    locals: &'a [Variable],
    #[serde(skip_serializing_if = "Truncation::is_none")]
    truncated: Truncation,
    /// `false`, or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_alive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<Restored>,
}

impl Serialize for Execution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = Whole {
            end: (&self.outcome).into(),
            system_exit: self.system_exit.as_ref(),
            usage: &self.usage,
            repr: self.repr().unwrap_or_default(),
            value_error: self.value_error().unwrap_or_default(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            displays: &self.displays,
            files: &self.files,
            locals: &self.locals,
            truncated: self.truncated(),
            session_alive: (!self.session_alive).then_some(false),
            restored: self.restored,
        };
        whole.serialize(serializer)
    }
}

impl Truncation {
    fn is_none(&self) -> bool {
        !self.is_any()
    }
}

/// The kind, and the message that [`Display`](std::fmt::Display) gives.
impl Serialize for Termination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = match self {
            Self::Deadline { .. } | Self::HostTime { .. } => "timeout",
            Self::Limit { .. } => "limit",
            Self::Memory { .. } => "memory",
            Self::Interrupted => "interrupted",
            Self::Died { .. } => "died",
        };
        let mut fields = serializer.serialize_struct("Termination", 2)?;
        fields.serialize_field("kind", kind)?;
        fields.serialize_field("message", &self.to_string())?;
        fields.end()
    }
}

/// The data by format, text as it is and bytes as those of values; and whether it is the value of
/// the last expression.
impl Serialize for Display {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Display", 2)?;
        fields.serialize_field("data", &Formats(self))?;
        fields.serialize_field("is_result", &self.is_result())?;
        fields.end()
    }
}

struct Formats<'a>(&'a Display);

impl Serialize for Formats<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.formats())
    }
}

impl Serialize for MimeData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => Bytes(bytes).serialize(serializer),
        }
    }
}

/// Serialises a duration in seconds.
pub(super) fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn reprs<S: Serializer>(variables: &[Variable], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(variables.iter().map(|each| (&each.name, &each.repr)))
}
