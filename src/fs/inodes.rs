//! Inode numbers that say which files are the same, and nothing about the host.

use std::hash::{BuildHasher, RandomState};

/// JavaScript has numbers as floats, which are exact up to here.
const BITS: u32 = 53;

/// Makes inode numbers by a hash that is keyed anew in every session.
#[derive(Debug, Default)]
pub(crate) struct Inodes(RandomState);

impl Inodes {
    /// The number of a file of the host.
    pub(crate) fn of_host(&self, device: u64, inode: u64) -> u64 {
        self.hash((0, device, inode, ""))
    }

    /// The number of what is at a path of a mount that has no numbers of its own.
    pub(crate) fn of_path(&self, mount: u64, path: &str) -> u64 {
        self.hash((1, mount, 0, path))
    }

    /// The number of the `count`th thing that was made in a mount's overlay.
    pub(crate) fn of_count(&self, mount: u64, count: u64) -> u64 {
        self.hash((2, mount, count, ""))
    }

    fn hash(&self, key: (u8, u64, u64, &str)) -> u64 {
        self.0.hash_one(key) >> (u64::BITS - BITS)
    }
}
