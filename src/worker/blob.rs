//! Bytes that several processes share and none can change: sealed files in memory. The one file of
//! [`worker`](super) with unsafe code, to map them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use memmap2::Mmap;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// A sealed file in memory.
#[derive(Debug)]
pub(crate) struct Blob(OwnedFd);

impl Blob {
    /// Copies `bytes` into a new one.
    pub(crate) fn new(name: &str, bytes: &[u8]) -> io::Result<Self> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(file);
        file.write_all(bytes)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(Self(file.into()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Maps what another process has sealed.
pub(super) fn map(file: &OwnedFd) -> io::Result<Bytes> {
    let seals = fcntl_get_seals(file)?;
    if !seals.contains(SEALS) {
        return Err(io::Error::other(format!("its seals are {seals:?}, {SEALS:?} are needed")));
    }
    // SAFETY: the file is sealed against writing, growing and shrinking, as was just checked, and seals
    // are never taken off: nobody can change what is mapped, or make it shorter than the mapping.
    #[expect(unsafe_code, reason = "mapping a file is")]
    let mapping = unsafe { Mmap::map(file) }?;
    Ok(Bytes::from_owner(mapping))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_mapped_as_it_was_made_and_cannot_be_changed() {
        let blob = Blob::new("test", b"as it was").unwrap();
        let file = blob.fd().try_clone_to_owned().unwrap();
        assert_eq!(map(&file).unwrap(), b"as it was"[..]);
        let mut file = File::from(file);
        assert!(file.write_all(b"changed").is_err());
        assert!(file.set_len(1).is_err());
        assert!(file.set_len(100).is_err());
    }

    #[test]
    fn a_file_that_is_not_sealed_is_not_mapped() {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        let error = map(&file).unwrap_err();
        assert!(error.to_string().contains("are needed"), "{error}");
    }
}
