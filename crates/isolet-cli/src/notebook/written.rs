//! Writes a notebook with the outputs of its cells to a file that was chosen before they ran.

use std::ffi::OsString;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::{PrettyFormatter, Serializer};

/// The file, by its name in a directory that is open.
pub(crate) struct Target {
    path: PathBuf,
    directory: Dir,
    name: OsString,
}

impl Target {
    /// Opens the directory of a file that exists or can be made.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || -> io::Result<(Dir, OsString)> {
            let real = match path.canonicalize() {
                Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
                real => real?,
            };
            if real.exists() && !real.is_file() {
                return Err(io::Error::other("it is no regular file"));
            }
            let name = real.file_name().ok_or(ErrorKind::InvalidInput)?;
            let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new("."));
            Ok((Dir::open_ambient_dir(parent, ambient_authority())?, name.to_owned()))
        };
        let (directory, name) =
            open().with_context(|| format!("cannot write `{}` of `--output`", path.display()))?;
        Ok(Self { path: path.to_owned(), directory, name })
    }

    /// Writes the file as Jupyter does. Readers see either all of it, or the old file.
    pub(super) fn write(&self, notebook: &Json) -> Result<()> {
        self.replace(notebook).with_context(|| format!("cannot write `{}`", self.path.display()))
    }

    fn replace(&self, notebook: &Json) -> io::Result<()> {
        let mut noise = [0; 8];
        getrandom::fill(&mut noise).map_err(|error| io::Error::other(error.to_string()))?;
        let beside = format!(".isolet-{:016x}.tmp", u64::from_le_bytes(noise));
        // The guest may be able to write to the directory, and must not choose the file.
        let options = OpenOptions::new().write(true).create_new(true).clone();
        let mut file = BufWriter::new(self.directory.open_with(&beside, &options)?);
        let formatter = PrettyFormatter::with_indent(b" ");
        let mut serializer = Serializer::with_formatter(&mut file, formatter);
        let written = notebook
            .serialize(&mut serializer)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| file.flush())
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| self.directory.rename(&beside, &self.directory, &self.name));
        if written.is_err() {
            let _ = self.directory.remove_file(&beside);
        }
        written
    }
}
