//! Whether a session can run code.

use std::fmt;

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
