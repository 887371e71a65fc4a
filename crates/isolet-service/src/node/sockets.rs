//! The WebSockets of a node: limits their number, and closes them when the node shuts down.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Refusal;

/// The maximum number of WebSockets.
const MAX_SOCKETS: u32 = 100_000;

/// How long a shutdown waits for WebSockets to close.
const FAREWELL: Duration = Duration::from_secs(1);

pub struct Sockets {
    permits: Arc<Semaphore>,
    /// Cancelled when the node shuts down.
    end: CancellationToken,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_SOCKETS as usize));
        Self { permits, end: CancellationToken::new() }
    }

    /// Counts a WebSocket until the permit is dropped.
    pub fn take(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let taken = Arc::clone(&self.permits).try_acquire_owned();
        taken.map_err(|_| Refusal::Quota(format!("WebSockets: limit {MAX_SOCKETS}")))
    }

    /// Returns a token that is cancelled at the latest when the node shuts down.
    pub(crate) fn ending(&self) -> CancellationToken {
        self.end.child_token()
    }

    /// Closes all WebSockets, and waits for that.
    pub(crate) async fn end(&self) {
        self.end.cancel();
        let _ = tokio::time::timeout(FAREWELL, self.permits.acquire_many(MAX_SOCKETS)).await;
    }
}
