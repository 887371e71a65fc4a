//! Failures of requests, as all wires send them.

use isolet::{Error, ErrorKind};
use serde::{Serialize, Serializer};

use super::vocabulary::in_fields;

/// A failed request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The kind of failure, for programs.
    pub kind: FailureKind,
    pub message: String,
    /// How to fix it, in the client's terms.
    pub hint: Option<String>,
    /// Set if the session of the request is still usable.
    pub session_alive: bool,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Config,
    Assets,
    Start,
    Closed,
    Busy,
    Limit,
    Value,
    Packages,
    Journal,
    Died,
    /// An invalid message.
    Protocol,
    /// A permission that the client may not have.
    Denied,
}

impl FailureKind {
    /// Returns its name on the wires and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Assets => "assets",
            Self::Start => "start",
            Self::Closed => "closed",
            Self::Busy => "busy",
            Self::Limit => "limit",
            Self::Value => "value",
            Self::Packages => "packages",
            Self::Journal => "journal",
            Self::Died => "died",
            Self::Protocol => "protocol",
            Self::Denied => "denied",
        }
    }
}

impl Serialize for FailureKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Failure {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, session_alive: true }
    }

    /// An invalid message.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Protocol, message)
    }

    /// An invalid argument or policy.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Config, message)
    }

    /// A permission that the client may not have.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Denied, message)
    }

    /// An exceeded limit.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Limit, message)
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }

    /// Packages that could not be resolved or fetched.
    pub(crate) fn packages(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Packages, message)
    }

    pub(crate) fn busy(session: &str) -> Self {
        let message = format!("session {session} is busy, a run is under way in it");
        Self::new(FailureKind::Busy, message)
    }

    pub(crate) fn closed(message: impl Into<String>) -> Self {
        Self { session_alive: false, ..Self::new(FailureKind::Closed, message) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Config => FailureKind::Config,
            ErrorKind::Assets => FailureKind::Assets,
            ErrorKind::Start => FailureKind::Start,
            ErrorKind::Closed => FailureKind::Closed,
            ErrorKind::Busy => FailureKind::Busy,
            ErrorKind::Limit => FailureKind::Limit,
            ErrorKind::Value => FailureKind::Value,
            ErrorKind::Packages => FailureKind::Packages,
            ErrorKind::Journal => FailureKind::Journal,
            _ => FailureKind::Died,
        };
        Self {
            kind,
            message: in_fields(&error.to_string()),
            hint: error.hint().map(in_fields),
            session_alive: error.session_survives(),
        }
    }
}
