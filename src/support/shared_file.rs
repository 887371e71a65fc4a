//! Immutable bytes that several processes share: a sealed file in memory, or a file on disk that is
//! only ever replaced as a whole. Unsafe, to map them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use memmap2::Mmap;
use rustix::fs::{
    MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fcntl_getfl, memfd_create,
};

const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// A file to be mapped.
#[derive(Debug)]
pub(crate) struct SharedFile(OwnedFd);

impl SharedFile {
    /// Copies `bytes` into a new sealed file in memory.
    pub(crate) fn new(name: &str, bytes: &[u8]) -> io::Result<Self> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(file);
        file.write_all(bytes)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(Self(file.into()))
    }

    /// Wraps a file on disk that was opened for reading. Its owner replaces it as a whole and never
    /// writes to it.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Self::received(file.try_clone()?.into())
    }

    /// Checks and wraps a file that another process has created or opened.
    pub(crate) fn received(file: OwnedFd) -> io::Result<Self> {
        match fcntl_get_seals(&file) {
            Ok(seals) if !seals.contains(SEALS) => {
                let message = format!("its seals are {seals:?}, {SEALS:?} are needed");
                Err(io::Error::other(message))
            }
            // A file on disk, which has no seals.
            Err(_) if fcntl_getfl(&file)?.intersects(OFlags::WRONLY | OFlags::RDWR) => {
                Err(io::Error::other("it is open for writing"))
            }
            _ => Ok(Self(file)),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Maps the file and returns its bytes.
    pub(crate) fn map(&self) -> io::Result<Bytes> {
        // SAFETY: a file in memory is sealed against writing, growing and shrinking, which `new`
        // and `received` ensure, and seals cannot be removed. A file on disk is an image that
        // `isolate::image::store::open_own` has opened: nobody except the user and root may write
        // to it. The only writer, `Place::store` there, renames a new file over it, which leaves
        // the mapped one unchanged.
        #[expect(unsafe_code, reason = "mapping a file is")]
        let mapping = unsafe { Mmap::map(&self.0) }?;
        Ok(Bytes::from_owner(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_file_is_mapped_as_it_was_made_and_cannot_be_changed() {
        let shared = SharedFile::new("test", b"as it was").unwrap();
        assert_eq!(shared.map().unwrap(), b"as it was"[..]);
        let mut file = File::from(shared.fd().try_clone_to_owned().unwrap());
        assert!(file.write_all(b"changed").is_err());
        assert!(file.set_len(1).is_err());
        assert!(file.set_len(100).is_err());
    }

    #[test]
    fn a_file_on_disk_is_taken_if_it_was_opened_to_be_read() {
        let path = std::env::temp_dir().join(format!("isolet-shared-file-{}", std::process::id()));
        let written = File::create(&path).unwrap();
        (&written).write_all(b"on disk").unwrap();
        assert!(SharedFile::of_file(&written).is_err());
        let shared = SharedFile::of_file(&File::open(&path).unwrap()).unwrap();
        assert_eq!(shared.map().unwrap(), b"on disk"[..]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_not_sealed_is_not_taken() {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        let error = SharedFile::received(file).unwrap_err();
        assert!(error.to_string().contains("are needed"), "{error}");
    }
}
