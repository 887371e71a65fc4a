//! The audit log of a node: entries with the tenant and the session's id.

use std::time::SystemTime;

use serde_json::{Value, json};

use isolet_service::node::{AuditRecord, Outage, Sink};
use isolet_support::audit_line::{line, seconds};
use isolet_support::journal::Journal;

/// Describes what a node does while its log cannot be written.
pub(super) const fn meanwhile(outage: Outage) -> &'static str {
    match outage {
        Outage::Refuse => "nothing starts and no access is allowed until it can be",
        Outage::GoOn => "sessions go on without it, as `audit_outage` says",
    }
}

/// The log of a node.
pub(super) struct AuditLog(pub(super) Journal);

impl Sink for AuditLog {
    fn write(&self, tenant: &str, session: &str, record: &AuditRecord<'_>) -> u64 {
        self.0.append(&entry(tenant, session, record))
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }

    fn end(&self) {
        self.0.end();
    }
}

fn entry(tenant: &str, session: &str, record: &AuditRecord<'_>) -> Value {
    let time = seconds(SystemTime::now());
    let mut entry = match record {
        // An access has its own time.
        AuditRecord::Access(event) => line(event),
        AuditRecord::Created => json!({"time": time, "event": "created"}),
        AuditRecord::Restored => json!({"time": time, "event": "restored"}),
        AuditRecord::Ran(status) => json!({"time": time, "event": "ran", "status": status}),
        AuditRecord::Ended(reason) => json!({"time": time, "event": "ended", "reason": reason}),
        AuditRecord::Dropped(events) => json!({"time": time, "event": "dropped", "events": events}),
    };
    entry["tenant"] = tenant.into();
    entry["session"] = session.into();
    entry
}
