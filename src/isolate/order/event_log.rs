//! What has happened in a recorded session and the host does not know yet. The host gets it before
//! the next request, so before anybody can see what came of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::happened::Event;
use crate::protocol::{Host, HostRequest};

/// The maximum size of events that wait for a request, in bytes.
const MOST_BYTES: usize = 32 << 10;

#[derive(Default)]
pub(crate) struct EventLog {
    is_on: AtomicBool,
    /// How many requests there were that a journal has.
    requests: AtomicU64,
    events: Mutex<Vec<u8>>,
}

impl EventLog {
    /// Begins with no requests, unless the session is recorded already.
    pub(crate) fn start(&self) {
        if !self.is_on.swap(true, Ordering::Relaxed) {
            self.requests.store(0, Ordering::Relaxed);
        }
    }

    /// Returns how many requests there were that a journal has.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Keeps an event for the host.
    pub(crate) fn push(&self, event: &Event, host: &dyn Host) {
        let mut events = self.lock();
        // Fails only if there is no memory.
        let _ = event.append_to(&mut events);
        let is_much = events.len() >= MOST_BYTES;
        drop(events);
        if is_much {
            self.tell(host);
        }
    }

    /// Tells the host what has happened before a request. A session that is not recorded pays for
    /// one load.
    pub(crate) fn before(&self, request: &HostRequest<'_>, host: &dyn Host) {
        if !self.is_on.load(Ordering::Relaxed) || matches!(request, HostRequest::Happened(_)) {
            return;
        }
        self.tell(host);
        if request.is_recorded() {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same before a file is read.
    pub(crate) fn before_read(&self, host: &dyn Host) {
        if self.is_on.load(Ordering::Relaxed) {
            self.tell(host);
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells the host what has happened.
    pub(crate) fn tell(&self, host: &dyn Host) {
        let events = std::mem::take(&mut *self.lock());
        if !events.is_empty() {
            host.call(HostRequest::Happened(&events));
        }
    }

    /// Whether the session is recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
