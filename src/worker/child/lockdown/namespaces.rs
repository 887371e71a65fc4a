//! The worker's own namespaces: user, mount, network, IPC, and for a forkable worker PID.
//!
//! Other workers have no children, for which a PID namespace would be. A UTS namespace is not used:
//! it starts with a copy of the host name that it should hide.

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::states::States;
use crate::data::isolation::Layer;

/// Enters each namespace that the kernel grants, and records the result.
///
/// The user namespace comes first: in it, any process may create the others. No user is mapped into
/// it, so the worker's user has no name there. If it is denied, a privileged process can still
/// enter the others.
pub(super) fn enter(forkable: bool, states: &mut States) {
    let user = unshare(UnshareFlags::NEWUSER);
    match user {
        Ok(()) => states.enforced(Layer::UserNamespace, "its user is nobody"),
        Err(errno) => states.missing(
            Layer::UserNamespace,
            format!("the kernel does not allow this process a user namespace: {errno}"),
        ),
    }
    let pid = (Layer::PidNamespace, UnshareFlags::NEWPID, "PID", "for it and its copies");
    let others = [
        (Layer::MountNamespace, UnshareFlags::NEWNS, "mount", ""),
        (Layer::NetworkNamespace, UnshareFlags::NEWNET, "network", "a loopback that is down"),
        (Layer::IpcNamespace, UnshareFlags::NEWIPC, "IPC", ""),
    ];
    if !forkable {
        states.missing(Layer::PidNamespace, "only a session that can be forked has one");
    }
    let others = others.into_iter().chain(forkable.then_some(pid));
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
    // SAFETY: the call is unsafe only for `UnshareFlags::FILES`, and no caller passes that.
    unsafe {
        rustix::thread::unshare_unsafe(flag)
    }
}
