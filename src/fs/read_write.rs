//! A writable mount of a host directory.

use std::fs::{File, FileTimes, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, MetadataExt, OpenOptions, OpenOptionsExt};

use super::budget::{Budget, Resource};
use super::error::{Denial, FileError};
use super::host_tree::{HostTree, read_at, uninterrupted};
use super::moved;
use super::path::{RelativePath, climbs};
use super::request::{FileKind, FileStat, OpenFlags};
use super::volume::{FileCopies, OpenFile, Opened, Times, Volume, VolumeCopy};

/// The permissions of new files and directories before the process's umask, as programs of the host
/// request them. No file is executable.
const NEW_FILE: u32 = 0o666;
const NEW_DIRECTORY: u32 = 0o777;
/// Permissions that the owner always has on a new directory.
const OWNER: u32 = 0o700;
/// How often opening or creating a file is tried while others create and remove it.
const ATTEMPTS: u32 = 4;

/// A host directory mounted for reading and writing.
pub(crate) struct ReadWrite {
    tree: HostTree,
    budget: Arc<Budget>,
}

struct ReadWriteFile {
    file: File,
    tree: HostTree,
    budget: Arc<Budget>,
}

impl ReadWrite {
    pub(crate) fn new(tree: HostTree, budget: Arc<Budget>) -> Self {
        Self { tree, budget }
    }

    /// Opens or creates the file at a path. The flag is set if it was created.
    fn open_or_create(
        &self,
        path: RelativePath<'_>,
        options: &mut OpenOptions,
        flags: OpenFlags,
    ) -> Result<(File, bool), FileError> {
        for _ in 0..ATTEMPTS {
            if !flags.exclusive {
                match self.tree.open(path, options) {
                    Err(FileError::NotFound) => {}
                    other => return Ok((other?.0, false)),
                }
            }
            let created = self.counted(|| {
                let mut options = options.clone();
                options.write(true).create_new(true).mode(NEW_FILE);
                self.tree.open(path, &options)
            });
            match created {
                Err(FileError::Exists) if !flags.exclusive => {}
                other => return Ok((other?.0, true)),
            }
        }
        Err(FileError::Busy)
    }

    /// Creates a file and counts it if that succeeds.
    fn counted<T>(&self, make: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
        self.budget.spend(Resource::Files, 1)?;
        make().inspect_err(|_| self.budget.refund(Resource::Files, 1))
    }

    /// Opens a file or directory whose attributes will be changed.
    fn open_any(&self, path: RelativePath<'_>) -> Result<(File, cap_std::fs::Metadata), FileError> {
        let (parent, name) = self.tree.parent(path)?;
        self.tree.open_in(&parent, name, OpenOptions::new().read(true))
    }

    /// Denies a move after which a link would lead a program of the host out of the mount.
    fn check_moved(
        &self,
        kind: FileKind,
        parent: &Dir,
        name: &str,
        to: RelativePath<'_>,
    ) -> Result<(), FileError> {
        match kind {
            FileKind::File => Ok(()),
            FileKind::Link => moved::check_link(&parent.read_link_contents(name)?, to),
            FileKind::Directory => {
                let directory = parent.open_dir_nofollow(name)?;
                moved::check_directory(&directory, to, self.tree.limits())
            }
        }
    }
}

impl Volume for ReadWrite {
    fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError> {
        self.tree.stat(path)
    }

    fn open(&self, path: RelativePath<'_>, flags: OpenFlags) -> Result<Opened, FileError> {
        let mut options = OpenOptions::new();
        options.read(flags.read).write(flags.write).append(flags.write && flags.append);
        let (file, created) = if flags.create {
            self.open_or_create(path, &mut options, flags)?
        } else {
            (self.tree.open(path, &options)?.0, false)
        };
        if flags.truncate {
            // Not truncated by a flag of `open`: the check for a regular file must come first.
            file.set_len(0)?;
        }
        let (tree, budget) = (self.tree.clone(), Arc::clone(&self.budget));
        Ok(Opened { file: Box::new(ReadWriteFile { file, tree, budget }), created })
    }

    fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError> {
        self.tree.list(path)
    }

    fn read_link(&self, path: RelativePath<'_>) -> Result<String, FileError> {
        self.tree.read_link(path)
    }

    fn set_size(&self, path: RelativePath<'_>, size: u64) -> Result<(), FileError> {
        let (file, _) = self.tree.open(path, OpenOptions::new().write(true))?;
        set_size(&file, size, &self.budget)
    }

    fn make_directory(&self, path: RelativePath<'_>, mode: u32) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Exists)?;
        let parent = self.tree.directory(parent)?;
        let mut builder = DirBuilder::new();
        builder.mode(OWNER | (mode & NEW_DIRECTORY));
        self.counted(|| Ok(parent.create_dir_with(name, &builder)?))
    }

    fn remove_directory(&self, path: RelativePath<'_>) -> Result<(), FileError> {
        let (parent, name) = self.tree.parent(path)?;
        Ok(parent.remove_dir(name)?)
    }

