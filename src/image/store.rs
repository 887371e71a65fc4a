//! Stores images, and removes those that nobody needs any more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::checked::{image_of, record_of};
use super::location::{ImageLocation, PRELOADED, base_of};

/// The maximum size of the images with packages in a directory together, in bytes.
pub(crate) const PRELOADED_BYTES: u64 = 2 << 30;

/// How many other builds keep their images in a directory.
const OTHER_BUILDS: usize = 2;

/// How often the use of an image is noted. Noting it changes the file, which is then verified anew.
const NOTED: Duration = Duration::from_hours(1);

/// The extension of a file that says which packages an image has, for `isolet cache list`.
const PURPOSE: &str = "for";

/// The extension of a file that says why an image cannot be made.
const REFUSED: &str = "refused";

impl ImageLocation {
    /// Stores the image atomically, and removes images that are no longer of use.
    pub(crate) fn store(&self, file: &[u8]) -> io::Result<()> {
        static STORED: AtomicU64 = AtomicU64::new(0);
        #[cfg(unix)]
        super::location::check_directory(&self.dir)?;
        let temporary = self.temporary(STORED.fetch_add(1, Ordering::Relaxed));
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
        self.note_purpose();
        if self.path_is_preloaded() { self.remove_oldest() } else { self.remove_outdated() }
    }

    /// Makes the directory, which only this user may write to.
    pub(super) fn make_directory(&self) {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // What is not there fails when the image is stored; the image then serves this process.
        let _ = builder.recursive(true).create(&self.dir);
    }

    /// Removes images of other builds, except the newest. Several may be in use by turns, and have
    /// the same version number.
    fn remove_outdated(&self) -> io::Result<()> {
        let mut others = BTreeMap::<String, (SystemTime, Vec<PathBuf>)>::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let name = image_of(&name).unwrap_or(&name);
            let Some(base) = base_of(name).filter(|_| !self.is_current(name)) else { continue };
            let written = entry.metadata().and_then(|found| found.modified());
            let (newest, paths) =
                others.entry(base.to_owned()).or_insert((SystemTime::UNIX_EPOCH, Vec::new()));
            *newest = written.map_or(*newest, |written| written.max(*newest));
            paths.push(entry.path());
        }
        let mut others: Vec<_> = others.into_values().collect();
        others.sort_by_key(|(newest, _)| Reverse(*newest));
        for path in others.into_iter().skip(OTHER_BUILDS).flat_map(|(_, paths)| paths) {
            // Another process may have removed it first; this also applies below.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    fn is_current(&self, name: &str) -> bool {
        self.current.iter().any(|current| name.starts_with(current))
    }

    /// Removes the images that were not used for the longest time, until the others are within the
    /// limit.
    fn remove_oldest(&self) -> io::Result<()> {
        let mut images = Vec::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let is_other = entry.path() != self.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if let Ok(metadata) = entry.metadata()
                && name.starts_with(PRELOADED)
                && !name.ends_with(&format!(".{PURPOSE}"))
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
                let _ = fs::remove_file(path.with_extension(PURPOSE));
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

    /// Notes which packages the image is for.
    fn note_purpose(&self) {
        if self.path_is_preloaded() {
            // Without it, the image is listed without them.
            let _ = fs::write(self.path().with_extension(PURPOSE), &self.purpose);
        }
    }

    /// Returns why an image with packages could not be made, if it was tried.
    pub(crate) fn refusal(&self) -> Option<String> {
        fs::read_to_string(self.path().with_extension(REFUSED)).ok()
    }

    /// Remembers why an image with packages cannot be made, so that it is not tried again.
    pub(crate) fn refuse(&self, reason: &str) {
        self.note_purpose();
        // Otherwise it is tried again.
        let _ = fs::write(self.path().with_extension(REFUSED), reason);
    }
}

#[cfg(test)]
mod tests {
    use isolet_pyodide_assets::{Digest, lock};

    use super::*;
    use crate::image::Importer;
    use crate::packages::Preload;

    #[test]
    fn builds_that_take_turns_keep_their_images_and_older_ones_lose_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let (home, preload) = (dir.path(), Preload::default());
        let location = ImageLocation::new(home, home, lock().unwrap(), &preload, Importer::Owner);
        let other = |number: u8| {
            let digest = Digest::of(&[number]).to_string();
            home.join(format!("image-{}.bin", &digest[..16]))
        };
        for number in 0..4 {
            fs::write(other(number), "image").unwrap();
            fs::write(record_of(&other(number)).unwrap(), "record").unwrap();
            for path in [other(number), record_of(&other(number)).unwrap()] {
                let file = File::options().write(true).open(path).unwrap();
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number.into());
                file.set_modified(time).unwrap();
            }
        }
        location.store(b"new").unwrap();
        let kept: Vec<bool> = (0..4).map(|number| other(number).exists()).collect();
        assert_eq!(kept, [false, false, true, true]);
        assert!(!record_of(&other(0)).unwrap().exists() && record_of(&other(3)).unwrap().exists());
        assert!(location.path().exists());
    }
}
