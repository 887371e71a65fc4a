//! Inode numbers that identify files within a session and reveal nothing about the host.

use std::hash::{BuildHasher, RandomState};

/// JavaScript's numbers are floats, which represent integers exactly up to this many bits.
const BITS: u32 = 53;

/// Makes inode numbers with a hash whose key is new for every session.
#[derive(Debug, Default)]
pub(crate) struct Inodes(RandomState);

impl Inodes {
    /// Returns the number of a host file.
    pub(crate) fn of_host(&self, device: u64, inode: u64) -> u64 {
        self.hash((0, device, inode, ""))
    }

    /// Returns the number of a path in a mount without inode numbers.
    pub(crate) fn of_path(&self, mount: u64, path: &str) -> u64 {
        self.hash((1, mount, 0, path))
    }

    /// Returns the number of the `count`th file created in a mount's overlay.
    pub(crate) fn of_count(&self, mount: u64, count: u64) -> u64 {
        self.hash((2, mount, count, ""))
    }

    fn hash(&self, key: (u8, u64, u64, &str)) -> u64 {
        self.0.hash_one(key) >> (u64::BITS - BITS)
    }
}
