//! The log of `--audit`: accesses, and calls of other servers' tools, as lines of JSON.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;
use isolet_mcp::{CallOutcome, CallRecord, Verdict};
use isolet_support::audit_line::{open, seconds};
use serde_json::{Value, json};

use crate::show::exit;
use isolet_support::journal::Journal;
use isolet_support::json as lines;

/// A file that lines are appended to.
pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        open(path).map(Self)
    }

    /// Appends a line, or ends the process: if an access cannot be logged, it must not happen, and
    /// nothing after it.
    pub(crate) fn write(&self, object: &Value) {
        let mut line = Vec::new();
        // In one piece, because others append to the file too.
        let written =
            lines::write_line(&mut line, object).and_then(|()| (&self.0).write_all(&line));
        if let Err(error) = written {
            let _ = writeln!(std::io::stderr(), "error: the audit log cannot be written: {error}");
            std::process::exit(exit::FAILED.into());
        }
    }
}

/// Says whether something can be logged. The guest learns nothing of the host's disks.
pub(crate) fn check(journal: &Journal) -> Result<(), String> {
    journal.check().map_err(|_| "the audit log cannot be written".to_owned())
}

/// Returns the JSON object of a call that has ended. `reason` is the text of the exception that the
/// guest has got.
pub(crate) fn call_line(call: &CallRecord) -> Value {
    let (outcome, reason) = match &call.outcome {
        CallOutcome::Returned => ("returned", None),
        CallOutcome::Raised { type_name, message } => (&**type_name, Some(message)),
        _ => ("cancelled", None),
    };
    json!({
        "time": seconds(SystemTime::now()),
        "session": call.session_id,
        "allowed": call.verdict == Verdict::Allow,
        "access": "server_tool",
        "reason": reason,
        "run": call.run_id,
        "call": call.call_id,
        "server": call.server,
        "tool": call.tool,
        "decided_by": call.decided_by.to_string(),
        "arguments_hash": call.arguments_hash,
        "bytes_in": call.bytes_in,
        "bytes_out": call.bytes_out,
        "ms": call.duration.as_secs_f64() * 1000.0,
        "outcome": outcome,
    })
}
