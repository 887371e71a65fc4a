//! Helpers shared by the benchmarks.

mod pss;

use anyhow::Result;
use isolet::blocking::Session;
use isolet::{Isolation, Sandbox};

pub(crate) use self::pss::pss;

/// Opens a session whose worker is a copy of a booted one, which takes a few attempts; or one on a
/// thread.
pub(crate) fn first_copy(sandbox: &Sandbox) -> Result<Session> {
    loop {
        let session = sandbox.blocking().session()?;
        let report = session.isolation();
        if report.isolation() == Isolation::Thread || report.to_string().contains("a copy of") {
            return Ok(session);
        }
    }
}
