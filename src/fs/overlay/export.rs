//! Exports the changes in an overlay to a directory of the host.

use std::fmt::Display;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirBuilderExt as _, OpenOptions, OpenOptionsExt};

use super::super::error::FileError;
use super::super::host_tree::read_at;
use super::super::path::{RelativePath, check_target, climbs};
use super::super::root::{Root, config};
use super::Shared;
use super::changes::{Changes, Entry, Now};
use crate::data::error::Error;

const NEW_FILE: u32 = 0o600;
const NEW_DIRECTORY: u32 = 0o700;
const COPY_BYTES: usize = 64 * 1024;

/// A directory of the host to which an overlay can be exported, opened by
/// [`Files::open_export`](crate::Files::open_export).
#[derive(Debug)]
pub struct ExportDirectory(Root);

impl ExportDirectory {
    /// Opens a directory. It is created, or must be empty.
    pub(super) fn open(shared: &Shared, path: &Path) -> Result<Self, Error> {
        // Checked before the directory is created, because nothing may change in the directory that
        // the overlay shows.
        if existing(path).is_some_and(|directory| directory.starts_with(shared.lower.host())) {
            return Err(failed(path, &"it is in the directory that the overlay shows"));
        }
        match DirBuilder::new().mode(NEW_DIRECTORY).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(failed(path, &error).with_source(error));
            }
            _ => {}
        }
        let root = Root::open_directory(path);
        let directory = Self(root.map_err(|error| failed(path, &error).with_source(error))?);
        directory.check_empty()?;
        Ok(directory)
    }

    fn check_empty(&self) -> Result<(), Error> {
        let entries = self.0.dir().entries();
        let mut entries = entries.map_err(|error| self.failed(&error).with_source(error))?;
        if entries.next().is_some() { Err(self.failed(&"it is not empty")) } else { Ok(()) }
    }

    fn failed(&self, error: &dyn Display) -> Error {
        failed(self.0.host(), error)
    }
}

/// Returns the canonical path of the innermost existing directory on the way to a target.
fn existing(target: &Path) -> Option<PathBuf> {
    target.ancestors().find_map(|directory| {
        let here = directory.as_os_str().is_empty();
        (if here { Path::new(".") } else { directory }).canonicalize().ok()
    })
}

fn failed(path: &Path, error: &dyn Display) -> Error {
    config(format!("cannot export to `{}`: {error}", path.display()))
}

/// Writes the changed files and returns how many.
pub(super) fn export(shared: &Shared, target: &ExportDirectory) -> Result<u64, Error> {
    let changes = Changes::of(shared);
    if changes.cut {
        return Err(target.failed(&"there are too many changes"));
    }
    if target.0.host().starts_with(shared.lower.host()) {
        return Err(target.failed(&"it is in the directory that the overlay shows"));
    }
    target.check_empty()?;
    let mut written = 0;
    for entry in &changes.entries {
        written += write(shared, target.0.dir(), entry)
            .map_err(|error| target.failed(&format_args!("`{:?}`: {error}", entry.path)))?;
    }
    Ok(written)
}

/// Writes the file, directory or link at a changed path. Returns the number of files written.
fn write(shared: &Shared, target: &Dir, entry: &Entry) -> Result<u64, FileError> {
    let path = RelativePath::joined(&entry.path);
    let Some((parent, name)) = path.split() else {
        return Ok(0);
    };
    match &entry.now {
        Now::Nothing => return Ok(0),
        Now::Directory => {
            make_directories(target, path)?;
            return Ok(0);
        }
        Now::Link(link) => {
            // With `..` in a link, later writes could lead out of the target directory through
            // another link.
            if climbs(link) || check_target(path, link, shared.lower.limits()).is_err() {
                return Ok(0);
            }
            make_directories(target, parent)?.symlink(link, name)?;
        }
        Now::File(file) => {
            let output = make_file(target, parent, name)?;
            copy(&output, |offset, buffer| file.read(offset, buffer))?;
        }
        Now::Host(lower) => {
            let (input, _) = shared.lower.open_to_read(RelativePath::joined(lower))?;
            let output = make_file(target, parent, name)?;
            copy(&output, |offset, buffer| read_at(&input, offset, buffer))?;
        }
    }
    Ok(1)
}

/// Opens the directory at a path, and creates missing directories.
fn make_directories(target: &Dir, path: RelativePath<'_>) -> Result<Dir, FileError> {
    let mut directory = target.try_clone()?;
    let mut builder = cap_std::fs::DirBuilder::new();
    builder.mode(NEW_DIRECTORY);
    for name in path.names() {
        match directory.create_dir_with(name, &builder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        directory = directory.open_dir_nofollow(name)?;
    }
    Ok(directory)
}

fn make_file(target: &Dir, parent: RelativePath<'_>, name: &str) -> Result<File, FileError> {
    let directory = make_directories(target, parent)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(NEW_FILE);
    Ok(directory.open_with(name, &options)?.into_std())
}

fn copy(
    mut output: &File,
    read: impl Fn(u64, &mut [u8]) -> Result<usize, FileError>,
) -> Result<(), FileError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let count = read(offset, &mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        output.write_all(buffer.get(..count).unwrap_or_default())?;
        offset += count as u64;
    }
}
