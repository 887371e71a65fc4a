//! The state of a session: whether it can run code, or why not.

use std::fmt;

/// Whether a session can run code, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// The session can run code.
    Ready,
    /// A limit ended the session's last run and its interpreter.
    Terminated,
    /// A run was abandoned before it ended: its future was dropped.
    Abandoned,
    /// The guest ended its interpreter, for example with `os._exit`.
    Exited,
    /// The interpreter died.
    Died,
    /// The [`Session`](crate::Session) was closed, dropped or reset.
    Closed,
}

impl SessionState {
    /// Whether something in the session has ended its interpreter, and not its owner.
    pub(super) fn is_ended(self) -> bool {
        matches!(self, Self::Terminated | Self::Exited | Self::Died)
    }
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
