//! The audit log of a node: entries with the tenant and the session's id.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::cli::audit::{line, seconds};
use crate::cli::journal::Journal;
use crate::service::node::{Happened, Outage, Sink};

/// Says what a node does while its log cannot be written.
pub(super) const fn meanwhile(outage: Outage) -> &'static str {
    match outage {
        Outage::Refuse => "nothing starts and no access is allowed until it can be",
        Outage::GoOn => "sessions go on without it, as `audit_outage` says",
    }
}

impl Sink for Journal {
    fn write(&self, tenant: &str, session: &str, happened: &Happened<'_>) -> u64 {
        self.append(&entry(tenant, session, happened))
    }

    fn check(&self) -> Result<(), String> {
        Self::check(self)
    }

    fn end(&self) {
        Self::end(self);
    }
}

fn entry(tenant: &str, session: &str, happened: &Happened<'_>) -> Value {
    let mut entry = match happened {
        Happened::Access(event) => line(event),
        Happened::Created => json!({"event": "created"}),
        Happened::Ran(status) => json!({"event": "ran", "status": status}),
        Happened::Ended(reason) => json!({"event": "ended", "reason": reason}),
        Happened::Dropped(events) => json!({"event": "dropped", "events": events}),
    };
    if entry.get("time").is_none() {
        entry["time"] = seconds(SystemTime::now()).into();
    }
    entry["tenant"] = tenant.into();
    entry["session"] = session.into();
    entry
}
