//! Decides who reads a worker's frames: a thread, or a session's caller that waits anyway. Only one
//! of them reads at a time.
//!
//! A caller that reads saves two wake-ups, its own and the thread's, which take longer than the
//! work ([`crate::support::block_on`]). Before it does something else, it hands reading back to the
//! thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;

use super::reader::{By, Progress, Reader};
use crate::support::alarm::Alarm;
use crate::support::block_on::PollSource;
use crate::support::lock::lock;

/// Decides whether the thread or a caller reads.
pub(super) struct Shift {
    number: u64,
    turn: Mutex<Turn>,
    changed: Condvar,
    /// Set while nobody reads.
    is_watched: AtomicBool,
}

#[derive(Default)]
struct Turn {
    /// A caller wants to read.
    is_wanted: bool,
    /// A caller that sleeps, and reads again once the worker has replied.
    sleeper: Option<Waker>,
    /// The thread must act before a caller may read.
    is_refused: bool,
    /// The reader, while a caller may use it. Otherwise the thread has it.
    reader: Option<Reader>,
}

impl Default for Shift {
    fn default() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            turn: Mutex::default(),
            changed: Condvar::new(),
            is_watched: AtomicBool::new(false),
        }
    }
}

impl Shift {
    /// Returns a number that no other shift has.
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
        let mut turn = lock(&self.turn);
        turn.is_refused = false;
        if reader.has_ended() {
            return reader;
        }
        if reader.has_replied()
            && let Some(sleeper) = turn.sleeper.take()
        {
            turn.is_wanted = true;
            // It may still wait for something else.
            sleeper.wake();
        }
        if !turn.is_wanted {
            return reader;
        }
        turn.reader = Some(reader);
        loop {
            let wanted = |turn: &mut Turn| turn.is_wanted;
            turn = self.changed.wait_while(turn, wanted).unwrap_or_else(PoisonError::into_inner);
            if let Some(reader) = turn.reader.take() {
                return reader;
            }
        }
    }

    /// Hands reading back to the thread, so that it sees the end of a killed worker. If a caller is
    /// reading at the moment, the caller sees it.
    pub(super) fn leave_to_thread(&self) {
        let turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.end_turn(turn, None);
    }

    fn end_turn(&self, mut turn: MutexGuard<'_, Turn>, sleeper: Option<Waker>) {
        turn.is_wanted = false;
        turn.sleeper = sleeper;
        if turn.reader.is_some() {
            self.changed.notify_one();
        }
    }
}

impl PollSource for Shift {
    fn poll_once(&self) -> bool {
        let mut turn = lock(&self.turn);
        if turn.is_refused {
            return false;
        }
        turn.is_wanted = true;
        turn.sleeper = None;
        let Some(reader) = &mut turn.reader else { return false };
        match reader.read(By::Caller) {
            Progress::Came => true,
            Progress::Nothing => false,
            Progress::Thread => {
                turn.is_refused = true;
                self.end_turn(turn, None);
                false
            }
        }
    }

    fn is_made_here(&self) -> bool {
        lock(&self.turn).reader.as_ref().is_some_and(Reader::is_worker_here)
    }

    fn wait(&self, alarm: &Alarm) -> bool {
        // Locked meanwhile: nobody else can use the reader.
        let mut turn = lock(&self.turn);
        if turn.is_refused {
            return false;
        }
        turn.reader.as_mut().is_some_and(|reader| reader.wait(alarm))
    }

    fn release(&self) {
        self.end_turn(lock(&self.turn), None);
    }

    fn release_until_reply(&self, sleeper: &Waker) {
        let turn = lock(&self.turn);
        // What is for the thread may take long, and it is awake then.
        let reads_again = turn.reader.is_none() && !turn.is_refused;
        self.end_turn(turn, reads_again.then(|| sleeper.clone()));
    }
}
