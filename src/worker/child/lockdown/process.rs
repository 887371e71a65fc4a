//! The process's relations to others: its descriptors, session and parent, and who may inspect it.

use std::ffi::c_long;
use std::io;
use std::os::fd::RawFd;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};

use super::LockdownError;
use super::states::States;
use crate::data::isolation::Layer;

/// Fails if there is more than one thread.
pub(super) fn require_one_thread() -> Result<(), LockdownError> {
    let threads = std::fs::read_dir("/proc/self/task")
        .map_err(|source| LockdownError::Step { step: "count its threads", source })?;
    match threads.count() {
        1 => Ok(()),
        found => Err(LockdownError::Threads { found }),
    }
}

/// Records whether the parent gave this process an environment.
pub(super) fn check_environment(states: &mut States) {
    #[expect(clippy::disallowed_methods, reason = "counts the variables and reads none")]
    let variables = std::env::vars_os().count();
    if variables == 0 {
        states.enforced(Layer::EmptyEnvironment, "");
    } else {
        states.missing(Layer::EmptyEnvironment, format!("it has {variables} variables"));
    }
}

/// Closes every descriptor except 0, 1 and 2, including those that a parent's libraries did not
/// mark close-on-exec.
pub(super) fn close_descriptors(states: &mut States) -> Result<(), LockdownError> {
    #[expect(unsafe_code, reason = "that nobody owns a descriptor is not known to the compiler")]
    // SAFETY: this runs at the start of a process that has one thread, in a function that never
    // returns to earlier code, so nothing uses a descriptor that was opened before.
    let closed = unsafe { close_from(3) };
    closed.map_err(|source| LockdownError::Step {
        step: "close inherited descriptors (close_range)",
        source,
    })?;
    states.enforced(Layer::Descriptors, "0, 1 and 2");
    Ok(())
}

/// Closes every descriptor from `first` on.
///
/// # Safety
///
/// Nothing may use such a descriptor any more.
#[expect(unsafe_code, reason = "that nobody owns a descriptor is not known to the compiler")]
pub(crate) unsafe fn close_from(first: RawFd) -> io::Result<()> {
    const LAST: c_long = c_long::MAX & 0xffff_ffff;
    // SAFETY: the call takes three numbers and touches no memory. The caller answers for those who
    // own the descriptors.
    if unsafe { libc::syscall(libc::SYS_close_range, c_long::from(first), LAST, 0) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Linux below 5.9 does not know the call, and neither do some container runtimes.
    let is_unknown = [Some(libc::ENOSYS), Some(libc::EPERM)].contains(&error.raw_os_error());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let Some(most) = limit.maximum.and_then(|most| RawFd::try_from(most).ok()) else {
        return Err(error);
    };
    if !is_unknown {
        return Err(error);
    }
    for descriptor in first..most {
        // SAFETY: as above. Most numbers are no descriptor, which changes nothing.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// Leaves the terminal's session, so that its signals do not arrive, and the current directory.
pub(super) fn leave_session() -> Result<(), LockdownError> {
    let own = rustix::process::getpid();
    match rustix::process::setsid() {
        // The process already leads a session, which is the goal.
        Err(Errno::PERM) if rustix::process::getsid(None) == Ok(own) => {}
        result => drop(result.map_err(LockdownError::step("leave its session"))?),
    }
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::chdir("/").map_err(LockdownError::step("change to the root directory"))
}

/// Ignores the signals that ask a program to end. Supervisors send them to every process of a
/// service, and the parent decides when a worker ends: its runs may go on until then.
pub(super) fn ignore_requests_to_end() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        #[expect(unsafe_code, reason = "there is no safe binding")]
        // SAFETY: ignoring a signal installs no function, and each of these numbers is one that
        // can be ignored.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Has the kernel end a worker before its parent, with all its sessions, if memory runs out.
pub(super) fn end_before_its_parent() {
    const PATH: &str = "/proc/self/oom_score_adj";
    let own = std::fs::read_to_string(PATH).ok().and_then(|text| text.trim().parse::<i32>().ok());
    // Without it the kernel chooses by size alone.
    let _ = std::fs::write(PATH, own.unwrap_or(0).saturating_add(300).min(1000).to_string());
}

/// Gives up the ability to gain privileges by starting a program.
pub(super) fn give_up_privileges(states: &mut States) -> Result<(), LockdownError> {
    rustix::thread::set_no_new_privs(true)
        .map_err(LockdownError::step("give up gaining privileges"))?;
    states.enforced(Layer::NoNewPrivileges, "");
    Ok(())
}

/// Prevents core dumps, and tracing by the user's other processes.
pub(super) fn forbid_dumps(states: &mut States) -> Result<(), LockdownError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(LockdownError::step("forbid dumps of its memory"))?;
    states.enforced(Layer::NotDumpable, "");
    Ok(())
}

/// Makes the kernel kill this process when the thread that started it ends.
pub(super) fn die_with(parent: u32) -> Result<(), LockdownError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(LockdownError::step("ask to die with its parent"))?;
    // The parent may have died before the call above. The process then has another parent by now.
    let found = rustix::process::getppid().map_or(0, |pid| pid.as_raw_pid().unsigned_abs());
    if found == parent { Ok(()) } else { Err(LockdownError::Parent { found, expected: parent }) }
}
