//! Limits each tenant's requests under way. Each holds a connection, a WebSocket for as long as it
//! is open, so that a tenant without a limit could take all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{Node, Refusal, Tenant};
use isolet::internals::lock;

pub(crate) struct OpenRequests {
    /// The maximum for one tenant.
    most: usize,
    tenants: Mutex<HashMap<String, usize>>,
}

/// Counts as a request under way until it is dropped.
pub struct RequestPermit {
    of: Arc<OpenRequests>,
    tenant: Arc<Tenant>,
}

impl OpenRequests {
    /// A tenant may use half of the connections; the only tenant of a node without keys may use
    /// all.
    pub(crate) fn new(connections: usize, is_open: bool) -> Arc<Self> {
        let most = if is_open { connections } else { (connections / 2).max(1) };
        Arc::new(Self { most, tenants: Mutex::default() })
    }

    /// Counts a request of a tenant.
    fn begin(self: &Arc<Self>, tenant: &Arc<Tenant>) -> Result<RequestPermit, Refusal> {
        let most = tenant.quotas.connections.min(self.most);
        let mut tenants = lock(&self.tenants);
        let count = tenants.get(&tenant.name).copied().unwrap_or_default();
        if count >= most {
            return Err(Refusal::Quota(format!(
                "connections of this key with a request under way, or a WebSocket: limit {most} \
                 (`quotas.connections`, or half of `max_connections`)"
            )));
        }
        tenants.insert(tenant.name.clone(), count + 1);
        Ok(RequestPermit { of: Arc::clone(self), tenant: Arc::clone(tenant) })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let mut tenants = lock(&self.of.tenants);
        if let Some(count) = tenants.get_mut(&self.tenant.name) {
            *count -= 1;
            if *count == 0 {
                tenants.remove(&self.tenant.name);
            }
        }
    }
}

impl Node {
    /// Counts a request of a tenant. Fails if the tenant has the maximum number under way.
    pub fn begin(&self, tenant: &Arc<Tenant>) -> Result<RequestPermit, Refusal> {
        self.counted(self.open_requests.begin(tenant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::ceiling::Ceiling;
    use crate::node::tenants::Quotas;

    fn tenant(name: &str, connections: usize) -> Arc<Tenant> {
        let quotas = Quotas { connections, ..Quotas::default() };
        Arc::new(Tenant::new(name.to_owned(), Ceiling::default(), quotas))
    }

    #[test]
    fn a_tenant_uses_half_of_the_connections_at_most_and_gives_them_back() {
        let all = OpenRequests::new(8, false);
        let (a, b) = (tenant("a", usize::MAX), tenant("b", 1));
        let mut asked: Vec<_> = (0..4).map(|_| all.begin(&a).unwrap()).collect();
        assert!(matches!(all.begin(&a), Err(Refusal::Quota(text)) if text.contains("limit 4 ")));
        let only = all.begin(&b).unwrap();
        assert!(matches!(all.begin(&b), Err(Refusal::Quota(text)) if text.contains("limit 1 ")));
        asked.pop();
        asked.push(all.begin(&a).unwrap());
        assert!(all.begin(&a).is_err());
        drop((asked, only));
        assert!(lock(&all.tenants).is_empty());
        // Where everybody is one tenant, nobody else needs any.
        let (open, everybody) = (OpenRequests::new(2, true), tenant("local", usize::MAX));
        let _both = [open.begin(&everybody).unwrap(), open.begin(&everybody).unwrap()];
        assert!(open.begin(&everybody).is_err());
    }
}
