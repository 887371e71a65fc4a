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
    /// and with [`Refusal::Key`] otherwise.
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
            Some(Err(gone @ Refusal::Gone(_))) => Err(gone),
            _ => Err(Refusal::Key),
        })
    }
}
