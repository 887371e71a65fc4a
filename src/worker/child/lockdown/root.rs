//! Replaces the root directory with an empty one, in the worker's mount namespace.

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::states::States;
use crate::data::isolation::Layer;

/// A directory that exists on every system, as the mount point of the new root.
const PLACE: &str = "/proc";

/// A file system with room for its root directory only.
const OPTIONS: &std::ffi::CStr = c"mode=0555,size=4096,nr_inodes=1";

/// Makes an empty directory the root, and unmounts everything else.
pub(super) fn replace(states: &mut States) {
    if !states.is_enforced(Layer::MountNamespace) {
        return;
    }
    match pivot() {
        Ok(()) => states.enforced(Layer::MountNamespace, "an empty root directory"),
        Err((step, errno)) => states.missing(
            Layer::MountNamespace,
            format!("the kernel does not allow this process to {step}: {errno}"),
        ),
    }
}

fn pivot() -> Result<(), (&'static str, Errno)> {
    let step = |step| move |errno| (step, errno);
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(step("make its mounts private"))?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("none", PLACE, "tmpfs", flags, OPTIONS)
        .map_err(step("mount an empty directory"))?;
    rustix::process::chdir(PLACE).map_err(step("enter an empty directory"))?;
    // The old root is stacked on top of the new one, and then unmounted with all its mounts.
    rustix::process::pivot_root(".", ".").map_err(step("change its root directory"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(step("unmount its old root"))?;
    rustix::process::chdir("/").map_err(step("enter its new root directory"))
}
