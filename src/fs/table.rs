//! The table of mounts, checked when a sandbox is built.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::host_place::{HostPlace, MOST_LINKS};
use super::mount::{Mount, MountMode};
use super::overlay::SavedLimits;
use super::path::rest_beneath;
use super::root::{Identity, Root, config};
use super::tree::Tree;
use crate::data::error::Error;

/// Guest directories of the interpreter, at and beneath which nothing can be mounted.
const RESERVED: [&str; 3] = ["/lib", "/proc", "/dev"];
/// Guest directories at which nothing can be mounted, but beneath which it can.
const SHARED: [&str; 3] = ["/", "/tmp", "/home"];
/// The maximum length of a mount's guest path, in bytes.
const PATH_BYTES: usize = 1024;

/// The mounts by guest path, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct MountTable(Vec<Entry>);

/// One mount.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) guest: String,
    pub(crate) source: Source,
}

/// The source of a mount.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Host(Mount),
    Tree(Arc<dyn Tree>),
    /// None: of a session that is looked back at, only its journal has the files.
    Absent,
}

impl MountTable {
    /// Adds a host directory at a guest path.
    ///
    /// Refuses the path if it is not absolute and normalised, belongs to the interpreter, or is the
    /// same as, inside or around the path of another mount. Refuses the directory if it overlaps
    /// that of another mount and either is writable.
    pub(crate) fn add(&mut self, guest: &str, mount: Mount) -> Result<(), Error> {
        check_path(guest)?;
        for entry in &self.0 {
            check_apart(guest, &entry.guest)?;
            if let Source::Host(other) = &entry.source {
                check_disjoint(&mount, other)?;
            }
        }
        self.0.push(Entry { guest: guest.to_owned(), source: Source::Host(mount) });
        Ok(())
    }

    /// Refuses mounts through which a guest could write to isolet's own files, which are trusted
    /// like programs.
    pub(crate) fn check_assets(&self, assets: &Path) -> Result<(), Error> {
        for entry in &self.0 {
            let Source::Host(mount) = &entry.source else { continue };
            if mount.mode() == MountMode::ReadWrite && mount.root().overlaps(&Root::open(assets)?) {
                return Err(config(format!(
                    "cannot mount `{}` to be written to: isolet's assets are in `{}`",
                    mount.root().host().display(),
                    assets.display()
                )));
            }
        }
        Ok(())
    }

    /// Refuses mounts through which a guest could change a file or directory that isolet, or its
    /// owner, trusts: by writing to it, or by what it puts on the path. `what` names it. What does
    /// not exist yet is where its path leads to so far.
    pub(crate) fn check_out_of_reach(&self, what: &str, path: &Path) -> Result<(), Error> {
        for entry in &self.0 {
            let Source::Host(mount) = &entry.source else { continue };
            if mount.mode() != MountMode::ReadWrite || !is_in_reach(path, mount.root()) {
                continue;
            }
            return Err(config(format!(
                "the code could change {what}, `{}`, because `{}` is mounted with `rw` at `{}`; \
                 name a path outside of that directory, or mount it with `ro` or `overlay`",
                path.display(),
                mount.root().host().display(),
                entry.guest
            )));
        }
        Ok(())
    }

    /// Adds a tree that isolet provides, at a path that isolet chooses.
    pub(crate) fn add_tree(&mut self, guest: &str, tree: Arc<dyn Tree>) {
        self.0.push(Entry { guest: guest.to_owned(), source: Source::Tree(tree) });
    }

    /// Adds a mount point without a mount.
    pub(crate) fn add_absent(&mut self, guest: &str) {
        self.0.push(Entry { guest: guest.to_owned(), source: Source::Absent });
    }

    /// Returns the guest paths, in the order of the mounts' numbers.
    pub(crate) fn guest_paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.guest.as_str())
    }

    /// Returns what a saved session may have of the overlays.
    pub(crate) fn saved_limits(&self) -> SavedLimits {
        let mut limits = SavedLimits::default();
        for Entry { guest, source } in &self.0 {
            if let Source::Host(mount) = source
                && mount.mode() == MountMode::Overlay
            {
                let (bytes, files) = mount.quotas();
                limits.add(guest.clone(), bytes, files);
            }
        }
        limits
    }

    /// Returns the directories of the host that a guest may write to.
    pub(crate) fn writable(&self) -> Vec<Identity> {
        let root = |entry: &Entry| match &entry.source {
            Source::Host(mount) if mount.mode() == MountMode::ReadWrite => {
                Some(mount.root().identity())
            }
            _ => None,
        };
        self.0.iter().filter_map(root).collect()
    }

    /// Returns whether a guest may write to a directory of the host.
    pub(crate) fn is_any_writable(&self) -> bool {
        !self.writable().is_empty()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }
}

