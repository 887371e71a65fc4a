//! Resource limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::states::States;
use super::{LockdownError, Settings};
use crate::data::isolation::Layer;
use crate::worker::wire::RING;

/// Limits that do not affect the start of V8. `FSIZE` applies only to files, not to the socket.
const EARLY: &[Resource] = &[
    Resource::Core,
    Resource::Fsize,
    Resource::Memlock,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
];

/// Limits that would prevent V8 from starting, because it makes descriptors and threads. Existing
/// ones keep working; no more can be made.
const LATE: &[Resource] = &[Resource::Nofile, Resource::Nproc];

/// Sets limits for resources that are never needed to zero.
pub(super) fn set_early() -> Result<(), LockdownError> {
    EARLY.iter().try_for_each(|resource| lower(*resource, 0))
}

/// Sets limits for resources that only starting needed to zero, and limits writable memory.
///
/// The address space has no limit: V8 reserves many gigabytes that it never touches.
pub(super) fn set_late(settings: &Settings, states: &mut States) -> Result<(), LockdownError> {
    let Settings { data_bytes, forkable, .. } = *settings;
    if forkable {
        // The parent replaces the descriptors of copies. It also permits each process and thread,
        // which the kernel's limit could not count apart for each worker.
        lower(Resource::Nofile, u64::from(RING.unsigned_abs()) + 1)?;
    } else {
        LATE.iter().try_for_each(|resource| lower(*resource, 0))?;
    }
    lower(Resource::Data, data_bytes)?;
    states
        .enforced(Layer::ResourceLimits, format!("{data_bytes} bytes of data, no new descriptors"));
    Ok(())
}

/// Sets a limit that cannot be raised again. An existing lower limit stays.
fn lower(resource: Resource, wanted: u64) -> Result<(), LockdownError> {
    let limit = getrlimit(resource).maximum.map_or(wanted, |there| there.min(wanted));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
        .map_err(LockdownError::step("lower its resource limits"))
}
