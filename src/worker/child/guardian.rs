//! The first process of a PID namespace, in which forkable workers and their copies live: it
//! becomes their template. The kernel kills everything in the namespace when it ends. Where there
//! is no namespace, the process that has made the template does so when its parent ends. Contains
//! the unsafe code for both.

use std::ffi::c_int;
use std::io;

use rustix::process::{Signal, WaitOptions, getppid, set_parent_process_death_signal, waitpid};

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
    let parent = getppid();
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: the function only makes a system call, which a signal handler may do.
    let before = unsafe { libc::signal(libc::SIGUSR1, end_all as *const () as libc::sighandler_t) };
    // Until here, the kernel kills this process with its parent, and the template with this one.
    if before != libc::SIG_ERR
        && set_parent_process_death_signal(Some(Signal::USR1)).is_ok()
        && getppid() != parent
    {
        end_all(libc::SIGUSR1);
    }
    while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    // The parent kills the rest, which it can as long as it has not reaped this process.
    #[expect(clippy::exit, reason = "this process has no other purpose")]
    std::process::exit(0);
}

/// Kills the group of this process, with this one: everything that comes from the template is in
/// it, since no worker can leave it.
extern "C" fn end_all(_: c_int) {
    #[expect(unsafe_code, reason = "a signal handler may call this one function")]
    // SAFETY: the call takes two numbers.
    unsafe {
        libc::kill(0, libc::SIGKILL);
    }
}
