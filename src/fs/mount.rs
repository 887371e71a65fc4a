//! `Mount`: a directory of the host that a guest may see, and how.

use std::path::Path;
use std::sync::Arc;

use super::refused;
use super::root::Root;
use crate::data::error::Error;

const READ_WRITE_BYTES: u64 = 1024 * 1024 * 1024;
const OVERLAY_BYTES: u64 = 256 * 1024 * 1024;
const FILES: u64 = 10_000;

/// A directory of the host that guests may see.
///
/// The directory is opened when the mount is made, and stays the same one if its path is renamed or
/// replaced later. Clones share it. Files are read when the guest asks for them, however large;
/// nothing is copied before.
///
/// The guest gets to no other directory: links are followed only within the mount, `..` not at all,
/// and FIFOs, sockets and devices are neither listed nor opened. Names that are not UTF-8 are not
/// listed. Its errors name paths of the guest only. A network file system of the host may make the
/// guest wait.
///
/// Some directories are refused, since they give away the host: `/`, `/proc`, `/sys`, `/dev`,
/// `/etc`, `/run`, `/boot`, the user's home directory and its `.ssh`, `.aws`, `.gnupg` and
/// `.config`, what is in those (except in `/run` and in the home directory), what contains one of
/// them, and a directory with the socket of a container engine. For
/// [`read_write`](Self::read_write), so are directories of programs, such as `/usr`. The
/// `dangerous_` constructors mount them all the same; then too, nothing in `/proc`, `/sys` and
/// `/dev` is shown beneath another directory.
#[derive(Clone, Debug)]
pub struct Mount {
    root: Arc<Root>,
    mode: MountMode,
    quota_bytes: u64,
    quota_files: u64,
}

/// What a guest may do with a mounted directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MountMode {
    /// Read it.
    ReadOnly,
    /// Read it, and change what it sees of it: changes are kept in memory, and each session has its
    /// own.
    Overlay,
    /// Read and change it.
    ReadWrite,
}

impl Mount {
    /// Mounts a directory that the guest may only read.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, or is one that is [refused](Self).
    pub fn read_only(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::checked(host.as_ref(), MountMode::ReadOnly)
    }

    /// Mounts a directory that the guest may change for itself: writes stay in memory, each session
    /// has its own, and the directory of the host remains as it is.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, or is one that is [refused](Self).
    pub fn overlay(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::checked(host.as_ref(), MountMode::Overlay)
    }

    /// Mounts a directory that the guest may change.
    ///
    /// Let no program of the host run, import or source what is in it: it is the guest's. New files
    /// and directories get the permissions that the umask of this process leaves, and no file
    /// becomes executable. The guest reads and writes with the permissions of this process.
    ///
    /// The guest cannot make or move a link, nor a directory with a link in it, so that a link of
    /// its own or of yours leads out of the mount where it did not before. It can still make a link
    /// to a link of yours that leads out: a program of the host that writes to files in the mount
    /// must not follow links.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, or is one that is [refused](Self).
    pub fn read_write(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::checked(host.as_ref(), MountMode::ReadWrite)
    }

    /// Mounts as [`read_only`](Self::read_only) does, and refuses no directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn dangerous_read_only(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::unchecked(host.as_ref(), MountMode::ReadOnly)
    }

    /// Mounts as [`overlay`](Self::overlay) does, and refuses no directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn dangerous_overlay(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::unchecked(host.as_ref(), MountMode::Overlay)
    }

    /// Mounts as [`read_write`](Self::read_write) does, and refuses no directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn dangerous_read_write(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::unchecked(host.as_ref(), MountMode::ReadWrite)
    }

    /// Sets how many bytes each session may write through it.
    ///
    /// With [`ReadWrite`](MountMode::ReadWrite), the default is 1 GiB, and every byte counts that
    /// is written or that a file grows by; none is given back. With
    /// [`Overlay`](MountMode::Overlay), the default is 256 MiB, and what counts is the size of the
    /// files that the overlay holds.
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = bytes;
        self
    }

    /// Sets how many files, directories and links each session may create through it. Default
    /// 10,000.
    ///
    /// With [`Overlay`](MountMode::Overlay), files count that were changed, and removed ones no
    /// more.
    #[must_use]
    pub fn quota_files(mut self, files: u64) -> Self {
        self.quota_files = files;
        self
    }

    /// Returns what a guest may do with it.
    #[must_use]
    pub fn mode(&self) -> MountMode {
        self.mode
    }

    pub(crate) fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// The quotas, on bytes and files.
    pub(crate) fn quotas(&self) -> (u64, u64) {
        (self.quota_bytes, self.quota_files)
    }

    fn checked(host: &Path, mode: MountMode) -> Result<Self, Error> {
        let mount = Self::unchecked(host, mode)?;
        refused::check(&mount.root, mode)?;
        Ok(mount)
    }

    fn unchecked(host: &Path, mode: MountMode) -> Result<Self, Error> {
        let root = Arc::new(Root::open(host)?);
        let quota_bytes = match mode {
            MountMode::Overlay => OVERLAY_BYTES,
            MountMode::ReadOnly | MountMode::ReadWrite => READ_WRITE_BYTES,
        };
        Ok(Self { root, mode, quota_bytes, quota_files: FILES })
    }
}
