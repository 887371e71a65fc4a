//! Host files and directories that are named before a guest runs, and later read and written
//! without following links.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

/// A file or directory of the host, held by an open directory.
///
/// Making one follows links, as the owner of the path intends, and opens the directory: for a file,
/// the one that contains it. The file itself need not exist. From then on the path is never
/// resolved again. A guest that can write to a directory on the path, or to this one, can put a
/// link or another directory there. Nothing is then read or written elsewhere: access through a
/// link fails.
#[derive(Debug)]
pub struct HostPath {
    directory: Dir,
    /// The name of the file in the directory; `None` if this is the directory.
    name: Option<OsString>,
    real: PathBuf,
}

impl HostPath {
    /// Opens the target of a host path as it is now.
    ///
    /// # Errors
    ///
    /// Fails if the directory does not exist, or, for a file, its parent directory does not.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let real = real(path.as_ref())?;
        let open = |directory: &Path| Dir::open_ambient_dir(directory, ambient_authority());
        if real.is_dir() {
            return Ok(Self { directory: open(&real)?, name: None, real });
        }
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        Ok(Self { directory: open(parent)?, name: Some(name.to_owned()), real })
    }

    /// Returns the path without links and `..`, as it was when this was made.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Returns `true` if it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.name.is_none()
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Fails if the file is missing, is not a regular file, or the system denies access.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        self.read_in(Path::new(""))
    }

    /// Reads a file in the directory. `path` is relative to it.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and if `path` has components other than plain names, or leads
    /// through a link.
    pub fn read_in(&self, path: &Path) -> io::Result<Vec<u8>> {
        let (mut file, metadata) = self.open_file(path, OpenOptions::new().read(true))?;
        let size = usize::try_from(metadata.len()).unwrap_or_default();
        let mut contents = Vec::new();
        contents.try_reserve(size)?;
        file.read_to_end(&mut contents)?;
        Ok(contents)
    }

    /// Writes the file and replaces its contents. A missing file is created.
    ///
    /// # Errors
    ///
    /// Fails if the file is a link or not a regular file, or the system denies access.
    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        self.write_in(Path::new(""), contents)
    }

    /// Writes a file in the directory. `path` is relative to it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write), and if `path` has components other than plain names, or leads
    /// through a link.
    pub fn write_in(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let (mut file, _) = self.open_file(path, OpenOptions::new().write(true).create(true))?;
        // Not truncated by a flag of `open`: the check for a regular file must come first.
        file.set_len(0)?;
        file.write_all(contents)
    }

    fn open_file(&self, path: &Path, options: &OpenOptions) -> io::Result<(File, Metadata)> {
        let mut names = plain_names(path)?;
        names.splice(0..0, self.name.clone());
        let name = names.pop().ok_or(ErrorKind::IsADirectory)?;
        let mut directory = self.directory.try_clone()?;
        for name in &names {
            directory = directory.open_dir_nofollow(name)?;
        }
        // Non-blocking, so that opening a pipe or device does not hang.
        let options = options.clone().follow(FollowSymlinks::No).nonblock(true).clone();
        let file = directory.open_with(name, &options)?.into_std();
        let metadata = file.metadata()?;
        if metadata.is_file() {
            return Ok((file, metadata));
        }
        Err(io::Error::other("it is not a regular file"))
    }
}

fn plain_names(path: &Path) -> io::Result<Vec<OsString>> {
    let name = |component| match component {
        Component::Normal(name) => Ok(name.to_owned()),
        _ => Err(ErrorKind::InvalidInput.into()),
    };
    path.components().map(name).collect()
}

/// Returns the path without links and `..`. Only its last component may be missing.
fn real(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(parent.unwrap_or(Path::new(".")).canonicalize()?.join(name))
        }
        real => real,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const CANARY: &str = "canary-90be1f";

    /// Makes a directory that has a directory `in` and, next to it, a file that must not change.
    fn world() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let (inner, canary) = (top.path().join("in"), top.path().join("canary"));
        fs::create_dir(&inner).unwrap();
        fs::write(&canary, CANARY).unwrap();
        (top, inner, canary)
    }

    #[test]
    fn a_link_that_is_put_in_the_place_of_a_file_is_neither_read_nor_written() {
        let (_top, inner, canary) = world();
        let path = inner.join("out.txt");
        for before in [None, Some("before")] {
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            let file = HostPath::open(&path).unwrap();
            file.write(b"written").unwrap();
            assert_eq!(file.read().unwrap(), b"written");
            fs::remove_file(&path).unwrap();
            symlink(&canary, &path).unwrap();
            file.read().unwrap_err();
            file.write(b"evil").unwrap_err();
            assert_eq!(fs::read_to_string(&canary).unwrap(), CANARY);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_directory_that_is_swapped_for_a_link_leads_nowhere() {
        let (top, inner, canary) = world();
        let file = HostPath::open(inner.join("canary")).unwrap();
        let directory = HostPath::open(&inner).unwrap();
        fs::create_dir(inner.join("sub")).unwrap();
        fs::rename(&inner, top.path().join("moved")).unwrap();
        symlink(top.path(), &inner).unwrap();
        symlink(top.path(), top.path().join("moved/link")).unwrap();
        file.write(b"one").unwrap();
        directory.write_in(Path::new("sub/canary"), b"two").unwrap();
        directory.write_in(Path::new("link/canary"), b"evil").unwrap_err();
        directory.read_in(Path::new("link/canary")).unwrap_err();
        for odd in ["../canary", "/canary", "sub/../../canary", ""] {
            directory.write_in(Path::new(odd), b"evil").unwrap_err();
        }
        assert_eq!(fs::read_to_string(&canary).unwrap(), CANARY);
        assert_eq!(fs::read_to_string(top.path().join("moved/canary")).unwrap(), "one");
        assert_eq!(fs::read_to_string(top.path().join("moved/sub/canary")).unwrap(), "two");
    }

    #[test]
    fn links_are_followed_when_it_is_made() {
        let (top, inner, canary) = world();
        let link = inner.join("link");
        symlink(&canary, &link).unwrap();
        let file = HostPath::open(&link).unwrap();
        assert_eq!(file.real(), top.path().canonicalize().unwrap().join("canary"));
        assert_eq!(file.read().unwrap(), CANARY.as_bytes());
        file.write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&canary).unwrap(), "new");
        HostPath::open(top.path().join("none/x")).unwrap_err();
    }
}
