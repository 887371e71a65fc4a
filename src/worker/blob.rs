//! Bytes that several processes share and none can change: sealed files in memory. The one file of
//! [`worker`](super) with unsafe code, to map them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

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
        Self::make(name, |file| file.write_all(bytes))
    }

    /// Makes one of `length` bytes that are zero but for these pieces, each at its place.
    pub(crate) fn sparse<'a>(
        name: &str,
        length: usize,
        pieces: impl IntoIterator<Item = (usize, &'a [u8])>,
    ) -> io::Result<Self> {
        Self::make(name, |file| {
            file.set_len(length as u64)?;
            pieces.into_iter().try_for_each(|(at, piece)| file.write_all_at(piece, at as u64))
        })
    }

    fn make(name: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Self> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(file);
        write(&mut file)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(Self(file.into()))
    }

    /// What another process has made.
    pub(super) fn received(file: OwnedFd) -> io::Result<Self> {
        let seals = fcntl_get_seals(&file)?;
        if !seals.contains(SEALS) {
            let message = format!("its seals are {seals:?}, {SEALS:?} are needed");
            return Err(io::Error::other(message));
        }
        Ok(Self(file))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Its bytes.
    pub(crate) fn map(&self) -> io::Result<Bytes> {
        // SAFETY: the file is sealed against writing, growing and shrinking, as both functions that make
        // a `Blob` see to, and seals are never taken off: nobody can change what is mapped, or make it
        // shorter than the mapping.
        #[expect(unsafe_code, reason = "mapping a file is")]
        let mapping = unsafe { Mmap::map(&self.0) }?;
        Ok(Bytes::from_owner(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_mapped_as_it_was_made_and_cannot_be_changed() {
        let blob = Blob::new("test", b"as it was").unwrap();
        assert_eq!(blob.map().unwrap(), b"as it was"[..]);
        let mut file = File::from(blob.fd().try_clone_to_owned().unwrap());
        assert!(file.write_all(b"changed").is_err());
        assert!(file.set_len(1).is_err());
        assert!(file.set_len(100).is_err());
    }

    #[test]
    fn a_sparse_blob_is_zero_where_nothing_was_written() {
        let blob = Blob::sparse("test", 8, [(1, &b"ab"[..]), (6, b"c")]).unwrap();
        assert_eq!(blob.map().unwrap(), b"\0ab\0\0\0c\0"[..]);
    }

    #[test]
    fn a_file_that_is_not_sealed_is_not_taken() {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        let error = Blob::received(file).unwrap_err();
        assert!(error.to_string().contains("are needed"), "{error}");
    }
}
