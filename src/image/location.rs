//! The storage of images: their directories and names, and the removal of old ones.

#[cfg(unix)]
use std::fs;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use isolet_pyodide_assets::{Digest, Lock};
use serde::{Deserialize, Serialize};

use super::key::key;
use crate::packages::Preload;

pub(super) const PREFIX: &str = "image-";
/// The prefix of images with packages. It is followed by the key of the image without packages, and
/// by the packages' own key.
pub(super) const PRELOADED: &str = "preloaded-";

/// How the packages of an image are imported, and so whom to trust with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Importer {
    /// On a thread of the host, like code of its own.
    Owner,
    /// Like a guest's code, on a thread of the host.
    GuestThread,
    /// Like a guest's code, in a worker. The image is used in workers only.
    GuestWorker,
}

/// The path and key of an image, which may not exist yet.
#[derive(Clone)]
pub(crate) struct ImageLocation {
    pub(super) dir: PathBuf,
    path: PathBuf,
    key: Digest,
    /// The directory of the image without packages.
    home: PathBuf,
    /// The key of that image.
    base: Digest,
    /// The prefixes of the names of images that are made from the same inputs.
    pub(super) current: [String; 2],
    /// The packages and modules that the image is for, in words.
    pub(super) purpose: String,
}

impl ImageLocation {
    /// Returns the location of the image of these assets with these packages: in `images`, or in
    /// `home` without packages.
    pub(crate) fn new(
        home: &Path,
        images: &Path,
        lock: &Lock,
        preload: &Preload,
        importer: Importer,
    ) -> Self {
        let base = key(lock);
        let short = |digest: Digest| digest.to_string()[..16].to_owned();
        let (plain, preloaded) =
            (format!("{PREFIX}{}", short(base)), format!("{PRELOADED}{}", short(base)));
        let (dir, name, key) = if preload.is_empty() {
            (home, format!("{plain}.bin"), base)
        } else {
            let key = Digest::of(format!("{base} {importer:?} {}", preload.key()).as_bytes());
            (images, format!("{preloaded}-{}.bin", short(key)), key)
        };
        let (dir, path) = (dir.to_owned(), dir.join(name));
        let (home, purpose) = (home.to_owned(), preload.purpose());
        Self { dir, path, key, home, base, current: [plain, preloaded], purpose }
    }

    /// Returns the location of the image without packages.
    pub(crate) fn without_packages(&self) -> Self {
        let name = format!("{}.bin", self.current[0]);
        Self { dir: self.home.clone(), path: self.home.join(name), key: self.base, ..self.clone() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a digest of everything that the image depends on.
    pub(crate) fn key(&self) -> Digest {
        self.key
    }

    /// Returns what to do about an image that cannot be used.
    pub(super) fn remedy(&self) -> &'static str {
        if self.path_is_preloaded() {
            "once it is removed it is made anew"
        } else {
            "`isolet assets prepare` makes it anew"
        }
    }

    pub(super) fn path_is_preloaded(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PRELOADED))
    }
}

/// Opens a file that nobody else may have written, or may write or replace, because it contains
/// machine code.
pub(super) fn open_own(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    #[cfg(unix)]
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        check_directory(dir)?;
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

/// Returns the part of an image's name that all images of the same build have.
pub(super) fn base_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PREFIX).or_else(|| name.strip_prefix(PRELOADED))?;
    rest.get(..16)
}

/// Fails if others could replace files in a directory, and names them.
#[cfg(unix)]
pub(super) fn check_directory(dir: &Path) -> io::Result<()> {
    check_metadata(&fs::metadata(dir)?).map_err(|reason| {
        io::Error::other(format!("in the directory `{}` {reason}", dir.display()))
    })
}

#[cfg(unix)]
fn check_metadata(metadata: &fs::Metadata) -> Result<(), String> {
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
