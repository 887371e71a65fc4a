//! The lockdown of a worker: the process gives up everything that running a session does not need.
//!
//! It has two parts. [`before_threads`] sets state that the kernel keeps per thread and that new
//! threads inherit, so it must run while there is one thread. [`after_load`] runs when V8, its
//! threads and the interpreter exist, and removes what only starting them needed. Its last step is
//! the seccomp filter, for all threads at once.
//!
//! A step that every kernel supports is an error if it fails. Other steps are recorded, so that the
//! parent can decide whether the layers in force are sufficient.

mod capabilities;
mod landlock;
mod limits;
mod namespaces;
mod process;
mod root;
mod seccomp;
mod states;
mod supervision;
mod syscalls;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::os::fd::OwnedFd;

use super::template_memory::MemoryMap;
use crate::data::isolation::{IsolationReport, Layer};
pub(super) use process::close_from;
use states::States;
pub use syscalls::system_calls;

/// Settings of a lockdown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The process that started this one, and with which it must end.
    ///
    /// The kernel refers to the *thread* that started it, so that thread must live as long as the
    /// worker.
    pub parent: u32,
    /// The maximum private writable memory of the worker, in bytes. It is a last resort, above
    /// every limit that raises an exception: at this limit allocations fail, and most failures end
    /// the worker.
    ///
    /// Memory reserved for writing counts even if it was never written. V8's code space alone
    /// counts 512 MiB; a worker that has run nothing yet is at about 720 MiB.
    pub data_bytes: u64,
    /// Set if the worker may be copied, as often as its parent permits.
    pub forkable: bool,
}

/// The result of [`before_threads`], which [`after_load`] continues.
#[derive(Debug)]
#[must_use = "a lockdown is in force only after `after_load`"]
pub(crate) struct Early {
    states: States,
    /// The only descriptors of the process besides 0, 1 and 2. [`after_load`] closes them.
    map: Option<MemoryMap>,
}

impl Early {
    /// Gives the lists of the process's memory away, or closes them.
    pub(crate) fn take_map(&mut self) -> Option<MemoryMap> {
        self.map.take()
    }
}

/// A required step of the lockdown failed. The process should end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LockdownError {
    /// The kernel refused a step.
    #[error("a worker cannot {step}: {source}")]
    Step {
        /// The step.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// There were already several threads, which the first part would not restrict.
    #[error(
        "a worker can lock itself down with 1 thread, it has {found}; `isolet::init()` has to come \
         before what starts threads, such as `#[tokio::main]`"
    )]
    Threads {
        /// The number of threads.
        found: usize,
    },
    /// The process that should end this one has ended, or is not its parent.
    #[error("the worker's parent is process {found}, expected {expected}")]
    Parent {
        /// The parent now; 0 if it is outside this process's namespace.
        found: u32,
        /// The parent given in the settings.
        expected: u32,
    },
    /// The filter could not be built from the table of system calls.
    #[error("the worker's seccomp filter cannot be built: {0}")]
    Filter(seccompiler::BackendError),
}

impl LockdownError {
    fn step(step: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::Step { step, source: errno.into() }
    }
}

/// Runs the first part, while the process has one thread.
///
/// Afterwards the process has only the descriptors 0, 1 and 2, those of [`Early::take_map`], and
/// dies with its parent. If the
/// kernel supports landlock or grants a mount namespace, the process cannot open anything by a
/// path. It can still create threads, memory and event loops.
///
/// Files that V8 would read become inaccessible, among them `/dev/urandom`, without which V8 takes
/// its random seeds from the clock. Give V8 another source of entropy first.
///
/// # Errors
///
/// [`LockdownError`] if there is a second thread, the parent is not the one given, or a step fails
/// that every kernel supports.
pub(crate) fn before_threads(settings: &Settings) -> Result<Early, LockdownError> {
    let mut states = States::default();
    process::require_one_thread()?;
    states.enforced(Layer::Process, format!("process {}", std::process::id()));
    process::check_environment(&mut states);
    process::close_descriptors(&mut states)?;
    let map = MemoryMap::open();
    process::leave_session()?;
    process::ignore_requests_to_end();
    process::end_before_its_parent();
    limits::set_early()?;
    // A user namespace permits the other namespaces and the empty root.
    namespaces::enter(settings.forkable, &mut states);
    root::replace(&mut states);
    capabilities::drop_all(&mut states);
    // Landlock may only be used by processes that cannot gain privileges.
    process::give_up_privileges(&mut states)?;
    landlock::deny_all(&mut states);
    // After the last change of credentials, because a change may reset both.
    process::forbid_dumps(&mut states)?;
    process::die_with(settings.parent)?;
    Ok(Early { states, map })
}

/// Repeats the steps that a forked copy of a process does not inherit. `template` is the number of
/// the process that made the copy, as the copy sees it.
///
/// # Errors
///
/// [`LockdownError`] if the process that made the copy has ended.
pub(crate) fn after_fork(early: Early, template: u32) -> Result<Early, LockdownError> {
    let Early { mut states, map: _ } = early;
    let id = std::process::id();
    // The first process of a PID namespace sees no parent.
    let template = if id == 1 { 0 } else { template };
    states.enforced(Layer::Process, format!("process {id}, a copy of process {template}"));
    process::die_with(template)?;
    Ok(Early { states, map: None })
}

/// Runs the second part, when everything is loaded and every thread started. `hand_over` gives the
/// parent the descriptor by which it permits copies of a worker that is forkable.
///
/// Afterwards any system call outside the table of `syscalls.rs` kills the process, on every
/// thread. Writable memory is limited to [`Settings::data_bytes`]. No thread can be started and no
/// descriptor created, except as a forkable worker's parent permits.
///
/// # Errors
///
/// [`LockdownError`] if the limits cannot be set or the filter cannot be built. A kernel without
/// seccomp is not an error but part of the report.
pub(crate) fn after_load(
    early: Early,
    settings: &Settings,
    hand_over: impl FnOnce(OwnedFd) -> io::Result<()>,
) -> Result<IsolationReport, LockdownError> {
    let Early { mut states, map } = early;
    drop(map);
    // Before the limits: the kernel compares the number of descriptors with the number of those
    // that all processes of the user have sent and nobody has received yet.
    if settings.forkable {
        let step = |step| move |source| LockdownError::Step { step, source };
        let listener = supervision::begin().map_err(step("have its copies supervised"))?;
        hand_over(listener).map_err(step("hand over the supervision of its copies"))?;
    }
    limits::set_late(settings, &mut states)?;
    // The last step, because the filter forbids the system calls that the other steps need.
    seccomp::apply(settings.forkable, &mut states)?;
    Ok(IsolationReport::process(states))
}
