//! Resource limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::LockdownError;
use super::states::States;
use crate::data::isolation::Layer;

/// Limits that starting V8 does not feel. `FSIZE` counts for files only, not for the socket.
const EARLY: &[Resource] = &[
    Resource::Core,
    Resource::Fsize,
    Resource::Memlock,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
];

/// Limits that starting V8 would run into: it makes descriptors and threads. Those that are there
/// stay and work; there will be no other.
const LATE: &[Resource] = &[Resource::Nofile, Resource::Nproc];

/// Sets to zero what is never needed.
pub(super) fn set_early() -> Result<(), LockdownError> {
    EARLY.iter().try_for_each(|resource| lower(*resource, 0))
}

/// Sets to zero what only starting needed, and bounds the memory that can be written to.
///
/// The address space has no limit: V8 reserves many gigabytes of it that it never touches.
pub(super) fn set_late(data_bytes: u64, states: &mut States) -> Result<(), LockdownError> {
    LATE.iter().try_for_each(|resource| lower(*resource, 0))?;
    lower(Resource::Data, data_bytes)?;
    states
        .enforced(Layer::ResourceLimits, format!("{data_bytes} bytes of data, no new descriptors"));
    Ok(())
}

/// Sets a limit that cannot be raised again. A lower one that is there stays.
fn lower(resource: Resource, wanted: u64) -> Result<(), LockdownError> {
    let limit = getrlimit(resource).maximum.map_or(wanted, |there| there.min(wanted));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
        .map_err(LockdownError::step("lower its resource limits"))
}
