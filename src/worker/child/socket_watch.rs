//! Wakes the isolate's thread when its socket can be read, from another thread. Used by forkable
//! workers: what an event loop waits by is a descriptor, which a copy would share with the worker.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::mailbox::Mailbox;
use crate::support::lock::lock;

/// Who waits for the socket. The watching thread holds the lock whenever it does anything but wait.
#[derive(Default)]
pub(crate) struct SocketWatch {
    waiting: Mutex<Option<Waker>>,
    asked: Condvar,
}

impl SocketWatch {
    /// Wakes this task once the socket can be read.
    pub(crate) fn ask(&self, waker: &Waker) {
        let mut waiting = lock(&self.waiting);
        if !waiting.as_ref().is_some_and(|last| last.will_wake(waker)) {
            *waiting = Some(waker.clone());
        }
        self.asked.notify_one();
    }

    /// Keeps the watching thread waiting while the process is copied.
    pub(super) fn hold(&self) -> MutexGuard<'_, Option<Waker>> {
        lock(&self.waiting)
    }

    /// Watches, on a thread of its own.
    pub(super) fn serve(&self, mailbox: &Mailbox) {
        let mut waiting = lock(&self.waiting);
        loop {
            let nobody = |waiting: &mut Option<Waker>| waiting.is_none();
            waiting =
                self.asked.wait_while(waiting, nobody).unwrap_or_else(PoisonError::into_inner);
            drop(waiting);
            mailbox.wait_to_read();
            waiting = lock(&self.waiting);
            if let Some(waker) = waiting.take() {
                waker.wake();
            }
        }
    }
}
