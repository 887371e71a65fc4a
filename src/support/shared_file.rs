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
use rustix::io::Errno;

const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// A file to be mapped.
#[derive(Debug)]
pub(crate) struct SharedFile(OwnedFd);

impl SharedFile {
    /// Copies `bytes` into a new sealed file in memory.
    pub(crate) fn new(name: &str, bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memory_file(name)?);
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
        // Only files of tmpfs and hugetlbfs have seals. A file in memory that nobody has sealed is
        // not told by its seals from one in a directory: both may have only the one against seals.
        let seals = fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        let is_sealed = seals.contains(SEALS);
        if !is_sealed && fcntl_getfl(&file)?.intersects(OFlags::WRONLY | OFlags::RDWR) {
            let message = format!(
                "it is open for writing, and its seals are {seals:?}, {SEALS:?} are needed"
            );
            return Err(io::Error::other(message));
        }
        Ok(Self(file))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Maps the file and returns its bytes.
    pub(crate) fn map(&self) -> io::Result<Bytes> {
        // SAFETY: a file in memory is sealed against writing, growing and shrinking, which `new`
        // and `received` ensure, and seals cannot be removed. A file on disk is an image that
        // `image::location::open_own` has opened: nobody except the user and root may write to it.
        // The only writer, `ImageLocation::store`, renames a new file over it, which leaves the
        // mapped one unchanged.
        #[expect(unsafe_code, reason = "mapping a file is")]
        let mapping = unsafe { Mmap::map(&self.0) }?;
        Ok(Bytes::from_owner(mapping))
    }
}

/// Makes an empty file in memory, which can be sealed. An error names the call, which a container
/// may deny.
pub(super) fn memory_file(name: &str) -> io::Result<OwnedFd> {
    memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(|errno| said_of("memfd_create, which makes files in memory", errno))
}

/// Puts before an error what has failed, unless the error says which limit is reached.
pub(super) fn said_of(what: &str, errno: Errno) -> io::Error {
    let error = io::Error::from(errno);
    if [Errno::MFILE, Errno::NFILE].contains(&errno) {
        return error;
    }
    io::Error::new(error.kind(), format!("{what}: {error}"))
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
    fn a_file_of_any_file_system_is_taken_if_it_was_opened_to_be_read() {
        // Mostly a disk, and tmpfs, whose files have seals.
        for dir in [std::env::temp_dir(), "/dev/shm".into()] {
            let Ok(dir) = tempfile::tempdir_in(dir) else { continue };
            let path = dir.path().join("file");
            let written = File::create(&path).unwrap();
            (&written).write_all(b"in a directory").unwrap();
            assert!(SharedFile::of_file(&written).is_err());
            let opened = File::open(&path).unwrap();
            let shared = SharedFile::of_file(&opened).unwrap();
            assert_eq!(shared.map().unwrap(), b"in a directory"[..]);
            // As when another process replaces it at this moment.
            std::fs::remove_file(&path).unwrap();
            assert_eq!(SharedFile::of_file(&opened).unwrap().map().unwrap(), shared.map().unwrap());
        }
    }

    #[test]
    fn a_file_that_is_not_sealed_is_not_taken() {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        let error = SharedFile::received(file).unwrap_err();
        assert!(error.to_string().contains("are needed"), "{error}");
    }
}
