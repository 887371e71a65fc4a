//! Limits how many exchanges of a session wait, are under way, and are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::NetError;
use super::limits::NetLimits;

pub(super) struct Admission {
    concurrent: Arc<Semaphore>,
    open: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Admission {
    pub(super) fn new(limits: &NetLimits) -> Self {
        let semaphore =
            |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Self {
            concurrent: semaphore(limits.concurrent),
            open: semaphore(limits.open),
            waiting: Arc::default(),
        }
    }

    /// Returns the permit of an exchange, which queues it if necessary.
    pub(super) fn permit(&self, limits: &NetLimits) -> Result<ExchangePermit, NetError> {
        let (concurrent, open) = (Arc::clone(&self.concurrent), Arc::clone(&self.open));
        let turn = match Arc::clone(&concurrent).try_acquire_owned() {
            Ok(permit) => Turn::Now(permit),
            Err(_) => Turn::Later(concurrent, Waiting::new(&self.waiting, limits)?),
        };
        Ok(ExchangePermit { turn, open, limit: limits.open })
    }
}

/// Permission to run one exchange, now or in turn.
pub(super) struct ExchangePermit {
    turn: Turn,
    open: Arc<Semaphore>,
    limit: usize,
}

enum Turn {
    Now(OwnedSemaphorePermit),
    Later(Arc<Semaphore>, Waiting),
}

impl ExchangePermit {
    /// Waits for the exchange's turn. Returns the permit to be under way and the permit to be open.
    pub(super) async fn turn(
        self,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), NetError> {
        let under_way = match self.turn {
            Turn::Now(permit) => permit,
            Turn::Later(concurrent, _waiting) => {
                concurrent.acquire_owned().await.map_err(|_| NetError::closed())?
            }
        };
        let limit = self.limit as u64;
        let open = self.open.try_acquire_owned();
        let open = open.map_err(|_| NetError::limit("open exchanges", limit, limit + 1))?;
        Ok((under_way, open))
    }
}

/// One waiting exchange, counted until it is dropped.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(waiting: &Arc<AtomicUsize>, limits: &NetLimits) -> Result<Self, NetError> {
        let this = Self(Arc::clone(waiting));
        let before = this.0.fetch_add(1, Ordering::Relaxed);
        if before >= limits.waiting {
            let (limit, needed) = (limits.waiting as u64, before as u64 + 1);
            return Err(NetError::limit("waiting exchanges", limit, needed));
        }
        Ok(this)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
