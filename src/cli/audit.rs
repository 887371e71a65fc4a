//! Audit events as JSON objects, one per line.

use std::time::{SystemTime, UNIX_EPOCH};

use isolet::{Access, AuditEvent};
use serde_json::{Value, json};

/// Returns the JSON object of an event. Its keys are `time` (seconds since 1970), `session`,
/// `allowed`, `access` (the kind), `reason`, and the keys of that kind.
pub(super) fn line(event: &AuditEvent) -> Value {
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

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
