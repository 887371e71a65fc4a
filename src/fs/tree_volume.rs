//! A mounted [`Tree`].

use std::io::Read;
use std::sync::Arc;

use super::error::{Denial, FileError};
use super::inodes::Inodes;
use super::path::RelativePath;
use super::request::{FileKind, FileStat, OpenFlags};
use super::tree::{Tree, TreeEntry};
use super::volume::{FileCopies, OpenFile, Opened, Volume};

/// A mounted tree.
pub(crate) struct TreeVolume {
    tree: Arc<dyn Tree>,
    inodes: Arc<Inodes>,
    mount: u64,
}

struct TreeFile {
    bytes: Arc<[u8]>,
    stat: FileStat,
}

impl TreeVolume {
    /// Mounts a tree as mount number `mount`.
    pub(crate) fn new(tree: Arc<dyn Tree>, inodes: Arc<Inodes>, mount: u64) -> Self {
        Self { tree, inodes, mount }
    }
}

impl Volume for TreeVolume {
    fn stat(&self, path: RelativePath<'_>) -> Result<FileStat, FileError> {
        let entry = self.tree.entry(path.as_str()).ok_or(FileError::NotFound)?;
        let (kind, mode, size, modified_ms) = match entry {
            TreeEntry::File { size, modified_ms } => (FileKind::File, 0o444, size, modified_ms),
            TreeEntry::Directory { modified_ms } => (FileKind::Directory, 0o555, 0, modified_ms),
        };
        let inode = self.inodes.of_path(self.mount, path.as_str());
        let (accessed_ms, changed_ms) = (modified_ms, modified_ms);
        Ok(FileStat { kind, size, mode, modified_ms, accessed_ms, changed_ms, inode })
    }

    fn open(&self, path: RelativePath<'_>, flags: OpenFlags) -> Result<Opened, FileError> {
        let stat = match self.stat(path) {
            Err(FileError::NotFound) if flags.create => return Err(Denial::ReadOnly.into()),
            other => other?,
        };
        if stat.kind == FileKind::Directory {
            return Err(FileError::IsDirectory);
        }
        if flags.create && flags.exclusive {
            return Err(FileError::Exists);
        }
        if flags.write {
            return Err(Denial::ReadOnly.into());
        }
        let bytes = self.tree.bytes(path.as_str())?;
        Ok(Opened { file: Box::new(TreeFile { bytes, stat }), created: false })
    }

    fn list(&self, path: RelativePath<'_>) -> Result<Vec<String>, FileError> {
        if self.stat(path)?.kind != FileKind::Directory {
            return Err(FileError::NotDirectory);
        }
        self.tree.names(path.as_str()).ok_or(FileError::NotFound)
    }

    fn read_link(&self, path: RelativePath<'_>) -> Result<String, FileError> {
        self.stat(path)?;
        Err(FileError::Invalid)
    }
}

impl OpenFile for TreeFile {
    fn stat(&self) -> Result<FileStat, FileError> {
        Ok(self.stat)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = self.bytes.get(start..).unwrap_or_default();
        Ok(rest.read(into)?)
    }

    fn copy(&self, _: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError> {
        Ok(Box::new(Self { bytes: Arc::clone(&self.bytes), stat: self.stat }))
    }
}
