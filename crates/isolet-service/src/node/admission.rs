//! Who may ask a node for something, by what a request's head proves.

use std::sync::Arc;

use super::{Credentials, Node, Refusal, Tenant};

impl Node {
    /// Returns the tenant of a request: that of its key, or that of the session that the request is
    /// about, if it has the session's token.
    ///
    /// # Errors
    ///
    /// Fails with [`Refusal::Gone`] if the session is gone, as far as this client may know it, and
    /// with [`Refusal::Key`] otherwise.
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
