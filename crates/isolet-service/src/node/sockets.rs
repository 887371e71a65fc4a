//! The WebSockets of a node: how many there are, and how they learn that it ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Refusal;

/// The maximum number of WebSockets.
const MAX_SOCKETS: u32 = 100_000;

/// How long a node that ends waits for them.
const FAREWELL: Duration = Duration::from_secs(1);

pub struct Sockets {
    places: Arc<Semaphore>,
    /// Cancelled once the node ends.
    end: CancellationToken,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        let places = Arc::new(Semaphore::new(MAX_SOCKETS as usize));
        Self { places, end: CancellationToken::new() }
    }

    /// Counts one, for as long as what is returned is kept.
    pub fn take(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let taken = Arc::clone(&self.places).try_acquire_owned();
        taken.map_err(|_| Refusal::Quota(format!("WebSockets: limit {MAX_SOCKETS}")))
    }

    /// Returns what is cancelled by the end of the node, at the latest.
    pub(crate) fn ending(&self) -> CancellationToken {
        self.end.child_token()
    }

    /// Has them say that the node ends, and waits for that.
    pub(crate) async fn end(&self) {
        self.end.cancel();
        let _ = tokio::time::timeout(FAREWELL, self.places.acquire_many(MAX_SOCKETS)).await;
    }
}
