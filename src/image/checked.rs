//! Remembers which image file has the right digest, so that a start need not read all of it.
//!
//! Beside an image is a record: which file it was, and when it was last changed. The kernel sets
//! that time at every write, and no program can set it back. A record counts only if it belongs to
//! the user or root, like the image, in a directory where nobody else can replace either. Those who
//! could forge a record could as well forge an image with its digest.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::location::open_own;

/// How long ago a file must have been changed. Some file systems note the time of a change in
/// seconds only, so that a second change within them would not be seen.
const SETTLED: Duration = Duration::from_secs(3);

/// The extension of a record.
const RECORD: &str = "checked";

/// A longer record is none.
const MOST_BYTES: u64 = 256;

/// The state of an image file, and the place of its record.
pub(super) struct Check {
    record: PathBuf,
    state: String,
    is_settled: bool,
}

impl Check {
    /// Notes the state of the file of an image. `None` if the system does not tell it.
    pub(super) fn of(path: &Path, file: &File) -> Option<Self> {
        let (state, changed) = state(file).ok()?;
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed).ok();
        let is_settled = age.is_some_and(|age| age > SETTLED);
        Some(Self { record: record_of(path)?, state, is_settled })
    }

    /// Returns `true` if the file had the right digest when it was last read, and has not been
    /// changed since.
    pub(super) fn was_right(&self) -> bool {
        let read = || -> io::Result<String> {
            let mut text = String::new();
            open_own(&self.record)?.take(MOST_BYTES).read_to_string(&mut text)?;
            Ok(text)
        };
        read().is_ok_and(|text| text == self.state)
    }

    /// Remembers that the file in this state has the right digest.
    pub(super) fn remember(&self) {
        if self.is_settled {
            // Otherwise the next start reads the image again.
            let _ = self.write();
        }
    }

    fn write(&self) -> io::Result<()> {
        // Another process may write the same at the same time. A part of a record is none.
        let _ = fs::remove_file(&self.record);
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
        options.open(&self.record)?.write_all(self.state.as_bytes())
    }
}

/// Returns the place of the record of an image.
pub(super) fn record_of(image: &Path) -> Option<PathBuf> {
    let name = image.file_name()?.to_string_lossy().into_owned();
    Some(image.with_file_name(format!(".{name}.{RECORD}")))
}

/// Returns the name of the image that a file is the record of, if it is one.
pub(super) fn image_of(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(RECORD)?.strip_suffix('.')
}

/// Returns a text that changes whenever the file does, and when it was last changed.
#[cfg(unix)]
fn state(file: &File) -> io::Result<(String, Duration)> {
    use std::os::unix::fs::MetadataExt;

    let found = file.metadata()?;
    let text = format!(
        "device {} inode {} size {} modified {}.{:09} changed {}.{:09}\n",
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    );
    let seconds = u64::try_from(found.ctime()).map_err(io::Error::other)?;
    let nanoseconds = u32::try_from(found.ctime_nsec()).map_err(io::Error::other)?;
    Ok((text, Duration::new(seconds, nanoseconds)))
}

#[cfg(not(unix))]
fn state(_file: &File) -> io::Result<(String, Duration)> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    /// A settled file, with a record if `is_remembered`.
    fn check(path: &Path) -> Check {
        let check = Check::of(path, &File::open(path).unwrap()).unwrap();
        Check { is_settled: true, ..check }
    }

    fn image(dir: &Path) -> PathBuf {
        let path = dir.join("image-x.bin");
        fs::write(&path, "first").unwrap();
        path
    }

    #[test]
    fn a_file_that_was_read_is_known_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = image(dir.path());
        assert!(!check(&path).was_right());
        check(&path).remember();
        assert!(check(&path).was_right());
        let before = fs::metadata(&path).unwrap();
        fs::write(&path, "other").unwrap();
        // The time of the last write can be set back, that of the last change cannot.
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(before.modified().unwrap())
            .unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.ino(), after.size()), (before.ino(), before.size()));
        assert_eq!(after.modified().unwrap(), before.modified().unwrap());
        assert!(!check(&path).was_right());
        check(&path).remember();
        assert!(check(&path).was_right());
        fs::rename(&path, dir.path().join("aside")).unwrap();
        image(dir.path());
        assert!(!check(&path).was_right());
    }

    #[test]
    fn a_file_that_was_just_changed_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let path = image(dir.path());
        let file = File::open(&path).unwrap();
        Check::of(&path, &file).unwrap().remember();
        assert!(!Check::of(&path, &file).unwrap().was_right());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_record_that_others_may_have_written_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = image(dir.path());
        check(&path).remember();
        let record = record_of(&path).unwrap();
        for (mode, counts) in [(0o646, false), (0o664, false), (0o644, true)] {
            fs::set_permissions(&record, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&path).was_right(), counts, "{mode:o}");
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&record, Some(12_345), None).unwrap();
            assert!(!check(&path).was_right());
        }
    }

    #[test]
    fn a_record_of_something_else_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = image(dir.path());
        check(&path).remember();
        let record = record_of(&path).unwrap();
        let right = fs::read_to_string(&record).unwrap();
        for wrong in ["", &right[1..], &format!("{right} "), &right.replace("size 5", "size 6")] {
            fs::write(&record, wrong).unwrap();
            assert!(!check(&path).was_right(), "{wrong:?}");
        }
        fs::remove_file(&record).unwrap();
        std::os::unix::fs::symlink(dir.path(), &record).unwrap();
        assert!(!check(&path).was_right());
    }
}
