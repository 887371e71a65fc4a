//! An open directory of the host, and the files beneath it that are never shown.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use super::error::{Denial, FileError};
use super::kernel::is_of_kernel;
use crate::data::error::{Error, ErrorKind};

/// Directories that no walk enters, whatever is mounted.
const NEVER_ENTERED: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The identity of a file: its device and inode.
pub(crate) type Identity = (u64, u64);

/// An open directory of the host.
#[derive(Debug)]
pub(crate) struct Root {
    dir: Dir,
    host: PathBuf,
    identity: Identity,
    never_entered: Vec<Identity>,
    moving: Mutex<()>,
}

impl Root {
    /// Opens a directory of the host for a mount, following links.
    pub(crate) fn open(host: &Path) -> Result<Self, Error> {
        Self::open_directory(host).map_err(|error| {
            let shown = host.display();
            if error.kind() == io::ErrorKind::NotADirectory && host.is_file() {
                return config(format!("cannot mount `{shown}`: it is a file, not a directory"))
                    .with_hint("mount the directory that it is in")
                    .with_source(error);
            }
            config(format!("cannot mount `{shown}`: {error}")).with_source(error)
        })
    }

    /// Opens a directory of the host, following links.
    pub(crate) fn open_directory(host: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(host, ambient_authority())?;
        let identity = identity(&dir.dir_metadata()?);
        // The path may have changed meanwhile: it must still lead to the opened directory.
        let host = host.canonicalize()?;
        if identity_at(&host) != Some(identity) {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        let never_entered = NEVER_ENTERED.iter().filter_map(identity_at).collect();
        Ok(Self { dir, host, identity, never_entered, moving: Mutex::default() })
    }

    /// Returns the open directory.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Returns the canonical path at the time of opening.
    pub(crate) fn host(&self) -> &Path {
        &self.host
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Locks the directory while an entry beneath it is checked and renamed.
    pub(crate) fn moving(&self) -> MutexGuard<'_, ()> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the root itself is on a file system of the kernel.
    pub(crate) fn is_of_kernel(&self) -> bool {
        is_of_kernel(&self.dir)
    }

    /// Denies a file opened beneath the root if it belongs to the kernel or is a directory of
    /// devices.
    pub(crate) fn admit(&self, opened: impl AsFd, metadata: &Metadata) -> Result<(), FileError> {
        let (device, _) = self.identity;
        if self.never_entered.contains(&identity(metadata))
            || (metadata.dev() != device && is_of_kernel(opened))
        {
            return Err(Denial::KernelFiles.into());
        }
        Ok(())
    }
}

/// Returns the identity of the file at a host path, following links, if it exists.
pub(crate) fn identity_at(path: impl AsRef<Path>) -> Option<Identity> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Makes the error for a refused mount.
pub(crate) fn config(message: String) -> Error {
    Error::new(ErrorKind::Config, message)
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}
