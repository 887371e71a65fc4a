//! Lends the library's session to who runs code in it by itself, such as a Jupyter kernel.

use isolet::Session;
use tokio::sync::oneshot;

/// A session of the library that its entry has lent. Until the [`Loan`] is dropped, commands for
/// the entry wait; one that closes it kills the session.
pub struct LentSession {
    pub session: Session,
    pub loan: Loan,
}

/// Proof that a session is lent. Its holder drops it after the session.
pub struct Loan(#[expect(dead_code, reason = "dropping it ends the loan")] oneshot::Sender<()>);

impl LentSession {
    /// Lends a session. The receiver's end is the end of the loan.
    pub(super) fn new(session: Session) -> (Self, oneshot::Receiver<()>) {
        let (sender, ended) = oneshot::channel();
        (Self { session, loan: Loan(sender) }, ended)
    }
}
