//! A thread that other threads can have run only when nothing else needs the processor.

use std::sync::OnceLock;

use rustix::process::setpriority_process;
use rustix::thread::{Pid, gettid};

/// The number of a thread, once it is known.
#[derive(Default)]
pub(crate) struct NiceThread(OnceLock<Pid>);

impl NiceThread {
    /// Makes it the calling thread, if it is none yet.
    pub(crate) fn set_to_this_thread(&self) {
        let _ = self.0.set(gettid());
    }

    /// Lets the thread run only when nothing else needs the processor. It must not have ended: its
    /// number would be another thread's.
    pub(crate) fn yield_processors(&self) {
        if let Some(thread) = self.0.get() {
            // If the system refuses, the thread takes more processor time.
            let _ = setpriority_process(Some(*thread), 19);
        }
    }
}
