//! Replaces `parent.rs` where a process cannot be waited for unless it is a child: looks whether
//! the parent is still the same.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::getppid;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// Watches the parent on a thread. Does nothing without a parent to watch.
pub(super) fn end_with_it() -> Result<()> {
    let Some(parent) = getppid().filter(|parent| !parent.is_init()) else { return Ok(()) };
    let watch = move || {
        while getppid() == Some(parent) {
            std::thread::sleep(EVERY);
        }
        crate::ending::end(0)
    };
    let thread = std::thread::Builder::new().name("isolet-parent".to_owned());
    thread.spawn(watch).context("the thread that watches the parent cannot start")?;
    Ok(())
}
