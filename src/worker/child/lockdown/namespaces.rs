//! Namespaces of the worker's own: users, mounts, network, IPC.
//!
//! A namespace of process numbers would hold the children that the worker never has, one of host
//! names copies the name that it should hide: neither is made.

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::states::States;
use crate::data::isolation::Layer;

/// Enters each namespace that the kernel grants, and records each.
///
/// The namespace of users comes first: in it the process may make the others, whoever it was
/// before. Nobody is mapped into it, so its user has no name there. Where it is denied, a process
/// that is privileged still gets the others.
pub(super) fn enter(states: &mut States) {
    let user = unshare(UnshareFlags::NEWUSER);
    match user {
        Ok(()) => states.enforced(Layer::UserNamespace, "its user is nobody"),
        Err(errno) => states.missing(
            Layer::UserNamespace,
            format!("the kernel does not allow this process a user namespace: {errno}"),
        ),
    }
    let others = [
        (Layer::MountNamespace, UnshareFlags::NEWNS, "mount", ""),
        (Layer::NetworkNamespace, UnshareFlags::NEWNET, "network", "a loopback that is down"),
        (Layer::IpcNamespace, UnshareFlags::NEWIPC, "IPC", ""),
    ];
    for (layer, flag, name, detail) in others {
        match unshare(flag) {
            Ok(()) => states.enforced(layer, detail),
            Err(errno) => states.missing(
                layer,
                format!("the kernel does not allow this process a new {name} namespace: {errno}"),
            ),
        }
    }
}

fn unshare(flag: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "one flag of this call would take descriptors from threads")]
    // SAFETY: the call is unsafe for `UnshareFlags::FILES` only, and no caller passes that.
    unsafe {
        rustix::thread::unshare_unsafe(flag)
    }
}
