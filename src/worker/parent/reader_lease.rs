//! Decides who reads a worker's frames: a thread, or a session's caller that waits anyway. Only one
//! of them reads at a time.
//!
//! A caller that reads saves two wake-ups, its own and the thread's, which take longer than the
//! work ([`crate::support::block_on`]). Before it does something else, it hands reading back to the
//! thread.

use std::sync::atomic::Ordering;
use std::task::Waker;

use super::reader::{By, Progress, Reader};
use crate::support::alarm::Alarm;
use crate::support::block_on::PollSource;
use crate::support::lock::lock;
use crate::support::sync::{
    AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, PoisonError, TryLockError,
};

/// The right to read, which the thread or a caller has.
pub(super) struct ReaderLease {
    number: u64,
    state: Mutex<LeaseState>,
    changed: Condvar,
    /// Set while nobody reads.
    is_watched: AtomicBool,
}

#[derive(Default)]
struct LeaseState {
    /// A caller wants to read.
    is_wanted: bool,
    /// A caller that sleeps, and reads again once the worker has replied.
    sleeper: Option<Waker>,
    /// The thread must act before a caller may read.
    is_refused: bool,
    /// The reader, while a caller may use it. Otherwise the thread has it.
    reader: Option<Reader>,
}

impl Default for ReaderLease {
    fn default() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
            changed: Condvar::new(),
            is_watched: AtomicBool::new(false),
        }
    }
}

impl ReaderLease {
    /// Returns a number that no other lease has.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns `true` while nobody reads.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    pub(super) fn set_watched(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }

    /// Lets a caller read, between two reads of the thread. If a caller wants to, returns only when
    /// it is done.
    pub(super) fn offer(&self, reader: Reader) -> Reader {
        let mut state = lock(&self.state);
        state.is_refused = false;
        if reader.has_ended() {
            return reader;
        }
        if reader.has_replied()
            && let Some(sleeper) = state.sleeper.take()
        {
            state.is_wanted = true;
            // It may still wait for something else.
            sleeper.wake();
        }
        if !state.is_wanted {
            return reader;
        }
        state.reader = Some(reader);
        loop {
            let wanted = |state: &mut LeaseState| state.is_wanted;
            state = self.changed.wait_while(state, wanted).unwrap_or_else(PoisonError::into_inner);
            if let Some(reader) = state.reader.take() {
                return reader;
            }
        }
    }

    /// Hands reading back to the thread, so that it sees the end of a killed worker. If a caller is
    /// reading at the moment, the caller sees it.
    pub(super) fn leave_to_thread(&self) {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.end_lease(state, None);
    }

    fn end_lease(&self, mut state: MutexGuard<'_, LeaseState>, sleeper: Option<Waker>) {
        state.is_wanted = false;
        state.sleeper = sleeper;
        if state.reader.is_some() {
            self.changed.notify_one();
        }
    }
}

impl PollSource for ReaderLease {
    fn poll_once(&self) -> bool {
        let mut state = lock(&self.state);
        if state.is_refused {
            return false;
        }
        state.is_wanted = true;
        state.sleeper = None;
        let Some(reader) = &mut state.reader else { return false };
        match reader.read(By::Caller) {
            Progress::Came => true,
            Progress::Nothing => false,
            Progress::Thread => {
                state.is_refused = true;
                self.end_lease(state, None);
                false
            }
        }
    }

    fn is_made_here(&self) -> bool {
        lock(&self.state).reader.as_ref().is_some_and(Reader::is_worker_here)
    }

    fn wait(&self, alarm: &Alarm) -> bool {
        // Locked meanwhile: nobody else can use the reader.
        let mut state = lock(&self.state);
        if state.is_refused {
            return false;
        }
        state.reader.as_mut().is_some_and(|reader| reader.wait(alarm))
    }

    fn release(&self) {
        self.end_lease(lock(&self.state), None);
    }

    fn release_until_reply(&self, sleeper: &Waker) {
        let state = lock(&self.state);
        // What is for the thread may take long, and it is awake then.
        let reads_again = state.reader.is_none() && !state.is_refused;
        self.end_lease(state, reads_again.then(|| sleeper.clone()));
    }
}
