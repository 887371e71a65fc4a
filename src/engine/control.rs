//! Stopping an isolate from other threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use deno_core::v8;
use tokio::sync::Notify;

use super::signal;
use crate::waist::Control;

/// Shared by the isolate's thread and whoever may stop it.
#[derive(Default)]
pub(crate) struct IsolateControl {
    /// Set by the isolate's thread once there is an isolate.
    handle: OnceLock<v8::IsolateHandle>,
    stopped: AtomicBool,
    /// An interrupt waits to be served by the guest.
    pending: AtomicBool,
    /// An interrupt was asked for in this run.
    asked: AtomicBool,
    woken: Notify,
    /// The limit of V8's heap and what was observed, once the guest has exceeded it.
    exhausted: OnceLock<(u64, u64)>,
}

impl IsolateControl {
    pub(crate) fn attach(&self, handle: v8::IsolateHandle) {
        // Set once, by the one thread that makes the isolate.
        let _ = self.handle.set(handle);
        if self.is_stopped() {
            self.terminate();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Takes the interrupt that waits, if one does.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn has_interrupt(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Stops the isolate because its heap has outgrown `limit`.
    pub(crate) fn exhaust(&self, limit: u64, observed: u64) {
        // The first time counts; while the guest is ended the heap may grow further.
        let _ = self.exhausted.set((limit, observed));
        self.terminate();
    }

    /// The limit of the heap and what was observed, if the guest has exceeded it.
    pub(crate) fn exhausted(&self) -> Option<(u64, u64)> {
        self.exhausted.get().copied()
    }

    /// Has the isolate's thread look again.
    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits for an interrupt or a termination.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Control for IsolateControl {
    fn interrupt(&self) {
        self.asked.store(true, Ordering::Release);
        self.pending.store(true, Ordering::Release);
        if let Some(handle) = self.handle.get() {
            signal::raise(handle);
        }
        self.woken.notify_one();
    }

    fn clear_interrupt(&self) {
        self.asked.store(false, Ordering::Release);
        self.pending.store(false, Ordering::Release);
    }

    fn interrupted(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    fn terminate(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(handle) = self.handle.get() {
            handle.terminate_execution();
        }
        self.woken.notify_one();
    }
}
