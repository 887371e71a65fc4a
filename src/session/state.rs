//! Whether a session can run code, and who ended a run.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a session can run code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// It can.
    Ready,
    /// A limit ended its last run, and the interpreter with it.
    Terminated,
    /// A run was abandoned half-way: its future was dropped.
    Abandoned,
    /// The guest ended its interpreter, as `os._exit` does.
    Exited,
    /// Its interpreter died.
    Died,
    /// Its [`Session`](crate::Session) was dropped or reset.
    Closed,
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ready",
            Self::Terminated => "closed by a limit",
            Self::Abandoned => "closed by an abandoned run",
            Self::Exited => "closed by the guest itself",
            Self::Died => "lost, its interpreter died",
            Self::Closed => "closed by its owner",
        })
    }
}

/// Who ended a run. Set once, by whoever is first; the guest has no say in it.
#[derive(Default)]
pub(super) struct Verdict(AtomicU8);

impl Verdict {
    const RUNNING: u8 = 0;
    pub(super) const FINISHED: u8 = 1;
    pub(super) const DEADLINE: u8 = 2;

    pub(super) fn decide(&self, verdict: u8) -> bool {
        self.0.compare_exchange(Self::RUNNING, verdict, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn is_deadline(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::DEADLINE
    }
}
