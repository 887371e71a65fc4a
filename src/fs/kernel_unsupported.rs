//! Replaces `kernel.rs` on other systems than Linux: directories are told apart by their names and
//! numbers there.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::OFlags;

use super::root::Identity;

/// How a directory is opened that is only passed through: it has to be readable.
pub(super) const PASSED: OFlags = OFlags::RDONLY;

/// Further directories of programs, and secret ones in a home directory: those of macOS.
pub(super) const PROGRAMS: &[&str] = &["/Applications", "/Library", "/System", "/opt"];
pub(super) const SECRETS: &[&str] = &["Library"];

/// Returns the identity of an open file.
pub(super) fn identity(opened: impl AsFd) -> io::Result<Identity> {
    let found = File::from(opened.as_fd().try_clone_to_owned()?).metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Returns `false`: such file systems exist only at paths that are refused anyway.
pub(super) fn is_of_kernel(_opened: impl AsFd) -> bool {
    false
}

/// Returns an empty table of mounts.
pub(super) fn mounts() -> String {
    String::new()
}
