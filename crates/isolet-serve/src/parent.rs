//! Ends this process when its parent ends, even if another process keeps its standard input open.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};

/// Watches the parent on a thread. Does nothing without a parent to watch.
pub(super) fn end_with_it() -> Result<()> {
    let Some(parent) = getppid().filter(|parent| !parent.is_init()) else { return Ok(()) };
    let Ok(watched) = pidfd_open(parent, PidfdFlags::empty()) else { return Ok(()) };
    if getppid() != Some(parent) {
        // The parent has ended already.
        crate::ending::end(0);
    }
    let watch = move || {
        let mut ended = [PollFd::new(&watched, PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut ended, None) {}
        crate::ending::end(0)
    };
    let thread = std::thread::Builder::new().name("isolet-parent".to_owned());
    thread.spawn(watch).context("the thread that watches the parent cannot start")?;
    Ok(())
}
