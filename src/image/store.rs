//! Stores images, and removes those that nobody needs any more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::place::{PREFIX, PRELOADED, Place};

/// The file that a process locks while it makes an image.
const TURN: &str = ".image.lock";

/// The number of images with packages that are kept in a directory.
const MOST_PRELOADED: usize = 8;

impl Place {
    /// Waits until no other process makes an image in this directory. Others then wait until the
    /// file is dropped or the process ends. Returns `None` if files cannot be locked: several
    /// processes may then make the same image, and the last one is kept.
    pub(crate) fn turn(&self) -> Option<File> {
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
        self.remove_others()
    }

    fn remove_others(&self) -> io::Result<()> {
        let mut preloaded = Vec::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_image = [PREFIX, PRELOADED].iter().any(|prefix| name.starts_with(prefix));
            if is_image && !self.current.iter().any(|current| name.starts_with(current)) {
                // Another process may have removed it first; this also applies below.
                let _ = fs::remove_file(entry.path());
            } else if name.starts_with(PRELOADED) && entry.path() != self.path() {
                let made = entry.metadata().and_then(|metadata| metadata.modified());
                preloaded.push((made.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
            }
        }
        preloaded.sort();
        let most = MOST_PRELOADED - usize::from(self.path_is_preloaded());
        for (_, path) in preloaded.iter().rev().skip(most) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}
