//! The process of a worker: a child of this one, or of a template.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use super::template::Forked;

pub(crate) enum Process {
    Child(Child),
    Forked(Forked),
}

impl Process {
    /// Kills the process. Fails only if it has already ended.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        match self {
            Self::Child(child) => child.kill(),
            Self::Forked(forked) => forked.kill(),
        }
    }

    /// Returns `true` if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            Self::Child(child) => !matches!(child.try_wait(), Ok(None)),
            Self::Forked(forked) => forked.has_ended(),
        }
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Child(child) => child.wait(),
            Self::Forked(forked) => forked.wait().map(ExitStatus::from_raw),
        }
    }
}
