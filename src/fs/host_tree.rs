//! Access to a directory of the host. Every access walks the path with the same code.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, FileType, Metadata, MetadataExt, OpenOptions};

use super::error::{Denial, FileError};
use super::inodes::Inodes;
use super::limits::FileLimits;
use super::path::RelativePath;
use super::request::{FileKind, FileStat};
use super::root::Root;

const PERMISSIONS: u32 = 0o777;

/// A directory of the host, and how its files are described to the guest.
#[derive(Clone)]
pub(crate) struct HostTree {
    root: Arc<Root>,
    inodes: Arc<Inodes>,
    limits: FileLimits,
}

impl HostTree {
    pub(crate) fn new(root: Arc<Root>, inodes: Arc<Inodes>, limits: FileLimits) -> Self {
        Self { root, inodes, limits }
    }

    pub(crate) fn limits(&self) -> &FileLimits {
        &self.limits
    }

    /// Locks out all other renames in this mount, of all sessions, until the guard is dropped.
    pub(crate) fn moving(&self) -> MutexGuard<'_, ()> {
        self.root.moving()
    }

    /// Opens the directory at a path, one name at a time.
    ///
    /// Each name is opened relative to the previous directory, and links are not followed. Whatever
    /// is renamed meanwhile, the result is beneath the root.
    pub(crate) fn directory(&self, path: RelativePath<'_>) -> Result<Dir, FileError> {
        let mut directory = self.root.dir().try_clone()?;
        for name in path.names() {
            directory = directory.open_dir_nofollow(name)?;
            self.root.admit(&directory, &directory.dir_metadata()?)?;
        }
        Ok(directory)
    }

    /// Opens the directory that contains a path's last name. Fails with `Busy` for the root.
    pub(crate) fn parent<'a>(&self, path: RelativePath<'a>) -> Result<(Dir, &'a str), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Busy)?;
        Ok((self.directory(parent)?, name))
    }

    /// Describes the file at a path.
    pub(crate) fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError> {
        let metadata = match path.split() {
            None => self.root.dir().dir_metadata()?,
            Some((parent, name)) => self.directory(parent)?.symlink_metadata(name)?,
        };
        self.describe(&metadata)
    }

    /// Opens the regular file at a path with these options.
    pub(crate) fn open(
        &self,
        path: RelativePath<'_>,
        options: &OpenOptions,
    ) -> Result<(File, Metadata), FileError> {
        let (parent, name) = path.split().ok_or(FileError::IsDirectory)?;
        let (file, metadata) = self.open_in(&self.directory(parent)?, name, options)?;
        if metadata.is_dir() { Err(FileError::IsDirectory) } else { Ok((file, metadata)) }
    }

    /// Opens a regular file or a directory. The type is checked on the opened file.
    pub(crate) fn open_in(
        &self,
        parent: &Dir,
        name: &str,
        options: &OpenOptions,
    ) -> Result<(File, Metadata), FileError> {
        // Non-blocking, so that opening does not wait for a FIFO, a device or a lease.
        let options = options.clone().follow(FollowSymlinks::No).nonblock(true).clone();
        let file = parent.open_with(name, &options)?.into_std();
        let metadata = Metadata::from_file(&file)?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(Denial::SpecialFile.into());
        }
        self.root.admit(&file, &metadata)?;
        Ok((file, metadata))
    }

    /// Opens the regular file at a path for reading.
    pub(crate) fn open_to_read(
        &self,
        path: RelativePath<'_>,
    ) -> Result<(File, Metadata), FileError> {
        self.open(path, OpenOptions::new().read(true))
    }

    /// Lists a directory, sorted. Omits special files and names that are not UTF-8.
    pub(crate) fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError> {
        let limit = self.limits.list_entries;
        let mut names = Vec::new();
        for entry in self.directory(path)?.entries()? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if entry.file_type().ok().and_then(kind).is_none() {
                continue;
            }
            if names.len() as u64 >= limit {
                return Err(FileError::TooManyEntries { limit });
            }
            names.push(name);
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the target of a link, unresolved.
    pub(crate) fn read_link(&self, path: RelativePath<'_>) -> Result<String, FileError> {
        let (parent, name) = path.split().ok_or(FileError::Invalid)?;
        let target = self.directory(parent)?.read_link_contents(name)?;
        // The guest could not reach a target that is not UTF-8.
        target.into_os_string().into_string().map_err(|_| Denial::LinkTarget.into())
    }

    /// Converts metadata to a description. Denies special files.
    pub(crate) fn describe(&self, metadata: &Metadata) -> Result<FileStat, FileError> {
        let kind = kind(metadata.file_type()).ok_or(Denial::SpecialFile)?;
        Ok(FileStat {
            kind,
            size: metadata.len(),
            mode: metadata.mode() & PERMISSIONS,
            modified_ms: milliseconds(metadata.mtime(), metadata.mtime_nsec()),
            accessed_ms: milliseconds(metadata.atime(), metadata.atime_nsec()),
            changed_ms: milliseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: self.inodes.of_host(metadata.dev(), metadata.ino()),
        })
    }

    /// Describes an open file.
    pub(crate) fn describe_file(&self, file: &File) -> Result<FileStat, FileError> {
        self.describe(&Metadata::from_file(file)?)
    }

    /// Returns the canonical path of the root. Only for the owner, never for the guest.
    pub(crate) fn host(&self) -> &Path {
        self.root.host()
    }
}

/// Reads once, at most as many bytes as fit.
pub(crate) fn read_at(file: &File, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
    Ok(uninterrupted(|| file.read_at(into, offset))?)
}

/// Repeats an action that a signal interrupted.
pub(crate) fn uninterrupted<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match action() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn kind(file_type: FileType) -> Option<FileKind> {
    if file_type.is_file() {
        Some(FileKind::File)
    } else if file_type.is_dir() {
        Some(FileKind::Directory)
    } else if file_type.is_symlink() {
        Some(FileKind::Link)
    } else {
        None
    }
}

#[expect(clippy::cast_precision_loss, reason = "times that far away need not be exact")]
fn milliseconds(seconds: i64, nanoseconds: i64) -> f64 {
    seconds as f64 * 1e3 + (nanoseconds / 1_000_000) as f64
}
