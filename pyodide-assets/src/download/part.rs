//! A download in progress: `NAME.part` in the target directory, which a later run can resume.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{Wanted, place};
use crate::{Digest, Error};

/// The received bytes of one file, on disk, and the digest of exactly these.
pub(super) struct Part<'a> {
    file: &'a Wanted,
    path: PathBuf,
    target: File,
    hasher: Sha256,
    length: u64,
}

impl<'a> Part<'a> {
    /// Opens the partial file that an earlier run left of `file` in `dir`, or starts an empty one.
    pub(super) fn open(dir: &Path, file: &'a Wanted) -> Result<Self, Error> {
        let path = dir.join(format!("{}.part", file.name));
        let failed = |cause| Error::write(&path, cause);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let target = options.open(&path).map_err(failed)?;
        let length = target.metadata().map_err(failed)?.len();
        let mut part = Self { file, path, target, hasher: Sha256::new(), length };
        if length >= file.size.max() {
            part.restart()?;
        }
        part.hash_existing()?;
        Ok(part)
    }

    fn hash_existing(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; 64 << 10];
        let mut left = self.length;
        while left > 0 {
            let want = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let count = self.target.read(&mut buffer[..want]);
            match count.map_err(|cause| Error::write(&self.path, cause))? {
                0 => return self.restart(),
                count => {
                    self.hasher.update(&buffer[..count]);
                    left -= count as u64;
                }
            }
        }
        Ok(())
    }

    /// Returns how many bytes were received.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Discards all bytes.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        if self.length > 0 {
            let emptied =
                self.target.set_len(0).and_then(|()| self.target.seek(SeekFrom::Start(0)));
            emptied.map_err(|cause| Error::write(&self.path, cause))?;
        }
        self.length = 0;
        self.hasher = Sha256::new();
        Ok(())
    }

    /// Appends bytes.
    ///
    /// On an error the file is removed, so that a full disk gets the space back.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Err(cause) = self.target.write_all(bytes) {
            self.discard();
            return Err(Error::write(&self.path, cause));
        }
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Returns the digest of the bytes so far.
    pub(super) fn digest(&self) -> Digest {
        Digest::finish(self.hasher.clone())
    }

    /// Renames the complete file to its name in `dir`.
    pub(super) fn persist(self, dir: &Path) -> Result<(), Error> {
        place::persist(&self.target, &self.path, &dir.join(&self.file.name))
            .inspect_err(|_| self.discard())
    }

    /// Removes the file.
    pub(super) fn discard(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Nothing was received of an empty file, so it need not be kept.
impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.length == 0 {
            self.discard();
        }
    }
}
