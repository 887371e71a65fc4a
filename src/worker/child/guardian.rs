//! The first process of a PID namespace, in which forkable workers and their copies live: it
//! becomes their template. The kernel kills everything in the namespace when it ends. Contains the
//! unsafe code to make it.

use std::io;

use rustix::process::{WaitOptions, waitpid};

use super::copying::fork;
use super::lockdown::{self, Early};

/// Makes the process that goes on as the template, in which this returns. The calling process has
/// entered the namespace for its children only; it waits for the template and ends.
pub(super) fn enter(early: Early) -> io::Result<Early> {
    let own = std::process::id();
    #[expect(unsafe_code, reason = "a process with one thread is copied")]
    // SAFETY: `before_threads`, which has made `early`, has checked that this is the only thread.
    let made = unsafe { fork() }?;
    let Some(pid) = made else {
        return lockdown::after_fork(early, own).map_err(io::Error::other);
    };
    // The parent sees the end of the template as the end of its socket.
    rustix::stdio::dup2_stdin(std::io::stdout())?;
    while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    #[expect(clippy::exit, reason = "this process has no other purpose")]
    std::process::exit(0);
}