fn is_in_reach(path: &Path, writable: &Root) -> bool {
    // By each directory on the way, as links could be put there later; also to what is not there.
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let is_inside = match HostPlace::find(&path, &[writable.identity()]) {
            Ok(place) => place.is_inside(),
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        };
        if is_inside {
            return true;
        }
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    let path = &*path;
    let Some(nearest) = path.ancestors().find_map(|path| {
        let here = path.as_os_str().is_empty();
        (if here { Path::new(".") } else { path }).canonicalize().ok()
    }) else {
        return false;
    };
    let file = nearest.is_file().then(|| nearest.parent()).flatten();
    let Ok(directory) = Root::open_directory(file.unwrap_or(&nearest)) else { return false };
    let is_the_path_itself = file.is_none() && path.is_dir();
    writable.contains(&directory) || is_the_path_itself && directory.contains(writable)
}

fn check_path(guest: &str) -> Result<(), Error> {
    let refused = |reason: &str| Err(config(format!("cannot mount at {guest:?}: {reason}")));
    let Some(names) = guest.strip_prefix('/') else {
        return refused("the path in the guest has to be absolute");
    };
    if guest.len() > PATH_BYTES {
        return refused(&format!("limit {PATH_BYTES} bytes, needed {}", guest.len()));
    }
    if SHARED.contains(&guest) {
        return refused("it is shared; mount at a directory in it");
    }
    if names.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return refused("the path has an empty name, `.` or `..` in it");
    }
    if guest.chars().any(char::is_control) {
        return refused("the path has a control character in it");
    }
    if let Some(of) = RESERVED.iter().find(|of| guest == **of || is_beneath(guest, of)) {
        return refused(&format!("`{of}` is the interpreter's own"));
    }
    Ok(())
}

fn check_apart(guest: &str, other: &str) -> Result<(), Error> {
    if guest == other || is_beneath(guest, other) || is_beneath(other, guest) {
        return Err(config(format!(
            "cannot mount at `{guest}`: `{other}` is mounted, and mounts do not overlap"
        )));
    }
    Ok(())
}

fn check_disjoint(mount: &Mount, other: &Mount) -> Result<(), Error> {
    if mount.mode() != MountMode::ReadWrite && other.mode() != MountMode::ReadWrite {
        return Ok(());
    }
    if mount.root().overlaps(other.root()) {
        return Err(config(format!(
            "cannot mount `{}`: it overlaps `{}`, and one of them can be written to",
            mount.root().host().display(),
            other.root().host().display()
        )));
    }
    Ok(())
}

fn is_beneath(path: &str, directory: &str) -> bool {
    rest_beneath(path, directory).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_guests_could_change_is_in_reach_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().canonicalize().unwrap();
        for directory in ["rw/deep", "ro", "outer/inner", "apart"] {
            fs::create_dir_all(scratch.join(directory)).unwrap();
        }
        fs::write(scratch.join("outer/log"), "").unwrap();
        symlink(scratch.join("rw/deep"), scratch.join("apart/to-rw")).unwrap();
        symlink(scratch.join("apart"), scratch.join("rw/out")).unwrap();
        symlink(scratch.join("rw/new"), scratch.join("apart/log")).unwrap();
        symlink(scratch.join("ro"), scratch.join("rw/log")).unwrap();
        let mut mounts = MountTable::default();
        mounts.add("/rw", Mount::dangerous_read_write(scratch.join("rw")).unwrap()).unwrap();
        let inner = Mount::dangerous_read_write(scratch.join("outer/inner")).unwrap();
        mounts.add("/inner", inner).unwrap();
        mounts.add("/ro", Mount::dangerous_read_only(scratch.join("ro")).unwrap()).unwrap();
        let check = |path: &str| mounts.check_out_of_reach("the log", &scratch.join(path));
        // Beneath a mount, around one, by links in and out, also what does not exist.
        for path in [
            "rw",
            "rw/log",
            "rw/deep",
            "rw/new/store",
            "outer",
            "outer/inner/a",
            "apart/to-rw",
            "apart/to-rw/log",
            "rw/out/log",
            "rw/../apart/a",
            "apart/log",
        ] {
            let error = check(path).expect_err(path).to_string();
            assert!(error.contains("the log, `") && error.contains(path), "{error}");
            assert!(error.contains("with `rw` at `/"), "{error}");
        }
        for path in ["ro/log", "apart", "apart/new/log", "outer/log", "outer/new", "nosuch/a"] {
            check(path).unwrap();
        }
    }
}
