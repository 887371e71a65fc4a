//! A read-only mount of a host directory.

use std::fs::File;

use super::error::{Denial, FileError};
use super::host_tree::{HostTree, read_at};
use super::path::RelativePath;
use super::request::{FileKind, FileStat, OpenFlags};
use super::volume::{FileCopies, OpenFile, Opened, Volume};

/// The permission bits that a read-only mount shows.
const READABLE: u32 = 0o555;

/// A host directory mounted for reading.
pub(crate) struct ReadOnly(HostTree);

struct ReadOnlyFile {
    file: File,
    tree: HostTree,
}

impl ReadOnly {
    pub(crate) fn new(tree: HostTree) -> Self {
        Self(tree)
    }
}

impl Volume for ReadOnly {
    fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError> {
        self.0.stat(path).map(readable)
    }

    fn open(&self, path: RelativePath<'_>, flags: OpenFlags) -> Result<Opened, FileError> {
        if flags.create {
            match self.0.stat(path) {
                Ok(_) if flags.exclusive => return Err(FileError::Exists),
                Err(FileError::NotFound) => return Err(Denial::ReadOnly.into()),
                _ => {}
            }
        }
        if flags.write {
            return Err(Denial::ReadOnly.into());
        }
        let (file, _) = self.0.open_to_read(path)?;
        let file = Box::new(ReadOnlyFile { file, tree: self.0.clone() });
        Ok(Opened { file, created: false })
    }

    fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError> {
        self.0.list(path)
    }

    fn read_link(&self, path: RelativePath<'_>) -> Result<String, FileError> {
        self.0.read_link(path)
    }
}

impl OpenFile for ReadOnlyFile {
    fn stat(&self) -> Result<FileStat, FileError> {
        self.tree.describe_file(&self.file).map(readable)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        read_at(&self.file, offset, into)
    }

    fn copy(&self, _: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError> {
        Ok(Box::new(Self { file: self.file.try_clone()?, tree: self.tree.clone() }))
    }
}

fn readable(stat: FileStat) -> FileStat {
    match stat.kind {
        FileKind::Link => stat,
        FileKind::File | FileKind::Directory => FileStat { mode: stat.mode & READABLE, ..stat },
    }
}
