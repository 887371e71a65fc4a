//! Handles Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use isolet::blocking::Session;

use crate::show::exit;

/// Tracks whether the guest is running, because only then there is something to interrupt.
#[derive(Default)]
pub(crate) struct Interrupts {
    is_running: Arc<AtomicBool>,
}

impl Interrupts {
    /// Makes the first Ctrl-C raise `KeyboardInterrupt` in the guest. The second one ends the
    /// command, and so does the first if nothing is running.
    pub(crate) fn of(session: &Session) -> Result<Self> {
        let handle = session.interrupt_handle();
        let interrupts = Self::default();
        let is_running = Arc::clone(&interrupts.is_running);
        let mut pressed = false;
        let on_ctrl_c = move || {
            if pressed || !is_running.load(Ordering::Relaxed) {
                std::process::exit(exit::INTERRUPTED.into());
            }
            pressed = true;
            handle.interrupt();
        };
        ctrlc::set_handler(on_ctrl_c).context("cannot handle Ctrl-C")?;
        Ok(interrupts)
    }

    /// Runs the guest and tracks that it is running.
    pub(crate) fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        self.is_running.store(true, Ordering::Relaxed);
        let result = run();
        self.is_running.store(false, Ordering::Relaxed);
        result
    }
}
