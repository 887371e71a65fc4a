//! Why a request failed, in the form that all wires pass on.

use isolet::{Error, ErrorKind};

use super::vocabulary::in_fields;

/// A request that failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// What failed, for programs.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// What helps, in the terms of a client.
    pub(crate) hint: Option<String>,
    /// Whether the session that the request was about can go on.
    pub(crate) session_alive: bool,
}

impl Failure {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, session_alive: true }
    }

    /// A message that this protocol does not have.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new("protocol", message)
    }

    /// An invalid argument or policy.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new("config", message)
    }

    /// What a client may not ask for.
    #[cfg(feature = "serve")]
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new("denied", message)
    }

    /// More than there may be.
    #[cfg(feature = "serve")]
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new("limit", message)
    }

    /// The same with what helps.
    #[cfg(feature = "serve")]
    pub(crate) fn with_hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }

    /// Packages that cannot be had.
    #[cfg(feature = "serve")]
    pub(super) fn packages(message: impl Into<String>) -> Self {
        Self::new("packages", message)
    }

    pub(super) fn busy(session: i64) -> Self {
        let message = format!("session {session} is busy, a run is under way in it");
        Self::new("busy", message)
    }

    pub(super) fn closed(message: impl Into<String>) -> Self {
        Self { session_alive: false, ..Self::new("closed", message) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Config => "config",
            ErrorKind::Assets => "assets",
            ErrorKind::Start => "start",
            ErrorKind::Closed => "closed",
            ErrorKind::Busy => "busy",
            ErrorKind::Limit => "limit",
            ErrorKind::Value => "value",
            ErrorKind::Packages => "packages",
            _ => "died",
        };
        Self {
            kind,
            message: in_fields(&error.to_string()),
            hint: error.hint().map(in_fields),
            session_alive: error.session_survives(),
        }
    }
}
