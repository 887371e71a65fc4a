//! Stores images, and removes those that nobody needs any more.

use std::cmp::Reverse;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::checked::{image_of, record_of};
use super::place::{PREFIX, PRELOADED, Place};

/// The file that a process locks while it makes an image.
const TURN: &str = ".image.lock";

/// The maximum size of the images with packages in a directory together, in bytes.
pub(crate) const PRELOADED_BYTES: u64 = 2 << 30;

/// How often the use of an image is noted. Noting it changes the file, which is then verified anew.
const NOTED: Duration = Duration::from_hours(1);

/// The extension of a file that says why an image cannot be made.
const REFUSED: &str = "refused";

impl Place {
    /// Waits until no other process makes an image in this directory. Others then wait until the
    /// file is dropped or the process ends. Returns `None` if files cannot be locked: several
    /// processes may then make the same image, and the last one is kept.
    pub(crate) fn turn(&self) -> Option<File> {
        self.make_directory();
        let file = File::options().create(true).append(true).open(self.dir.join(TURN)).ok()?;
        file.lock().ok().map(|()| file)
    }

    /// Stores the image atomically, and removes images that are no longer of use.
    pub(crate) fn store(&self, file: &[u8]) -> io::Result<()> {
        static STORED: AtomicU64 = AtomicU64::new(0);
        let (process, nth) = (std::process::id(), STORED.fetch_add(1, Ordering::Relaxed));
        let temporary = self.dir.join(format!(".{PREFIX}{process}-{nth}.tmp"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
        let written = options
            .open(&temporary)
            .and_then(|mut target| target.write_all(file).and_then(|()| target.sync_all()))
            .and_then(|()| fs::rename(&temporary, self.path()));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
            return written;
        }
        if self.path_is_preloaded() { self.remove_oldest() } else { self.remove_outdated() }
    }

    /// Makes the directory, which only this user may write to.
    fn make_directory(&self) {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // What is not there fails when the image is stored; the image then serves this process.
        let _ = builder.recursive(true).create(&self.dir);
    }

    /// Removes images of other versions.
    fn remove_outdated(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let name = image_of(&name).unwrap_or(&name);
            let is_image = [PREFIX, PRELOADED].iter().any(|prefix| name.starts_with(prefix));
            if is_image && !self.current.iter().any(|current| name.starts_with(current)) {
                // Another process may have removed it first; this also applies below.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Removes the images that were not used for the longest time, until the others are within the
    /// limit.
    fn remove_oldest(&self) -> io::Result<()> {
        let mut images = Vec::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let is_other = entry.path() != self.path();
            if let Ok(metadata) = entry.metadata()
                && entry.file_name().to_string_lossy().starts_with(PRELOADED)
            {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                images.push((is_other, Reverse(used), entry.path(), metadata.len()));
            }
        }
        images.sort();
        let mut bytes = 0;
        for (is_other, _, path, length) in images {
            bytes += length;
            if is_other && bytes > PRELOADED_BYTES {
                let _ = fs::remove_file(&path);
                let _ = record_of(&path).map(fs::remove_file);
            }
        }
        Ok(())
    }

    /// Notes that the image is used, so that others are removed first.
    pub(super) fn note_use(&self, file: &File) {
        let noted = || file.metadata().and_then(|metadata| metadata.modified()).ok();
        // Without an age, the time is in the future.
        let is_old = || noted().is_none_or(|time| time.elapsed().is_ok_and(|age| age > NOTED));
        if self.path_is_preloaded() && is_old() {
            // It may be on a file system that is read-only.
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Returns why an image with packages could not be made, if it was tried.
    pub(crate) fn refusal(&self) -> Option<String> {
        fs::read_to_string(self.path().with_extension(REFUSED)).ok()
    }

    /// Remembers why an image with packages cannot be made, so that it is not tried again.
    pub(crate) fn refuse(&self, reason: &str) {
        // Otherwise it is tried again.
        let _ = fs::write(self.path().with_extension(REFUSED), reason);
    }
}
