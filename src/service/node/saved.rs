//! Snapshots: saved sessions that new ones begin as.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use super::super::lock;
use super::Refusal;
use super::contexts::Contexts;
use super::store::Saved;
use super::tenants::Tenant;

/// A snapshot, as a list has it.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    /// What its owner calls it, if anything.
    pub(crate) name: Option<String>,
    /// The session that it was made of.
    pub(crate) session: String,
    pub(crate) created: SystemTime,
}

/// The snapshots of a node.
#[derive(Default)]
pub(super) struct Snapshots(Mutex<Vec<Kept>>);

pub(super) struct Kept {
    pub(super) snapshot: Snapshot,
    pub(super) tenant: String,
    pub(super) saved: Arc<Saved>,
    pub(super) contexts: Contexts,
    /// When its time is over.
    pub(super) until: Instant,
}

impl Snapshots {
    pub(super) fn add(&self, kept: Kept) {
        lock(&self.0).push(kept);
    }

    /// Returns the file that a session of the tenant begins as, and its contexts.
    pub(super) fn begin(
        &self,
        tenant: &Tenant,
        id: &str,
    ) -> Result<(Arc<Saved>, Contexts), Refusal> {
        let all = lock(&self.0);
        let is_it = |kept: &&Kept| kept.snapshot.id == id && kept.tenant == tenant.name;
        let kept = all.iter().find(is_it).ok_or_else(|| Refusal::NoSnapshot(id.to_owned()))?;
        Ok((Arc::clone(&kept.saved), kept.contexts.copy()))
    }

    /// Returns a tenant's snapshots, the oldest first.
    pub(super) fn of(&self, tenant: &Tenant) -> Vec<Snapshot> {
        let all = lock(&self.0);
        let own = all.iter().filter(|kept| kept.tenant == tenant.name);
        own.map(|kept| kept.snapshot.clone()).collect()
    }

    /// Removes a snapshot. Returns `true` if the tenant had it.
    pub(super) fn remove(&self, tenant: &Tenant, id: &str) -> bool {
        let mut all = lock(&self.0);
        let place =
            all.iter().position(|kept| kept.snapshot.id == id && kept.tenant == tenant.name);
        place.map(|place| all.remove(place)).is_some()
    }

    /// Removes those of tenants that are gone.
    pub(super) fn forget_of(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.0).retain(|kept| !is_gone(&kept.tenant));
    }

    /// Removes those whose time is over.
    pub(super) fn forget_old(&self) {
        let now = Instant::now();
        lock(&self.0).retain(|kept| kept.until > now);
    }
}
