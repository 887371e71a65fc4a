//! The lock of the process that makes an image.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::location::{ImageLocation, PREFIX};
use crate::data::error::Error;
use crate::support::patience::Patience;

/// The file that a process locks while it makes an image. It has the number of the process.
const TURN: &str = ".image.lock";

/// The extension of the file that it locks for an image with packages: who makes one with others
/// does not wait for them.
const OWN_TURN: &str = "lock";

/// How often it is tried to lock the file.
const TICK: Duration = Duration::from_millis(20);

/// How long to wait before a word is said.
const SILENCE: Duration = Duration::from_secs(10);

/// How long to wait for another process that makes an image, and one with packages: longer than
/// either takes on a busy machine. It may be stopped.
const PATIENCE: Duration = Duration::from_mins(2);
const PATIENCE_WITH_PACKAGES: Duration = Duration::from_mins(12);

/// How old a file must be that a process writes which is alive, to be taken for a killed one's
/// whose number another process has got.
const LONG: Duration = Duration::from_mins(10);

/// The extension of a file that becomes an image.
const TEMPORARY: &str = ".tmp";

/// Exclusive permission to make an image, among processes.
pub(crate) struct BuildLock {
    file: File,
    /// The file, if it is that of one image.
    own: Option<PathBuf>,
}

impl Drop for BuildLock {
    fn drop(&mut self) {
        // Nobody holds it any more.
        let _ = self.file.set_len(0);
        // Who has waited for it finds the image, or makes it at the same time as others.
        let _ = self.own.take().map(fs::remove_file);
    }
}

impl ImageLocation {
    /// Waits until nobody else makes this image, or one without packages in its directory. Others
    /// then wait until the lock is dropped or the process ends. `tell` gets a sentence if that
    /// takes long.
    ///
    /// Returns `None` if files cannot be locked, or another process does not come to an end:
    /// several processes may then make the same image, and the last one is kept.
    ///
    /// # Errors
    ///
    /// Fails if the patience with packages is over.
    pub(crate) fn acquire_build_lock(
        &self,
        tell: &dyn Fn(&str),
        packages: &Patience,
    ) -> Result<Option<BuildLock>, Error> {
        let lock = self.acquire_within(tell, packages);
        if lock.is_none() && self.path_is_preloaded() && packages.is_over() {
            return Err(packages.error());
        }
        Ok(lock)
    }

    /// Returns `true` if it makes sense to begin to make this image, which has packages: its
    /// directory can be written, no other process makes it, and it was not found to be impossible.
    pub(crate) fn can_be_made(&self) -> bool {
        self.make_directory();
        #[cfg(unix)]
        if super::location::check_directory(&self.dir).is_err() {
            return false;
        }
        let path = self.path().with_extension(OWN_TURN);
        let mut options = File::options();
        let file = options.create(true).truncate(false).read(true).write(true).open(path);
        file.is_ok_and(|file| file.try_lock().is_ok()) && self.refusal().is_none()
    }

    fn acquire_within(&self, tell: &dyn Fn(&str), packages: &Patience) -> Option<BuildLock> {
        self.make_directory();
        let own = self.path_is_preloaded().then(|| self.path().with_extension(OWN_TURN));
        let path = own.clone().unwrap_or_else(|| self.dir.join(TURN));
        let mut options = File::options();
        let file = options.create(true).truncate(false).read(true).write(true).open(&path).ok()?;
        let patience = if self.path_is_preloaded() { PATIENCE_WITH_PACKAGES } else { PATIENCE };
        let is_over = || own.is_some() && packages.is_over();
        if !wait(&file, &path, (SILENCE, patience), &is_over, tell) {
            return None;
        }
        // Whoever waits can say for whom. Without it, only which file it waits for.
        let _ = note(&file);
        self.remove_left_over();
        Some(BuildLock { file, own })
    }

