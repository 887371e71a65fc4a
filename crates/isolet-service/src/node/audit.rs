//! A node's audit log: the accesses that sessions were allowed or denied, by tenant.
//!
//! Nothing may happen unlogged: while the log cannot be written, or a tenant's quota of it is used
//! up, no session starts and every access is denied.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isolet::AuditEvent;

use super::Refusal;
use crate::core::{Listener, Owner};
use isolet::internals::lock;

/// The period of a tenant's quota.
const DAY: Duration = Duration::from_hours(24);

/// An entry of the audit log about a session.
pub enum AuditRecord<'a> {
    Created,
    /// The node was started again, and goes on with the session.
    Restored,
    /// An access was allowed or denied.
    Access(&'a AuditEvent),
    /// A run ended, with this outcome.
    Ran(&'a str),
    /// The session ended, for this reason.
    Ended(&'a str),
    /// This many denied accesses of the tenant are not in the log, because its quota was used up.
    Dropped(u64),
}

/// The destination of a node's audit log.
pub trait Sink: Send + Sync {
    /// Writes an entry of a tenant's session, given its id, and returns the entry's length in
    /// bytes. An entry that cannot be written now is buffered, as far as the buffer has room.
    fn write(&self, tenant: &str, session: &str, record: &AuditRecord<'_>) -> u64;

    /// Writes buffered entries, if a retry is due. Fails with the reason if the log cannot be
    /// written.
    fn check(&self) -> Result<(), String>;

    /// Writes buffered entries, and the number of lost ones.
    fn end(&self);
}

/// What a node does while its audit log cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    /// No session starts, and every access is denied.
    #[default]
    Refuse,
    /// Sessions and accesses continue; lost entries are counted.
    GoOn,
}

/// The audit log of a node, if it has one.
#[derive(Default)]
pub(crate) struct Audit {
    sink: Option<Box<dyn Sink>>,
    outage: Outage,
    tenants: Mutex<HashMap<String, Share>>,
}

/// A tenant's share of the log.
struct Share {
    /// The maximum number of bytes in a day.
    quota: u64,
    /// The start of the current day of the quota.
    since: Instant,
    bytes: u64,
    /// Denied accesses that were left out of the log since the quota was used up.
    dropped: u64,
}

impl Share {
    /// Returns how long the tenant's quota stays used up; `None` if it has bytes left.
    fn used_up(&mut self) -> Option<Duration> {
        let passed = self.since.elapsed();
        if passed >= DAY {
            (self.since, self.bytes) = (Instant::now(), 0);
        }
        (self.bytes >= self.quota).then(|| DAY.saturating_sub(passed))
    }
}

impl Audit {
    pub(crate) fn new(sink: Option<Box<dyn Sink>>, outage: Outage) -> Self {
        Self { sink, outage, ..Self::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Sets each tenant's quota of bytes a day.
    pub(crate) fn set_quotas<'a>(&self, quotas: impl Iterator<Item = (&'a str, u64)>) {
        let mut tenants = lock(&self.tenants);
        for (name, quota) in quotas {
            let new = || Share { quota, since: Instant::now(), bytes: 0, dropped: 0 };
            tenants.entry(name.to_owned()).or_insert_with(new).quota = quota;
        }
    }

    /// Fails if the tenant's activity cannot be logged.
    pub(crate) fn check(&self, tenant: &str) -> Result<(), Refusal> {
        let Some(sink) = &self.sink else { return Ok(()) };
        let checked = sink.check();
        if self.outage == Outage::Refuse {
            checked.map_err(Refusal::Unlogged)?;
        }
        match lock(&self.tenants).get_mut(tenant).and_then(|its| Some((its.quota, its.used_up()?)))
        {
            Some((quota, after)) => Err(Refusal::AuditQuota(quota, after)),
            None => Ok(()),
        }
    }

    /// Fails if an access of the tenant's session cannot be logged.
    fn check_access(&self, tenant: &str) -> Result<(), String> {
        match self.check(tenant) {
            Ok(()) => Ok(()),
            Err(Refusal::AuditQuota(quota, _)) => Err(over_quota(quota)),
            // The guest must not learn about the host's disks.
            Err(_) => Err("the audit log cannot be written".to_owned()),
        }
    }

    pub(crate) fn write(&self, tenant: &str, id: &str, record: &AuditRecord<'_>) {
        let Some(sink) = &self.sink else { return };
        let mut dropped = 0;
        if let Some(share) = lock(&self.tenants).get_mut(tenant) {
            if let (Some(_), AuditRecord::Access(_)) = (share.used_up(), record) {
                share.dropped += 1;
                return;
            }
            dropped = std::mem::take(&mut share.dropped);
        }
        let mut bytes = 0;
        if dropped > 0 {
            bytes += sink.write(tenant, id, &AuditRecord::Dropped(dropped));
        }
        bytes += sink.write(tenant, id, record);
        if let Some(share) = lock(&self.tenants).get_mut(tenant) {
            share.bytes = share.bytes.saturating_add(bytes);
        }
    }

    /// Writes buffered entries if a retry is due. Called periodically, so that an idle node retries
    /// too.
    pub(crate) fn keep_up(&self) {
        if let Some(sink) = &self.sink {
            // The next request reports the failure.
            let _ = sink.check();
        }
    }

    /// Writes buffered entries when the node ends.
    pub(crate) fn end(&self) {
        if let Some(sink) = &self.sink {
            sink.end();
        }
    }
}

/// The owner of a session, as the audit log names it.
pub(crate) struct AuditOwner {
    audit: Arc<Audit>,
    tenant: String,
    id: String,
    is_durable: bool,
}

impl AuditOwner {
    pub(crate) fn new(audit: &Arc<Audit>, tenant: &str, id: &str, is_durable: bool) -> Self {
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        Self { audit: Arc::clone(audit), tenant, id, is_durable }
    }
}

impl Owner for AuditOwner {
    fn name(&self) -> String {
        self.id.clone()
    }

    fn audit(&self, event: &AuditEvent) {
        // An access without a session belongs to no tenant.
        if !self.id.is_empty() {
            self.audit.write(&self.tenant, &self.id, &AuditRecord::Access(event));
        }
    }

    fn may_access(&self) -> Result<(), String> {
        self.audit.check_access(&self.tenant)
    }

    /// A call that another process has asked is answered under its number.
    fn keeps_call_ids(&self) -> bool {
        self.is_durable
    }

    fn listener(&self) -> Option<Arc<dyn Listener>> {
        None
    }
}

/// Returns the message for a tenant whose quota of the audit log is used up.
pub fn over_quota(quota: u64) -> String {
    format!("bytes of the audit log in a day by this key: limit {quota}")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A log that can be written or not, of entries of 10 bytes.
    #[derive(Clone, Default)]
    struct Told(Arc<AtomicBool>);

    impl Sink for Told {
        fn write(&self, _: &str, _: &str, _: &AuditRecord<'_>) -> u64 {
            10
        }

        fn check(&self) -> Result<(), String> {
            if self.0.load(Ordering::Relaxed) { Err("no room".to_owned()) } else { Ok(()) }
        }

        fn end(&self) {}
    }

    fn audit(told: &Told, outage: Outage) -> Audit {
        let audit = Audit::new(Some(Box::new(told.clone())), outage);
        audit.set_quotas([("a", 30), ("b", 1000)].into_iter());
        audit
    }

    #[test]
    fn a_tenant_has_its_own_part_of_the_log_and_no_other_misses_it() {
        let audit = audit(&Told::default(), Outage::Refuse);
        for _ in 0..3 {
            assert!(audit.check("a").is_ok() && audit.check_access("a").is_ok());
            audit.write("a", "one", &AuditRecord::Ran("completed"));
        }
        let refusal = audit.check("a").unwrap_err();
        assert!(
            matches!(refusal, Refusal::AuditQuota(30, after) if after <= DAY && after > DAY / 2),
            "{refusal:?}"
        );
        assert_eq!(audit.check_access("a"), Err(over_quota(30)));
        assert!(audit.check("b").is_ok() && audit.check_access("b").is_ok());
        audit.set_quotas([("a", 31)].into_iter());
        assert!(audit.check("a").is_ok());
    }

    #[test]
    fn without_a_log_nothing_is_allowed_unless_the_node_is_told_to_go_on() {
        let told = Told::default();
        let strict = audit(&told, Outage::Refuse);
        let lenient = audit(&told, Outage::GoOn);
        told.0.store(true, Ordering::Relaxed);
        let refusal = strict.check("b").unwrap_err();
        assert!(matches!(&refusal, Refusal::Unlogged(why) if why == "no room"), "{refusal:?}");
        // What is known of no session is not allowed either.
        assert!(strict.check_access("b").is_err() && strict.check_access("").is_err());
        assert!(lenient.check("b").is_ok() && lenient.check_access("b").is_ok());
        told.0.store(false, Ordering::Relaxed);
        assert!(strict.check("b").is_ok() && strict.check_access("b").is_ok());
    }
}
