//! The record of each call of a server's tool.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::hub::policy::{DecidedBy, Verdict};
use crate::tool::definition::canonical;

/// A call that the guest made, and what became of it. No argument and no result is in it, and no
/// secret of the configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallRecord {
    /// The number of the session, as [`ToolContext::session_id`](isolet::ToolContext::session_id).
    pub session_id: u64,
    /// The number of the run, as [`ToolContext::run_id`](isolet::ToolContext::run_id).
    pub run_id: u64,
    /// The number of the call, as [`ToolContext::call_id`](isolet::ToolContext::call_id).
    pub call_id: u64,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name, as the server has it.
    pub tool: String,
    /// The decision: [`Verdict::Allow`] or [`Verdict::Deny`], or [`Verdict::Ask`] if the call ended
    /// before there was an answer.
    pub verdict: Verdict,
    /// The rule, person or check that decided.
    pub decided_by: DecidedBy,
    /// The BLAKE3 hash of the canonical JSON of the arguments, in hexadecimal. Empty if they were
    /// refused.
    pub arguments_hash: String,
    /// The size of the arguments as JSON, in bytes.
    pub bytes_in: u64,
    /// The size of the result, in bytes.
    pub bytes_out: u64,
    /// The time that the server took.
    pub duration: Duration,
    /// The end of the call.
    pub outcome: CallOutcome,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The guest has the result.
    Returned,
    /// The guest has an exception of this class and with this text.
    Raised {
        /// The name of the class.
        type_name: String,
        /// The text.
        message: String,
    },
    /// The caller no longer waits for the call; the server was notified.
    Cancelled,
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => f.write_str("returned"),
            Self::Raised { type_name, message } => write!(f, "{type_name}: {message}"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// Returns the hash and the size of arguments.
pub(crate) fn measured(arguments: &Map<String, Json>) -> (String, u64) {
    let mut text = String::new();
    canonical(&Json::Object(arguments.clone()), &mut text);
    (blake3::hash(text.as_bytes()).to_hex().to_string(), text.len() as u64)
}
