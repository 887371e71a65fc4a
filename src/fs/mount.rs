//! `Mount`: a directory of the host, and how a guest may access it.

use std::path::Path;
use std::sync::Arc;

use super::root::Root;
use super::sensitive_paths;
use crate::data::error::Error;

pub(crate) const READ_WRITE_BYTES: u64 = 1024 * 1024 * 1024;
pub(crate) const OVERLAY_BYTES: u64 = 256 * 1024 * 1024;
pub(crate) const FILES: u64 = 10_000;

/// A directory of the host that guests may access.
///
/// The directory is opened when the mount is made, and stays the same one if its path is later
/// renamed or replaced. Clones share it. Files are read when the guest asks for them, however large
/// they are; nothing is copied in advance.
///
/// The guest cannot reach any other directory. Links are followed only within the mount and `..`
/// not at all, and FIFOs, sockets and devices are neither listed nor opened. Names that are not
/// UTF-8 are not listed. Errors contain only guest paths. A network file system of the host may
/// make the guest wait.
///
/// Mounting fails for directories that would expose the host:
/// * `/`, `/proc`, `/sys`, `/dev`, `/etc`, `/run`, `/boot`;
/// * the user's home directory and its `.ssh`, `.aws`, `.gnupg` and `.config`;
/// * directories inside these, except inside `/run` and the home directory;
/// * directories that contain one of these;
/// * a directory with the socket of a container engine;
/// * for [`read_write`](Self::read_write), also directories of programs, such as `/usr`.
///
/// The `dangerous_` constructors mount them anyway. Even then, no file in `/proc`, `/sys` and
/// `/dev` is visible beneath another directory.
#[derive(Clone, Debug)]
pub struct Mount {
    root: Arc<Root>,
    mode: MountMode,
    quota_bytes: u64,
    quota_files: u64,
}

/// How a guest may access a mounted directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MountMode {
    /// The guest can read the directory.
    ReadOnly,
    /// The guest can read the directory and change its own view of it: changes are kept in memory,
    /// separately for each session.
    Overlay,
    /// The guest can read and change the directory.
    ReadWrite,
}

impl Mount {
    /// Mounts a directory that the guest can only read.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, or is [refused](Self).
    pub fn read_only(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::checked(host.as_ref(), MountMode::ReadOnly)
    }

    /// Mounts a directory whose changes by the guest stay in memory, separately for each session.
    /// The host directory does not change.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, or is [refused](Self).
    pub fn overlay(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::checked(host.as_ref(), MountMode::Overlay)
    }

    /// Mounts a directory that the guest can change.
    ///
    /// No program of the host should run, import or source files in this directory, because the
    /// guest controls them. New files and directories get the permissions that this process's umask
    /// leaves, and no file becomes executable. The guest reads and writes with the permissions of
    /// this process.
    ///
    /// The guest cannot create or move a link, or move a directory with a link in it, in a way that
    /// makes a link lead out of the mount. It can still create a link to an existing link of yours
    /// that leads out. Programs of the host that write to files in the mount must therefore not
    /// follow links.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened, or is [refused](Self).
    pub fn read_write(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::checked(host.as_ref(), MountMode::ReadWrite)
    }

    /// Mounts a directory as [`read_only`](Self::read_only) does, without refusing any.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn dangerous_read_only(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::unchecked(host.as_ref(), MountMode::ReadOnly)
    }

    /// Mounts a directory as [`overlay`](Self::overlay) does, without refusing any.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn dangerous_overlay(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::unchecked(host.as_ref(), MountMode::Overlay)
    }

    /// Mounts a directory as [`read_write`](Self::read_write) does, without refusing any.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn dangerous_read_write(host: impl AsRef<Path>) -> Result<Self, Error> {
        Self::unchecked(host.as_ref(), MountMode::ReadWrite)
    }

    /// Sets how many bytes each session may write through the mount.
    ///
    /// With [`ReadWrite`](MountMode::ReadWrite), every byte counts that is written or that a file
    /// grows by, and none is given back. Default: 1 GiB. With [`Overlay`](MountMode::Overlay), the
    /// size of the files that the overlay holds counts. Default: 256 MiB.
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = bytes;
        self
    }

    /// Sets how many files, directories and links each session may create through the mount.
    /// Default: 10,000.
    ///
    /// With [`Overlay`](MountMode::Overlay), changed files count too, and removed ones stop
    /// counting.
    #[must_use]
    pub fn quota_files(mut self, files: u64) -> Self {
        self.quota_files = files;
        self
    }

    /// Returns how a guest may access the directory.
    #[must_use]
    pub fn mode(&self) -> MountMode {
        self.mode
    }

    pub(crate) fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Returns the quotas, in bytes and in files.
    pub(crate) fn quotas(&self) -> (u64, u64) {
        (self.quota_bytes, self.quota_files)
    }

    fn checked(host: &Path, mode: MountMode) -> Result<Self, Error> {
        let mount = Self::unchecked(host, mode)?;
        sensitive_paths::check(&mount.root, mode)?;
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
