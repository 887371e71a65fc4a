//! Snapshots: saved sessions that new ones can start from.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use super::Refusal;
use super::contexts::Contexts;
use super::store::Saved;
use super::tenants::Tenant;
use isolet::internals::lock;

/// A snapshot, as lists show it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub id: String,
    /// The name that its owner has given it.
    pub name: Option<String>,
    /// The session that it is a snapshot of.
    pub session: String,
    pub created: SystemTime,
}

/// The snapshots of a node.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<Vec<Kept>>);

pub(crate) struct Kept {
    pub(crate) snapshot: Snapshot,
    pub(crate) tenant: String,
    pub(crate) saved: Arc<Saved>,
    pub(crate) contexts: Contexts,
    /// When it expires.
    pub(crate) until: Instant,
}

impl Snapshots {
    pub(crate) fn add(&self, kept: Kept) {
        lock(&self.0).push(kept);
    }

    /// Returns the file and the contexts of a snapshot, for a new session of the tenant.
    pub(crate) fn begin(
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
    pub(crate) fn of(&self, tenant: &Tenant) -> Vec<Snapshot> {
        let all = lock(&self.0);
        let own = all.iter().filter(|kept| kept.tenant == tenant.name);
        own.map(|kept| kept.snapshot.clone()).collect()
    }

    /// Removes a snapshot. Returns `true` if the tenant had it.
    pub(crate) fn remove(&self, tenant: &Tenant, id: &str) -> bool {
        let mut all = lock(&self.0);
        let place =
            all.iter().position(|kept| kept.snapshot.id == id && kept.tenant == tenant.name);
        place.map(|place| all.remove(place)).is_some()
    }

    /// Removes the snapshots of removed tenants.
    pub(crate) fn forget_of(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.0).retain(|kept| !is_gone(&kept.tenant));
    }

    /// Removes expired snapshots.
    pub(crate) fn forget_old(&self) {
        let now = Instant::now();
        lock(&self.0).retain(|kept| kept.until > now);
    }
}
