//! Words of memory that two processes read and write at the same time. Unsafe, to map them.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use super::shared_file::{memory_file, said_of};

/// The file never changes its size, so that no access to the mapping fails.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// A mapping that another process may share.
#[derive(Debug)]
pub(crate) struct SharedWords {
    mapping: MmapRaw,
    count: usize,
}

impl SharedWords {
    /// Makes a file in memory with this many words, all zero.
    pub(crate) fn file(name: &str, count: usize) -> io::Result<OwnedFd> {
        let file = memory_file(name)?;
        ftruncate(&file, bytes(count)? as u64)
            .map_err(|errno| said_of("a file in memory cannot grow", errno))?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(file)
    }

    /// Maps a file that [`file`](Self::file) has made with as many words, in any process.
    pub(crate) fn map(file: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let seals = fcntl_get_seals(file)?;
        if !seals.contains(SEALS) {
            let message = format!("its seals are {seals:?}, {SEALS:?} are needed");
            return Err(io::Error::other(message));
        }
        let (needed, found) = (bytes(count)?, fstat(file)?.st_size);
        if usize::try_from(found) != Ok(needed) {
            let message = format!("it has {found} bytes, {needed} are needed");
            return Err(io::Error::other(message));
        }
        let file = File::from(file.as_fd().try_clone_to_owned()?);
        let mapping = MmapOptions::new().len(needed).map_raw(&file)?;
        Ok(Self { mapping, count })
    }

    /// Maps another such file in the place of this one, and closes its descriptor. For a process
    /// that may make hardly any system call: what [`map`](Self::map) checks, it does not.
    pub(crate) fn replace(&mut self, file: RawFd) -> io::Result<()> {
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        #[expect(unsafe_code, reason = "mapping is")]
        // SAFETY: the new pages take the place of those of `self.mapping`, all of which it owns and
        // which nobody refers to, because `self` is borrowed mutably. They are accessed as atomics
        // only, as before. The descriptor belongs to nobody in this process: its parent has opened
        // it at this number, and nothing else uses the number.
        unsafe {
            let (at, length) = (self.mapping.as_mut_ptr().cast(), bytes(self.count)?);
            let file = OwnedFd::from_raw_fd(file);
            mmap(at, length, access, flags, &file, 0)?;
        }
        Ok(())
    }
}

fn bytes(count: usize) -> io::Result<usize> {
    count.checked_mul(size_of::<AtomicU64>()).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        #[expect(unsafe_code, reason = "the mapping is memory without a type")]
        // SAFETY: `map` has checked that the file has `count` words, and its seals keep it so; the
        // mapping lives as long as `self`, and begins at a page, which aligns it. Any bytes are
        // valid atomics. This process accesses them only as atomics, and nothing that another
        // process does to them is undefined for atomics.
        unsafe {
            std::slice::from_raw_parts(self.mapping.as_ptr().cast(), self.count)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_one_mapping_stores_the_other_loads() {
        let file = SharedWords::file("test", 1000).unwrap();
        let [one, other] = [(); 2].map(|()| SharedWords::map(file.as_fd(), 1000).unwrap());
        assert_eq!((one.len(), other[999].load(Ordering::SeqCst)), (1000, 0));
        one[999].store(42, Ordering::SeqCst);
        assert_eq!(other[999].load(Ordering::SeqCst), 42);
    }

    #[test]
    fn nobody_can_change_the_size() {
        let file = SharedWords::file("test", 1000).unwrap();
        for bytes in [0, 7999, 8001] {
            assert!(ftruncate(&file, bytes).is_err(), "{bytes}");
        }
        assert!(fcntl_add_seals(&file, SealFlags::WRITE).is_err());
    }

    #[test]
    fn a_file_of_another_size_or_without_seals_is_not_mapped() {
        let file = SharedWords::file("test", 1000).unwrap();
        let error = SharedWords::map(file.as_fd(), 1001).unwrap_err();
        assert_eq!(error.to_string(), "it has 8000 bytes, 8008 are needed");
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 8000).unwrap();
        let error = SharedWords::map(file.as_fd(), 1000).unwrap_err();
        assert!(error.to_string().contains("are needed"), "{error}");
    }
}
