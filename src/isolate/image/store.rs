//! The storage of images: their directories and names, and the removal of old ones.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use isolet_pyodide_assets::{Digest, Lock};

use super::file::push_number;
use crate::data::version::v8_version;
use crate::isolate::extension::glue_sources;
use crate::isolate::platform::FLAGS;
use crate::isolate::stdlib;
use crate::packages::Preload;

const PREFIX: &str = "image-";
/// The prefix of images with packages. It is followed by the name of the image without packages,
/// and by the packages' own key.
const PRELOADED: &str = "preloaded-";

/// The file that a process locks while it makes an image.
const TURN: &str = ".image.lock";

/// The number of images with packages that are kept in a directory.
const MOST_PRELOADED: usize = 8;

/// The place of an image, whether it exists or not.
pub(crate) struct Place {
    dir: PathBuf,
    path: PathBuf,
    key: Digest,
    /// The prefixes of the names of images that are made from the same inputs.
    current: [String; 2],
}

impl Place {
    /// Returns the place in `dir` of the image of these assets with these packages.
    pub(crate) fn new(dir: &Path, lock: &Lock, preload: &Preload) -> Self {
        let base = key(lock);
        let short = |digest: Digest| digest.to_string()[..16].to_owned();
        let (plain, preloaded) =
            (format!("{PREFIX}{}", short(base)), format!("{PRELOADED}{}", short(base)));
        let (name, key) = if preload.is_empty() {
            (format!("{plain}.bin"), base)
        } else {
            let key = Digest::of(format!("{base} {}", preload.key()).as_bytes());
            (format!("{preloaded}-{}.bin", short(key)), key)
        };
        Self { dir: dir.to_owned(), path: dir.join(name), key, current: [plain, preloaded] }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a digest of everything that the image depends on.
    pub(super) fn key(&self) -> Digest {
        self.key
    }

    /// Waits until no other process makes an image in this directory. Others then wait until the
    /// file is dropped or the process ends. Returns `None` if files cannot be locked: several
    /// processes may then make the same image, and the last one is kept.
    pub(crate) fn turn(&self) -> Option<File> {
        let file = File::options().create(true).append(true).open(self.dir.join(TURN)).ok()?;
        file.lock().ok().map(|()| file)
    }

    /// Stores the image atomically, and removes images that are no longer of use.
    pub(super) fn store(&self, file: &[u8]) -> io::Result<()> {
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
            .and_then(|()| fs::rename(&temporary, &self.path));
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
            } else if name.starts_with(PRELOADED) && entry.path() != self.path {
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

    /// Returns what to do about an image that cannot be used.
    pub(super) fn remedy(&self) -> &'static str {
        if self.path_is_preloaded() {
            "once it is removed it is made anew"
        } else {
            "`isolet assets prepare` makes it anew"
        }
    }

    fn path_is_preloaded(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PRELOADED))
    }
}

/// Returns a digest of everything that an image depends on.
fn key(lock: &Lock) -> Digest {
    let mut inputs = Vec::new();
    inputs.extend_from_slice(lock.digest().as_bytes());
    let versions = [env!("CARGO_PKG_VERSION"), v8_version(), FLAGS].map(Cow::Borrowed);
    for part in
        versions.into_iter().chain(stdlib::versions().map(Cow::Borrowed)).chain(glue_sources())
    {
        push_number(&mut inputs, part.len());
        inputs.extend_from_slice(part.as_bytes());
    }
    Digest::of(&inputs)
}

/// Opens a file that nobody else may have written, or may write or replace, because it contains
/// machine code.
pub(super) fn open_own(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    #[cfg(unix)]
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        check_directory(&fs::metadata(dir)?).map_err(|reason| {
            io::Error::other(format!("in the directory `{}` {reason}", dir.display()))
        })?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let (metadata, user) = (file.metadata()?, rustix::process::geteuid().as_raw());
        if ![0, user].contains(&metadata.uid()) {
            let owner = metadata.uid();
            let message = format!("it is user {owner}'s, neither user {user}'s nor root's");
            return Err(io::Error::other(message));
        }
        if metadata.mode() & 0o022 != 0 {
            let mode = metadata.mode() & 0o777;
            return Err(io::Error::other(format!("others may write to it, its mode is {mode:o}")));
        }
    }
    Ok(file)
}

/// Fails if others could replace files in a directory, and names them.
#[cfg(unix)]
fn check_directory(metadata: &fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;

    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if ![0, user].contains(&owner) {
        return Err(format!("user {owner} may replace it, who is neither user {user} nor root"));
    }
    // A group with the same number as the user contains only that user, on systems where each user
    // has such a group.
    let group = if metadata.gid() == user { 0 } else { 0o020 };
    if mode & STICKY == 0 && mode & (group | 0o002) != 0 {
        return Err(format!("others may replace it, the mode of the directory is {mode:o}"));
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_image_in_a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image-x.bin");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let opened = |mode| {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            open_own(&path).map(drop).map_err(|error| error.to_string())
        };
        for fine in [0o755, 0o700, 0o1777] {
            assert_eq!(opened(fine), Ok(()), "{fine:o}");
        }
        let shown = dir.path().display();
        assert_eq!(
            opened(0o757),
            Err(format!(
                "in the directory `{shown}` others may replace it, the mode of the directory is 757"
            ))
        );
    }

    #[test]
    fn an_image_in_a_directory_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            // Only root can give a directory away.
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image-x.bin");
        fs::write(&path, "x").unwrap();
        std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
        let error = open_own(&path).unwrap_err().to_string();
        assert!(error.contains("user 12345 may replace it"), "{error}");
    }
}
