//! The audit log: accesses as lines of JSON in a file that only its owner reads.

use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isolet::{Access, AuditEvent};
use serde_json::{Value, json};

/// Opens a file that lines are appended to.
pub fn open(path: &Path) -> Result<File> {
    let mut options = File::options();
    // It says what guests of all tenants do, so only its owner reads it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.create(true).append(true).open(path);
    file.with_context(|| format!("cannot open `{}`", path.display()))
}

/// Returns the JSON object of an event. Its keys are `time` (seconds since 1970), `session`,
/// `allowed`, `access` (the kind), `reason`, and the keys of that kind.
pub fn line(event: &AuditEvent) -> Value {
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

pub fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
