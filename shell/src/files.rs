//! bashkit's file system: each operation is one call of the host.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bashkit::time::{SystemTime, UNIX_EPOCH};
use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, Metadata, Result, async_trait};

use crate::host;

/// How many bytes `stat` writes.
const STAT: usize = 40;

/// The files of the host.
pub(crate) struct HostFiles;

/// Calls a function of the host with a path as its first argument.
macro_rules! call {
    ($function:ident, $path:expr $(, $argument:expr)*) => {{
        let path = text($path);
        // SAFETY: the host reads the bytes, and writes to those it may, during the call.
        let result = unsafe { host::$function(path.as_ptr(), path.len() $(, $argument)*) };
        host::check(result)
    }};
}

/// A path as bytes; bashkit makes paths of strings.
fn text(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

/// Reads what `stat` wrote; `lib.rs` has the layout.
fn metadata(stat: &[u8]) -> Metadata {
    let time = |at| UNIX_EPOCH + Duration::from_micros(u64::from_le_bytes(number(stat, at)));
    Metadata {
        file_type: match u32::from_le_bytes(number(stat, 0)) {
            0 => FileType::File,
            1 => FileType::Directory,
            2 => FileType::Symlink,
            _ => FileType::Fifo,
        },
        mode: u32::from_le_bytes(number(stat, 4)),
        size: u64::from_le_bytes(number(stat, 8)),
        modified: time(16),
        created: time(24),
    }
}

/// Of the link itself, if it is one: bashkit follows links before it asks.
fn raw(path: &Path) -> io::Result<[u8; STAT]> {
    let mut stat = [0; STAT];
    call!(stat, path, stat.as_mut_ptr())?;
    Ok(stat)
}

fn status(path: &Path) -> io::Result<Metadata> {
    raw(path).map(|stat| metadata(&stat))
}

/// How many names a file has, which bashkit's trait does not have.
pub(crate) fn links(path: &Path) -> io::Result<u32> {
    raw(path).map(|stat| u32::from_le_bytes(number(&stat, 32)))
}

/// A number that two names of a file share.
pub(crate) fn inode(path: &Path) -> io::Result<u32> {
    raw(path).map(|stat| u32::from_le_bytes(number(&stat, 36)))
}

/// A hard link, which bashkit's trait does not have.
pub(crate) fn link(to: &Path, link: &Path) -> io::Result<()> {
    let link = text(link);
    call!(link, to, link.as_ptr(), link.len()).map(drop)
}

fn entries(mut bytes: &[u8]) -> Vec<DirEntry> {
    let mut entries = Vec::new();
    while bytes.len() >= 4 + STAT {
        let length = u32::from_le_bytes(number(bytes, 0)) as usize;
        let (name, rest) = bytes[4..].split_at(length);
        entries.push(DirEntry {
            name: String::from_utf8_lossy(name).into_owned(),
            metadata: metadata(rest),
        });
        bytes = &rest[STAT..];
    }
    entries
}

impl FileSystemExt for HostFiles {}

#[async_trait]
impl FileSystem for HostFiles {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        Ok(host::taken(call!(read_file, path)?))
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        call!(write_file, path, content.as_ptr(), content.len())?;
        Ok(())
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        call!(append_file, path, content.as_ptr(), content.len())?;
        Ok(())
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        call!(mkdir, path, u32::from(recursive))?;
        Ok(())
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        call!(remove, path, u32::from(recursive))?;
        Ok(())
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Ok(status(path)?)
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        Ok(entries(&host::taken(call!(read_dir, path)?)))
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(status(path).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let to = text(to);
        call!(rename, from, to.as_ptr(), to.len())?;
        Ok(())
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let to = text(to);
        call!(copy, from, to.as_ptr(), to.len())?;
        Ok(())
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        let link = text(link);
        call!(symlink, target, link.as_ptr(), link.len())?;
        Ok(())
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        let target = host::taken(call!(read_link, path)?);
        Ok(PathBuf::from(String::from_utf8_lossy(&target).into_owned()))
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        call!(chmod, path, mode)?;
        Ok(())
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        call!(set_modified_time, path, since.as_secs_f64() * 1e6)?;
        Ok(())
    }
}
