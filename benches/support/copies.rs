//! Sessions whose workers are copies.

use anyhow::Result;
use isolet::blocking::Session;
use isolet::{Isolation, Sandbox};

/// Opens sessions until the worker of one is a copy of a booted one, which takes a few attempts, or
/// one on a thread. They are all returned: while a worker ends, memory that it shares with others
/// does not fully count as theirs.
pub(crate) fn until_copy(sandbox: &Sandbox) -> Result<Vec<Session>> {
    let mut sessions = Vec::new();
    loop {
        let session = sandbox.blocking().session()?;
        let report = session.isolation();
        let is_last =
            report.isolation() == Isolation::Thread || report.to_string().contains("a copy of");
        sessions.push(session);
        if is_last {
            return Ok(sessions);
        }
    }
}
