//! The lockdown of a worker: a process gives up what running a session does not need.
//!
//! It comes in two parts. [`before_threads`] does what the kernel keeps for each thread and new
//! threads inherit, so it has to come while there is one thread. [`after_load`] comes when V8, its
//! threads and the interpreter are there, and takes away what only starting them needed; the last
//! step is the seccomp filter, for all threads at once.
//!
//! Steps that every kernel allows are errors if they fail. The others are recorded, so that whoever
//! asked for the worker can decide whether what is in force is enough.

mod capabilities;
mod landlock;
mod limits;
mod namespaces;
mod process;
mod root;
mod seccomp;
mod states;
mod syscalls;
#[cfg(test)]
mod tests;

use std::io;

use crate::data::isolation::{IsolationReport, Layer};
use states::States;
pub use syscalls::system_calls;

/// What a lockdown has to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The process that started this one, and with which it is to end.
    ///
    /// The kernel means the *thread* that started it: it has to live as long as the worker should.
    pub parent: u32,
    /// How many bytes of private memory that can be written to the worker may have: a last resort,
    /// above every limit that ends in an exception. At it allocations fail, and most end the
    /// worker.
    ///
    /// What is reserved for writing counts also if nothing was written. The code of V8 alone counts
    /// 512 MiB; a worker that has run nothing yet is at about 720 MiB.
    pub data_bytes: u64,
}

/// What [`before_threads`] has reached; [`after_load`] goes on from it.
#[derive(Debug)]
#[must_use = "a lockdown is in force only after `after_load`"]
pub(crate) struct Early(States);

/// A step without which there is no lockdown failed. The process should end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LockdownError {
    /// The kernel refused a step.
    #[error("a worker cannot {step}: {source}")]
    Step {
        /// What was to be done.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There were threads already, which the first part would not have restricted.
    #[error(
        "a worker can lock itself down with 1 thread, it has {found}; `isolet::init()` has to come \
         before what starts threads, such as `#[tokio::main]`"
    )]
    Threads {
        /// How many there are.
        found: usize,
    },
    /// The process that should end this one has ended, or is another one.
    #[error("the worker's parent is process {found}, expected {expected}")]
    Parent {
        /// Its parent now, 0 if it is outside this process's namespace.
        found: u32,
        /// The parent that was named.
        expected: u32,
    },
    /// The table of system calls does not make a filter.
    #[error("the worker's seccomp filter cannot be built: {0}")]
    Filter(seccompiler::BackendError),
}

impl LockdownError {
    fn step(step: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::Step { step, source: errno.into() }
    }
}

/// Does what has to be done while the process has one thread.
///
/// Afterwards the process has the descriptors 0, 1 and 2 only and dies with its parent. Where the
/// kernel has landlock or grants a mount namespace, it can open nothing by a path. It can still
/// make threads, memory and event loops.
///
/// Files that V8 would read are out of reach: among them `/dev/urandom`, without which V8 takes its
/// random seeds from the clock. Give it another source of entropy first.
///
/// # Errors
///
/// [`LockdownError`] if there is a second thread, the parent is not the one named, or a step fails
/// that every kernel allows.
pub(crate) fn before_threads(settings: &Settings) -> Result<Early, LockdownError> {
    let mut states = States::default();
    process::require_one_thread()?;
    states.enforced(Layer::Process, format!("process {}", std::process::id()));
    process::check_environment(&mut states);
    process::close_descriptors(&mut states)?;
    process::leave_session()?;
    limits::set_early()?;
    // A namespace of users grants what the other namespaces and the empty root need.
    namespaces::enter(&mut states);
    root::replace(&mut states);
    capabilities::drop_all(&mut states);
    // Landlock may be used by who cannot gain privileges.
    process::give_up_privileges(&mut states)?;
    landlock::deny_all(&mut states);
    // After the last change of credentials, which may reset both.
    process::forbid_dumps(&mut states)?;
    process::die_with(settings.parent)?;
    Ok(Early(states))
}

/// Repeats in a copy of a process what such a copy does not inherit.
///
/// # Errors
///
/// [`LockdownError`] if the template, its parent, has ended.
pub(crate) fn after_fork(early: Early, template: u32) -> Result<Early, LockdownError> {
    let Early(mut states) = early;
    let id = std::process::id();
    states.enforced(Layer::Process, format!("process {id}, a copy of process {template}"));
    process::die_with(template)?;
    Ok(Early(states))
}

/// Does the rest, when everything is loaded and every thread started.
///
/// Afterwards any system call that is not in the table of `syscalls.rs` kills the process, on every
/// thread, and memory that can be written to ends at [`Settings::data_bytes`]. No thread can be
/// started and no descriptor made.
///
/// # Errors
///
/// [`LockdownError`] if the limits cannot be set or the filter cannot be built. That the kernel has
/// no seccomp is not an error but part of the report.
pub(crate) fn after_load(
    early: Early,
    settings: &Settings,
) -> Result<IsolationReport, LockdownError> {
    let Early(mut states) = early;
    limits::set_late(settings.data_bytes, &mut states)?;
    // The last step: it forbids what all others need.
    seccomp::apply(&mut states)?;
    Ok(IsolationReport::process(states))
}