    fn remove(&self, path: RelativePath<'_>) -> Result<(), FileError> {
        let (parent, name) = self.tree.parent(path)?;
        match self.tree.describe(&parent.symlink_metadata(name)?)?.kind {
            FileKind::Directory => Err(FileError::IsDirectory),
            FileKind::File | FileKind::Link => Ok(parent.remove_file(name)?),
        }
    }

    fn rename(&self, from: RelativePath<'_>, to: RelativePath<'_>) -> Result<(), FileError> {
        // Keeps other sessions from renaming anything in this mount meanwhile.
        let _turn = self.tree.moving();
        let (from_parent, from_name) = self.tree.parent(from)?;
        let (to_parent, to_name) = self.tree.parent(to)?;
        let kind = self.tree.describe(&from_parent.symlink_metadata(from_name)?)?.kind;
        self.check_moved(kind, &from_parent, from_name, to)?;
        match to_parent.symlink_metadata(to_name).map_err(FileError::from) {
            // An entry that is not shown must not be replaced either.
            Ok(metadata) => drop(self.tree.describe(&metadata)?),
            Err(FileError::NotFound) => {}
            Err(error) => return Err(error),
        }
        Ok(from_parent.rename(from_name, &to_parent, to_name)?)
    }

    fn copy(&self) -> Result<Option<VolumeCopy>, FileError> {
        let (tree, budget) = (self.tree.clone(), self.budget.copy());
        let volume = Arc::new(Self { tree, budget: Arc::clone(&budget) });
        Ok(Some(VolumeCopy { volume, overlay: None, files: FileCopies::Budget(budget) }))
    }

    fn make_link(&self, path: RelativePath<'_>, target: &str) -> Result<(), FileError> {
        if climbs(target) {
            return Err(Denial::LinkTarget.into());
        }
        let (parent, name) = path.split().ok_or(FileError::Exists)?;
        let parent = self.tree.directory(parent)?;
        self.counted(|| Ok(parent.symlink(target, name)?))
    }

    fn set_times(&self, path: RelativePath<'_>, times: Times) -> Result<(), FileError> {
        let (file, _) = self.open_any(path)?;
        let times = FileTimes::new()
            .set_accessed(system_time(times.accessed_ms)?)
            .set_modified(system_time(times.modified_ms)?);
        Ok(file.set_times(times)?)
    }

    /// Sets the owner's write permission, and always keeps the owner's read permission. Permissions
    /// of others are only removed, never added, and no file stays executable.
    fn set_mode(&self, path: RelativePath<'_>, mode: u32) -> Result<(), FileError> {
        let (file, metadata) = self.open_any(path)?;
        let kept = mode & metadata.mode();
        let mode = if metadata.is_dir() {
            0o500 | (mode & 0o200) | (kept & 0o077)
        } else {
            0o400 | (mode & 0o200) | (kept & 0o066)
        };
        Ok(file.set_permissions(Permissions::from_mode(mode))?)
    }
}

impl OpenFile for ReadWriteFile {
    fn stat(&self) -> Result<FileStat, FileError> {
        self.tree.describe_file(&self.file)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        read_at(&self.file, offset, into)
    }

    fn copy(&self, copies: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError> {
        let Some(FileCopies::Budget(budget)) = copies else { return Err(FileError::Io) };
        let (file, tree) = (self.file.try_clone()?, self.tree.clone());
        Ok(Box::new(Self { file, tree, budget: Arc::clone(budget) }))
    }

    fn write(&self, offset: Option<u64>, bytes: &[u8]) -> Result<usize, FileError> {
        let length = bytes.len() as u64;
        let cost = match offset {
            // A gap between the end and the offset becomes part of the file too.
            Some(offset) => {
                let end = offset.checked_add(length).ok_or(FileError::TooLarge)?;
                length.max(end.saturating_sub(self.file.metadata()?.len()))
            }
            None => length,
        };
        self.budget.spend(Resource::Bytes, cost)?;
        let written = uninterrupted(|| match offset {
            Some(offset) => self.file.write_at(bytes, offset),
            None => (&self.file).write(bytes),
        });
        match written {
            Ok(count) => {
                self.budget.refund(Resource::Bytes, length.saturating_sub(count as u64));
                Ok(count)
            }
            Err(error) => {
                self.budget.refund(Resource::Bytes, cost);
                Err(error.into())
            }
        }
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        set_size(&self.file, size, &self.budget)
    }

    fn sync(&self) -> Result<(), FileError> {
        Ok(self.file.sync_all()?)
    }
}

fn set_size(file: &File, size: u64, budget: &Budget) -> Result<(), FileError> {
    let growth = size.saturating_sub(file.metadata()?.len());
    budget.spend(Resource::Bytes, growth)?;
    Ok(file.set_len(size).inspect_err(|_| budget.refund(Resource::Bytes, growth))?)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "times are whole and within JavaScript's dates"
)]
fn system_time(milliseconds: f64) -> Result<SystemTime, FileError> {
    let milliseconds = milliseconds as i64;
    let distance = Duration::from_millis(milliseconds.unsigned_abs());
    let time = if milliseconds < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.ok_or(FileError::Invalid)
}