    /// Returns the name of a file that becomes an image, which this process writes.
    pub(super) fn temporary(&self, nth: u64) -> PathBuf {
        self.dir.join(format!(".{PREFIX}{}-{nth}{TEMPORARY}", std::process::id()))
    }

    /// Removes what processes that were killed have left. Whoever else writes such a file has not
    /// got its turn, and is alive.
    fn remove_left_over(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(process) = writer(&name.to_string_lossy()) else { continue };
            let age = || {
                let written = entry.metadata().and_then(|found| found.modified()).ok()?;
                SystemTime::now().duration_since(written).ok()
            };
            let is_alive = process == std::process::id()
                || Path::new("/proc").join(process.to_string()).exists();
            if !is_alive || age().is_some_and(|age| age > LONG) {
                // Another process may have removed it first.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Returns the number of the process that writes a file, if that is to become an image.
fn writer(name: &str) -> Option<u32> {
    let rest = name.strip_prefix('.')?.strip_prefix(PREFIX)?.strip_suffix(TEMPORARY)?;
    rest.split_once('-')?.0.parse().ok()
}

/// Waits for the lock. Returns `false` if there is none, or not in time.
fn wait(
    file: &File,
    path: &Path,
    (silence, patience): (Duration, Duration),
    is_over: &dyn Fn() -> bool,
    tell: &dyn Fn(&str),
) -> bool {
    let start = Instant::now();
    let mut is_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::Error(_)) => return false,
            Err(TryLockError::WouldBlock) if is_over() => return false,
            Err(TryLockError::WouldBlock) => {}
        }
        let waited = start.elapsed();
        if waited > patience {
            let seconds = waited.as_secs();
            tell(&format!(
                "{} has held `{}` for {seconds} s; the memory image is made without waiting longer",
                holder(file),
                path.display()
            ));
            return false;
        }
        if waited > silence && !is_told {
            is_told = true;
            tell(&format!(
                "waiting for {}, which holds `{}` to make the memory image; if it is stopped \
                 (SIGSTOP, a paused container), continue it or end it",
                holder(file),
                path.display()
            ));
        }
        thread::sleep(TICK);
    }
}

/// Writes the number of this process into the file.
fn note(mut file: &File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(std::process::id().to_string().as_bytes())
}

/// Names the process that has written its number into the file.
fn holder(mut file: &File) -> String {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(20).read_to_string(&mut text));
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(process)) => format!("process {process}"),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn who_holds_the_lock_is_named_and_not_waited_for_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TURN);
        let open = || {
            let mut options = File::options();
            options.create(true).truncate(false).read(true).write(true).open(&path).unwrap()
        };
        let (ours, theirs) = (open(), open());
        let told = RefCell::new(Vec::new());
        let tell = |text: &str| told.borrow_mut().push(text.to_owned());
        let waits = (Duration::ZERO, Duration::from_millis(100));
        assert!(wait(&theirs, &path, waits, &|| false, &tell));
        note(&theirs).unwrap();
        assert!(!wait(&ours, &path, waits, &|| false, &tell));
        let (process, shown) = (std::process::id(), path.display());
        let told = told.into_inner();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with(&format!("waiting for process {process}, which holds `{shown}`"))
        );
        assert!(told[1].starts_with(&format!("process {process} has held `{shown}` for 0 s")));
        let long = (Duration::MAX, Duration::MAX);
        assert!(!wait(&ours, &path, long, &|| true, &|text| panic!("{text}")));
        drop(theirs);
        assert!(wait(&ours, &path, waits, &|| false, &|text| panic!("{text}")));
    }

    #[test]
    fn what_writes_a_temporary_image_is_known_by_its_name() {
        assert_eq!(writer(".image-12-3.tmp"), Some(12));
        for other in ["image-12-3.tmp", ".image-12-3", ".image-x-3.tmp", ".image.lock", ".tmp"] {
            assert_eq!(writer(other), None, "{other}");
        }
    }
}
