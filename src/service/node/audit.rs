//! What a node's audit log has: what sessions were allowed and denied, with their tenants.

use std::collections::HashMap;
use std::sync::Mutex;

use isolet::AuditEvent;

use super::super::lock;

/// What has happened in a session.
pub(crate) enum Happened<'a> {
    Created,
    /// An access was allowed or denied.
    Access(&'a AuditEvent),
    /// A run has ended so.
    Ran(&'a str),
    /// The session has ended, for this reason.
    Ended(&'a str),
}

/// Writes an entry of a tenant's session, by its id.
pub(crate) type Sink = Box<dyn Fn(&str, &str, Happened<'_>) + Send + Sync>;

/// The audit log of a node, if it has one.
#[derive(Default)]
pub(super) struct Audit {
    sink: Option<Sink>,
    /// The tenant and the id of each session, by its number at the service.
    sessions: Mutex<HashMap<i64, (String, String)>>,
}

impl Audit {
    pub(super) fn new(sink: Option<Sink>) -> Self {
        Self { sink, sessions: Mutex::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Says whose session a number is from now on.
    pub(super) fn name(&self, number: i64, tenant: &str, id: &str) {
        if self.is_on() {
            lock(&self.sessions).insert(number, (tenant.to_owned(), id.to_owned()));
            self.write(number, Happened::Created);
        }
    }

    pub(super) fn write(&self, number: i64, happened: Happened<'_>) {
        let Some(sink) = &self.sink else { return };
        let named = lock(&self.sessions).get(&number).cloned();
        if let Some((tenant, id)) = named {
            sink(&tenant, &id, happened);
        }
    }

    /// Says that a session has ended. Nothing more of it is written.
    pub(super) fn forget(&self, number: i64, reason: &str) {
        self.write(number, Happened::Ended(reason));
        if self.is_on() {
            lock(&self.sessions).remove(&number);
        }
    }
}
