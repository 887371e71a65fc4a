//! Drops all capabilities, so that none can come back.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
};

use super::states::States;
use crate::data::isolation::Layer;

const NONE: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Drops all capabilities, beginning with those that starting a program could restore.
pub(super) fn drop_all(states: &mut States) {
    let bounding = empty_bounding_set();
    match drop_held() {
        Ok(()) => {
            let detail = match bounding {
                Ok(()) => "none, and none in the bounding set".to_owned(),
                // Without capabilities, the bounding set cannot give this process any.
                Err(errno) => format!("none; the bounding set is as it was: {errno}"),
            };
            states.enforced(Layer::Capabilities, detail);
        }
        Err(errno) => {
            states.missing(Layer::Capabilities, format!("the kernel did not drop them: {errno}"));
        }
    }
}

fn drop_held() -> Result<(), Errno> {
    match clear_ambient_capability_set() {
        // A kernel without ambient sets has none to clear.
        Err(Errno::INVAL) => {}
        result => result?,
    }
    set_capabilities(None, NONE)?;
    if capabilities(None)? == NONE { Ok(()) } else { Err(Errno::PERM) }
}

/// Empties the set of capabilities that a started program can get. Needs the privilege to do so.
fn empty_bounding_set() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => remove_capability_from_bounding_set(capability)?,
            Ok(false) => {}
            // The first number beyond the kernel's last capability.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
