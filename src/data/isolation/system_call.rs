//! A system call that a worker may make, as callers of the library see it.

/// A system call that does not kill a worker whose layer [`Seccomp`](super::Layer::Seccomp) is in
/// force; [`system_calls`](crate::system_calls) has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemCall {
    /// Its name, such as `futex`.
    pub name: &'static str,
    /// What it does.
    pub rule: CallRule,
    /// Why a worker needs it, or when it makes it.
    pub reason: &'static str,
}

/// What a [`SystemCall`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallRule {
    /// It runs.
    Runs,
    /// It runs with some arguments, and kills the worker with others.
    Depends,
    /// It fails and does nothing, and the worker goes on.
    Fails,
}

impl CallRule {
    /// Returns the name: `runs`, `depends` or `fails`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Depends => "depends",
            Self::Fails => "fails",
        }
    }
}
