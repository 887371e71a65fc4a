//! Authentication: which tenant a request belongs to, by its key or its session's token.

use std::sync::Arc;

use super::{Credentials, Node, Refusal, Tenant};

impl Node {
    /// Returns the tenant of a request: that of its key or, if the request has a session's token,
    /// that of the session.
    ///
    /// # Errors
    ///
    /// Fails with [`Refusal::Gone`] if the token proves that the session existed and it has ended,
    /// with [`Refusal::Draining`] if it goes on when the node is started again, and with
    /// [`Refusal::Key`] otherwise.
    pub fn authenticate(
        &self,
        who: &Credentials,
        about: Option<&str>,
    ) -> Result<Arc<Tenant>, Refusal> {
        if let Some(tenant) = self.tenants().of(who.key.as_deref()) {
            return Ok(Arc::clone(tenant));
        }
        let by_token = about.map(|id| self.find(who, id));
        self.counted(match by_token {
            Some(Ok(used)) => Ok(Arc::clone(&used.session().tenant)),
            Some(Err(left @ (Refusal::Gone(_) | Refusal::Draining))) => Err(left),
            // The token proves that it is the client's.
            Some(Err(restoring @ Refusal::Restoring)) => {
                about.and_then(|id| self.restoring_tenant(id)).ok_or(restoring)
            }
            _ => Err(Refusal::Key),
        })
    }
}
