//! A download in progress: `NAME.part` beside the target, which a later run can continue.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::place;
use crate::{Digest, Error, LockedFile};

/// The bytes of one file received so far, on disk, and the digest of exactly these.
pub(super) struct Part<'a> {
    file: &'a LockedFile,
    path: PathBuf,
    target: File,
    hasher: Sha256,
    length: u64,
}

impl<'a> Part<'a> {
    /// Opens what an earlier run left of `file` in `dir`, or begins with nothing.
    pub(super) fn open(dir: &Path, file: &'a LockedFile) -> Result<Self, Error> {
        let path = dir.join(format!("{}.part", file.name()));
        let failed = |cause| Error::write(&path, cause);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let target = options.open(&path).map_err(failed)?;
        let length = target.metadata().map_err(failed)?.len();
        let mut part = Self { file, path, target, hasher: Sha256::new(), length };
        if length >= file.size() {
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

    /// How many bytes are there.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// How many bytes are still to come.
    pub(super) fn missing(&self) -> u64 {
        self.file.size() - self.length
    }

    /// Forgets every byte.
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

    /// Adds bytes, at most [`missing`](Self::missing) of them.
    ///
    /// A disk that takes no more gets the space back: on an error the file is gone.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Err(cause) = self.target.write_all(bytes) {
            self.discard();
            return Err(Error::write(&self.path, cause));
        }
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The digest of the bytes so far.
    pub(super) fn digest(&self) -> Digest {
        Digest::finish(self.hasher.clone())
    }

    /// Gives the complete file its name in `dir`.
    pub(super) fn persist(self, dir: &Path) -> Result<(), Error> {
        place::persist(&self.target, &self.path, &dir.join(self.file.name()))
            .inspect_err(|_| self.discard())
    }

    /// Removes the file.
    pub(super) fn discard(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
