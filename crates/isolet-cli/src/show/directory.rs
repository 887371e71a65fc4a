//! Directories of the host that files are written to, although a guest may be able to write there.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

/// Opens the directory of an option. It is created, but not its parents.
pub(crate) fn open(path: &Path, option: &str) -> Result<Dir> {
    let make = || -> io::Result<Dir> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Dir::open_ambient_dir(path, ambient_authority())
    };
    make().with_context(|| {
        format!("cannot write to the directory `{}` of `{option}`", path.display())
    })
}

/// Writes a new file in the place of any other. The guest must not choose the file, by a link.
pub(crate) fn replace(directory: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    match directory.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let options = OpenOptions::new().write(true).create_new(true).clone();
    directory.open_with(name, &options)?.write_all(bytes)
}
