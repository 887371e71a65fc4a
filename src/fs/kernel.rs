//! What Linux alone has or tells of its file systems: which are the kernel's own, what is mounted
//! where, directories that are not read.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{OFlags, fstat};

use super::root::Identity;

/// How a directory is opened that is only passed through: it need not be readable.
pub(super) const PASSED: OFlags = OFlags::PATH;

/// Further directories of programs, and secret ones in a home directory.
pub(super) const PROGRAMS: &[&str] = &[];
pub(super) const SECRETS: &[&str] = &[];

/// Returns the identity of an open file.
pub(super) fn identity(opened: impl AsFd) -> io::Result<Identity> {
    let found = fstat(opened)?;
    Ok((found.st_dev, found.st_ino))
}

/// Types of file systems whose files belong to the kernel, from `linux/magic.h` and the kernel's
/// sources.
const KERNEL_FILE_SYSTEMS: [u64; 20] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x1cd1,      // devpts
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0x6165_676c, // pstore
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x1980_0202, // mqueue
    0x6e73_6673, // nsfs
    0x0765_5821, // resctrl
    0xabba_1974, // xenfs
    0x6573_5543, // fusectl
];

/// Returns `true` if an open file is on a file system of the kernel, or if its file system cannot
/// be determined.
pub(super) fn is_of_kernel(opened: impl AsFd) -> bool {
    rustix::fs::fstatfs(opened)
        .ok()
        .and_then(|file_system| u64::try_from(file_system.f_type).ok())
        .is_none_or(|kind| KERNEL_FILE_SYSTEMS.contains(&kind))
}

/// Returns the process's table of mounts; empty if it cannot be read.
pub(super) fn mounts() -> String {
    std::fs::read("/proc/self/mountinfo")
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}
