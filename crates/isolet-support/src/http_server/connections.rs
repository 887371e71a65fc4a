//! The connections that there are, and which one ends when there is no room for another: the
//! oldest that says nothing, and of those whose clients are not known before all others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Limits;

/// The time that the server waits for a descriptor when there is none.
const PAUSE: Duration = Duration::from_millis(50);

/// The most connections that may still hold a descriptor after they were asked to end.
const MAX_ENDING: usize = 64;

pub(super) struct Connections {
    limits: Limits,
    inner: Mutex<Inner>,
    /// Notified when another connection may have become one that can be ended.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    last: u64,
    /// In the order of their age.
    strangers: BTreeMap<u64, Arc<State>>,
    known: BTreeMap<u64, Arc<State>>,
    /// Told to end, and still there.
    ending: usize,
}

/// The state of a connection.
pub(super) struct State {
    number: u64,
    table: Arc<Connections>,
    /// Set once its client was waited for.
    is_silent: AtomicBool,
    /// The requests under way, and what keeps it besides.
    uses: AtomicUsize,
    is_patient: AtomicBool,
    end: CancellationToken,
}

/// Counts as a connection until it is dropped.
pub(super) struct ConnectionPermit(Arc<State>);

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, inner: Mutex::default(), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the permit of a connection. If there is none, ends another connection for it.
    pub(super) async fn acquire(self: &Arc<Self>) -> ConnectionPermit {
        loop {
            let changed = self.changed.notified();
            if let Some(permit) = self.try_acquire() {
                return permit;
            }
            changed.await;
        }
    }

    fn try_acquire(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let mut inner = self.lock();
        let has_strangers = inner.strangers.len() >= self.limits.strangers;
        let is_full = inner.strangers.len() + inner.known.len() >= self.limits.connections;
        if (has_strangers || is_full) && !inner.end_one(is_full && !has_strangers) {
            return None;
        }
        inner.last += 1;
        let state = Arc::new(State {
            number: inner.last,
            table: Arc::clone(self),
            is_silent: AtomicBool::new(false),
            uses: AtomicUsize::new(0),
            is_patient: AtomicBool::new(false),
            end: CancellationToken::new(),
        });
        inner.strangers.insert(state.number, Arc::clone(&state));
        Some(ConnectionPermit(state))
    }

    /// Ends a connection that says nothing, if there is one, and waits for its descriptor.
    pub(super) async fn make_room(&self) {
        self.lock().end_one(true);
        tokio::time::sleep(PAUSE).await;
    }
}

impl Inner {
    /// Tells a connection to end. Returns `false` if there is none that may.
    fn end_one(&mut self, may_be_known: bool) -> bool {
        if self.ending >= MAX_ENDING {
            return false;
        }
        let oldest = |all: &BTreeMap<u64, Arc<State>>| {
            all.iter().find(|(_, state)| state.may_end()).map(|(number, _)| *number)
        };
        let ended = match oldest(&self.strangers) {
            Some(number) => self.strangers.remove(&number),
            None if may_be_known => {
                oldest(&self.known).and_then(|number| self.known.remove(&number))
            }
            None => None,
        };
        self.ending += usize::from(ended.is_some());
        ended.inspect(|state| state.end.cancel()).is_some()
    }
}

impl State {
    /// Its client is known from now on.
    pub(super) fn trust(&self) {
        let mut inner = self.table.lock();
        if let Some(state) = inner.strangers.remove(&self.number) {
            inner.known.insert(self.number, state);
            drop(inner);
            self.table.changed.notify_one();
        }
    }

    /// Its client has sent nothing more, for now.
    pub(super) fn falls_silent(&self) {
        if !self.is_silent.swap(true, Ordering::Relaxed) {
            self.table.changed.notify_one();
        }
    }

    fn may_end(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed) && self.uses.load(Ordering::Relaxed) == 0
    }

    pub(super) fn begin(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn finish(&self) {
        if self.uses.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.table.changed.notify_one();
        }
    }

    /// Keeps the connection from being ended for another one: it speaks another protocol now.
    pub(super) fn keep(&self) {
        self.begin();
        self.be_patient(true);
    }

    pub(super) fn be_patient(&self, is_patient: bool) {
        self.is_patient.store(is_patient, Ordering::Relaxed);
    }

    pub(super) fn is_patient(&self) -> bool {
        self.is_patient.load(Ordering::Relaxed)
    }

    pub(super) async fn shutdown_requested(&self) {
        self.end.cancelled().await;
    }
}

impl ConnectionPermit {
    pub(super) fn state(&self) -> &Arc<State> {
        &self.0
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let State { number, table, .. } = &*self.0;
        let mut inner = table.lock();
        let was_there =
            inner.strangers.remove(number).is_some() || inner.known.remove(number).is_some();
        if !was_there {
            inner.ending -= 1;
        }
        drop(inner);
        table.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections: usize, strangers: usize) -> Arc<Connections> {
        let second = Duration::from_secs(1);
        Connections::new(Limits { connections, strangers, head: second, unread: second })
    }

    fn silent(table: &Arc<Connections>) -> ConnectionPermit {
        let permit = table.try_acquire().unwrap();
        permit.0.falls_silent();
        permit
    }

    fn is_ended(permit: &ConnectionPermit) -> bool {
        permit.0.end.is_cancelled()
    }

    #[test]
    fn the_oldest_silent_stranger_ends_for_another_connection() {
        let table = connections(10, 2);
        let (first, second) = (silent(&table), silent(&table));
        let third = table.try_acquire().unwrap();
        assert_eq!([&first, &second, &third].map(is_ended), [true, false, false]);
        // Its request may be on its way; the second one is ended first, then there is none.
        let fourth = table.try_acquire().unwrap();
        assert!(is_ended(&second) && table.try_acquire().is_none());
        third.0.trust();
        assert!(table.try_acquire().is_some());
        drop((first, second, third, fourth));
        let inner = table.lock();
        assert_eq!((inner.strangers.len(), inner.known.len(), inner.ending), (0, 0, 0));
    }

    #[test]
    fn a_known_client_stays_while_a_request_is_under_way() {
        let table = connections(2, 1);
        let busy = silent(&table);
        busy.0.trust();
        busy.0.begin();
        let idle = silent(&table);
        idle.0.trust();
        let stranger = silent(&table);
        assert_eq!([&busy, &idle].map(is_ended), [false, true]);
        let another = silent(&table);
        assert!(is_ended(&stranger) && !is_ended(&busy));
        busy.0.finish();
        another.0.begin();
        assert!(table.try_acquire().is_none(), "strangers do not end known clients");
    }

    #[test]
    fn descriptors_of_ended_connections_are_waited_for() {
        let table = connections(1000, 1);
        let mut all = vec![silent(&table)];
        all.extend((0..MAX_ENDING).map(|_| silent(&table)));
        assert!(table.try_acquire().is_none());
        all.remove(0);
        assert!(table.try_acquire().is_some());
    }
}
