//! Places for isolet's own files on the host that no guest leads elsewhere: a path is walked by
//! open directories, and beneath a directory that a guest may write to, no link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, readlinkat, renameat, unlinkat};
use rustix::io::Errno;

use super::kernel::{PASSED, identity};
use super::root::Identity;

/// As many links as the kernel follows.
pub(super) const MOST_LINKS: usize = 40;

/// A directory as a place on the way.
const DIRECTORY: OFlags =
    PASSED.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The place of a file: its directory, held open, and its name.
pub(crate) struct HostPlace {
    directory: OwnedFd,
    name: OsString,
    is_inside: bool,
}

impl HostPlace {
    /// Finds the directory of a path. Guests may write to the directories `writable`.
    ///
    /// # Errors
    ///
    /// Fails if the path leads through a link, or by `..`, inside of one of these.
    pub(crate) fn find(path: &Path, writable: &[Identity]) -> io::Result<Self> {
        let absolute = std::path::absolute(path)?;
        let name = absolute.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = absolute.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let mut walk = Walk { directory: root()?, is_inside: false, writable, links: 0 };
        walk.check()?;
        let mut ahead: Vec<OsString> = names(parent);
        while let Some(name) = ahead.pop() {
            if let Some(target) = walk.step(&name)? {
                if target.is_absolute() {
                    walk.directory = root()?;
                }
                ahead.extend(names(&target));
            }
        }
        Ok(Self { directory: walk.directory, name, is_inside: walk.is_inside })
    }

    /// Returns `true` if guests may write to the directory.
    pub(crate) fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// Returns the name of the file.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Makes a file in the directory, which only its owner may read.
    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&self.directory, name, flags | OFlags::CLOEXEC, Mode::from(0o600))?;
        Ok(file.into())
    }

    /// Puts a file of the directory into the place, in which there may be another.
    pub(crate) fn replace_by(&self, name: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.directory, name, &self.directory, &self.name)?)
    }

    /// Removes a file of the directory.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
    }
}

struct Walk<'a> {
    directory: OwnedFd,
    /// Set once it has come into a directory that guests may write to.
    is_inside: bool,
    writable: &'a [Identity],
    links: usize,
}

impl Walk<'_> {
    /// Goes to a directory; returns the target of a link instead.
    fn step(&mut self, name: &OsStr) -> io::Result<Option<std::path::PathBuf>> {
        let shown = name.to_string_lossy();
        if name == ".." && self.is_inside {
            return Err(refused(&shown, "leads out of"));
        }
        match openat(&self.directory, name, DIRECTORY, Mode::empty()) {
            Ok(directory) => {
                self.directory = directory;
                self.check()?;
                Ok(None)
            }
            Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                let Ok(target) = readlinkat(&self.directory, name, Vec::new()) else {
                    return Err(error.into());
                };
                if self.is_inside {
                    return Err(refused(&shown, "is a link in"));
                }
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target: OsString =
                    std::os::unix::ffi::OsStringExt::from_vec(target.into_bytes());
                Ok(Some(target.into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Notes whether guests may write to the directory.
    fn check(&mut self) -> io::Result<()> {
        self.is_inside |= self.writable.contains(&identity(&self.directory)?);
        Ok(())
    }
}

fn root() -> io::Result<OwnedFd> {
    Ok(openat(CWD, "/", DIRECTORY, Mode::empty())?)
}

/// Returns the names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

fn refused(name: &str, what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "`{name}` {what} a directory that the code may write to; name a path outside of what \
             is mounted with `rw`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn identity(path: &Path) -> Identity {
        let found = fs::metadata(path).unwrap();
        (found.dev(), found.ino())
    }

    #[test]
    fn links_are_followed_up_to_where_a_guest_may_write_and_not_beyond() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().canonicalize().unwrap();
        let (mount, other) = (scratch.join("mount"), scratch.join("other"));
        fs::create_dir_all(mount.join("deep")).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, mount.join("out")).unwrap();
        symlink("../../other", mount.join("deep/out")).unwrap();
        symlink("deep", mount.join("in")).unwrap();
        symlink("mount/deep", scratch.join("to-mount")).unwrap();
        symlink("mount/out", scratch.join("through")).unwrap();
        symlink("loop", scratch.join("loop")).unwrap();
        let writable = [identity(&mount)];
        let find = |path: &str| HostPlace::find(&scratch.join(path), &writable);
        for path in ["other/a", "mount/a", "mount/deep/a", "to-mount/a", "mount/deep/./a"] {
            let place = find(path).unwrap();
            place.create(OsStr::new(".new")).unwrap();
            place.replace_by(OsStr::new(".new")).unwrap();
            assert!(scratch.join(path).exists(), "{path}");
            fs::remove_file(scratch.join(path)).unwrap();
        }
        for path in ["mount/out/a", "mount/deep/out/a", "mount/in/a", "through/a", "mount/../b"] {
            let error = find(path).err().expect(path);
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path}: {error}");
        }
        assert!(find("loop/a").is_err() && find("nosuch/a").is_err() && find("..").is_err());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        // Where no guest may write, the owner's links mean what they say.
        assert!(HostPlace::find(&scratch.join("mount/out/a"), &[]).is_ok());
    }

    #[test]
    fn a_place_is_the_directory_that_was_found_and_not_the_path() {
        let scratch = tempfile::tempdir().unwrap();
        let (before, after) = (scratch.path().join("before"), scratch.path().join("after"));
        fs::create_dir(&before).unwrap();
        let place = HostPlace::find(&before.join("a"), &[]).unwrap();
        fs::rename(&before, &after).unwrap();
        symlink("nowhere", &before).unwrap();
        place.create(OsStr::new("b")).unwrap();
        place.replace_by(OsStr::new("b")).unwrap();
        assert!(after.join("a").exists());
        place.remove(OsStr::new("a")).unwrap();
        assert!(!after.join("a").exists());
    }
}
