//! Sessions by names that clients choose. Each tenant has its own namespace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::session::{NewSession, SessionLease};
use super::tenants::Tenant;
use super::{Node, Refusal};
use isolet::internals::lock;

/// The maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The id of a session. Locked while the session starts.
type Id = Arc<tokio::sync::Mutex<Option<String>>>;

/// The ids of sessions by tenant and name.
#[derive(Default)]
pub(crate) struct NamedSessions(Mutex<HashMap<(String, String), Id>>);

impl NamedSessions {
    fn id(&self, tenant: &Tenant, name: &str) -> Result<Id, Refusal> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            let length = name.len();
            return Err(Refusal::Unreadable(format!(
                "the session's name has {length} bytes, and has to have 1 to {MAX_NAME_BYTES}"
            )));
        }
        let key = (tenant.name.clone(), name.to_owned());
        Ok(Arc::clone(lock(&self.0).entry(key).or_default()))
    }

    /// Removes the names of ended sessions.
    pub(crate) fn forget_gone(&self, is_there: impl Fn(&str) -> bool) {
        lock(&self.0).retain(|_, id| match id.try_lock() {
            // A request may be starting it.
            Ok(known) => Arc::strong_count(id) > 1 || known.as_deref().is_some_and(&is_there),
            Err(_) => true,
        });
    }
}

impl Node {
    /// Returns a tenant's session of this name. Starts one if there is none, waiting for room for
    /// at most `patience`. The second value is `true` for a new session.
    pub async fn named(
        &self,
        tenant: &Arc<Tenant>,
        name: &str,
        new: NewSession,
        patience: Duration,
    ) -> Result<(SessionLease, bool), Refusal> {
        let id = self.named.id(tenant, name)?;
        let mut id = id.lock().await;
        if let Some(id) = &*id
            && let Ok(used) = self.table.get(&tenant.name, id)
        {
            return Ok((used, false));
        }
        let used = self.create_patiently(tenant, new, patience).await?;
        *id = Some(used.handle().to_owned());
        Ok((used, true))
    }

    /// Returns a tenant's session of this name, if there is one.
    pub async fn find_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<SessionLease>, Refusal> {
        let id = self.named.id(tenant, name)?;
        let id = id.lock().await;
        Ok(id.as_ref().and_then(|id| self.table.get(&tenant.name, id).ok()))
    }
}
