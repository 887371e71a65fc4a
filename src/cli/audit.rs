//! The log of `--audit`: accesses, and calls of other servers' tools, as lines of JSON.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isolet::mcp::{CallOutcome, CallRecord, Verdict};
use isolet::{Access, AuditEvent};
use serde_json::{Value, json};

use super::journal::Journal;
use super::{exit, json as lines};

/// A file that lines are appended to.
pub(in crate::cli) struct Log(File);

/// Opens a file that lines are appended to.
pub(in crate::cli) fn open(path: &Path) -> Result<File> {
    let mut options = File::options();
    // It says what guests of all tenants do, so only its owner reads it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.create(true).append(true).open(path);
    file.with_context(|| format!("cannot open `{}`", path.display()))
}

impl Log {
    pub(super) fn open(path: &Path) -> Result<Self> {
        open(path).map(Self)
    }

    /// Appends a line, or ends the process: if an access cannot be logged, it must not happen, and
    /// nothing after it.
    pub(super) fn write(&self, object: &Value) {
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
pub(super) fn check(journal: &Journal) -> Result<(), String> {
    journal.check().map_err(|_| "the audit log cannot be written".to_owned())
}

/// Returns the JSON object of a call that has ended. `reason` is the text of the exception that the
/// guest has got.
pub(super) fn call_line(call: &CallRecord) -> Value {
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

/// Returns the JSON object of an event. Its keys are `time` (seconds since 1970), `session`,
/// `allowed`, `access` (the kind), `reason`, and the keys of that kind.
pub(in crate::cli) fn line(event: &AuditEvent) -> Value {
    let (access, details) = match &event.access {
        Access::Network { method, scheme, host, port, addresses, hop } => (
            "network",
            json!({
                "method": method, "scheme": scheme, "host": host, "port": port,
                "addresses": addresses, "hop": hop,
            }),
        ),
        Access::File { operation, path } => {
            ("file", json!({ "operation": operation, "path": path }))
        }
        Access::Package { name } => ("package", json!({ "name": name })),
        Access::Module { sha256 } => ("module", json!({ "sha256": sha256 })),
        Access::Tool { name } => ("tool", json!({ "name": name })),
        Access::Dropped { events } => ("dropped", json!({ "events": events })),
        _ => ("other", json!({})),
    };
    let mut line = json!({
        "time": seconds(event.time),
        "session": event.session,
        "allowed": event.allowed,
        "access": access,
        "reason": event.reason,
    });
    if let (Value::Object(line), Value::Object(details)) = (&mut line, details) {
        line.extend(details);
    }
    line
}

pub(in crate::cli) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
