//! The audit log of a node: lines of JSON, each with the tenant and the session's id.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;
use serde_json::{Value, json};

use crate::cli::audit::{Log, line, seconds};
use crate::service::node::{Happened, Sink};

/// Opens the log. A node that cannot write to it ends: what is not logged must not happen.
pub(super) fn open(path: &Path) -> Result<Sink> {
    let log = Log::open(path)?;
    Ok(Box::new(move |tenant, session, happened| log.write(&entry(tenant, session, &happened))))
}

fn entry(tenant: &str, session: &str, happened: &Happened<'_>) -> Value {
    let mut entry = match happened {
        Happened::Access(event) => line(event),
        Happened::Created => json!({"event": "created"}),
        Happened::Ran(status) => json!({"event": "ran", "status": status}),
        Happened::Ended(reason) => json!({"event": "ended", "reason": reason}),
    };
    if entry.get("time").is_none() {
        entry["time"] = seconds(SystemTime::now()).into();
    }
    entry["tenant"] = tenant.into();
    entry["session"] = session.into();
    entry
}
