//! Places for sessions on a node, and those who wait for one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::super::lock;
use super::Refusal;
use super::tenants::Tenant;

/// How many sessions there are, from before each starts until it has ended.
#[derive(Default)]
pub(super) struct Counts(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    all: usize,
    by_tenant: HashMap<String, usize>,
}

/// One of a tenant's sessions.
pub(super) struct Slot {
    counts: Arc<Counts>,
    tenant: String,
}

impl Counts {
    /// Takes the place of one more session, of which a node may have `most`.
    pub(super) fn take(self: &Arc<Self>, tenant: &Tenant, most: usize) -> Result<Slot, Refusal> {
        let mut counted = lock(&self.0);
        if counted.all >= most {
            return Err(Refusal::Full(most));
        }
        let count = counted.by_tenant.entry(tenant.name.clone()).or_default();
        let quota = tenant.quotas.sessions;
        if *count >= quota {
            return Err(Refusal::Quota(format!("sessions of this key: limit {quota}")));
        }
        *count += 1;
        counted.all += 1;
        Ok(Slot { counts: Arc::clone(self), tenant: tenant.name.clone() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counted = lock(&self.counts.0);
        counted.all -= 1;
        if let Some(count) = counted.by_tenant.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counted.by_tenant.remove(&self.tenant);
            }
        }
    }
}

/// Tells those who wait for room that there is some.
pub(super) struct Vacated(pub(super) Arc<Notify>);

impl Drop for Vacated {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ceiling::Ceiling;
    use super::super::tenants::Quotas;
    use super::*;

    fn tenant(name: &str, sessions: usize) -> Tenant {
        let quotas = Quotas { sessions, ..Quotas::default() };
        Tenant::new(name.to_owned(), Ceiling::default(), quotas)
    }

    #[test]
    fn a_place_is_taken_until_it_is_dropped_and_a_refused_one_takes_none() {
        let counts = Arc::new(Counts::default());
        let (a, b) = (tenant("a", 2), tenant("b", 0));
        let places = [counts.take(&a, 3).ok().unwrap(), counts.take(&a, 3).ok().unwrap()];
        assert!(matches!(counts.take(&a, 3), Err(Refusal::Quota(_))));
        assert!(matches!(counts.take(&b, 3), Err(Refusal::Quota(_))));
        assert!(matches!(counts.take(&b, 2), Err(Refusal::Full(2))));
        drop(places);
        let counted = lock(&counts.0);
        assert_eq!((counted.all, counted.by_tenant.get("a")), (0, None));
    }
}
