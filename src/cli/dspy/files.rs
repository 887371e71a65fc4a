//! The files of the host that DSPy's options let the code have.

use std::path::{Path, PathBuf};

/// Files and directories, by their real paths.
pub(super) struct AllowedFiles {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl AllowedFiles {
    pub(super) fn new(read: Vec<PathBuf>, write: Vec<PathBuf>) -> Self {
        Self { read, write }
    }

    /// Reads a file, if it may be read: what may be written may.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = allowed(path, self.read.iter().chain(&self.write), "read")?;
        std::fs::read(&path).map_err(|error| format!("`{}`: {error}", path.display()))
    }

    /// Writes a file, if it may be written. DSPy asks for it after every run, so one that has these
    /// contents is left alone: its reader would find it empty for a moment.
    pub(super) fn write(&self, path: &str, contents: &[u8]) -> Result<(), String> {
        let path = allowed(path, self.write.iter(), "write")?;
        if std::fs::read(&path).is_ok_and(|there| there == contents) {
            return Ok(());
        }
        std::fs::write(&path, contents).map_err(|error| format!("`{}`: {error}", path.display()))
    }
}

/// The real path, if it is one of the allowed ones or beneath one of them. A file that may be
/// written need not be there, but its directory has to be.
fn allowed<'a>(
    path: &str,
    mut allowed: impl Iterator<Item = &'a PathBuf>,
    what: &str,
) -> Result<PathBuf, String> {
    let real = real(Path::new(path)).map_err(|error| format!("`{path}`: {error}"))?;
    if allowed.any(|allowed| self::real(allowed).is_ok_and(|allowed| real.starts_with(allowed))) {
        Ok(real)
    } else {
        Err(format!("access to `{path}` is not allowed; allow-{what} does not cover it"))
    }
}

fn real(path: &Path) -> std::io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = path.parent().ok_or(error)?.canonicalize()?;
            Ok(directory.join(path.file_name().unwrap_or_default()))
        }
        real => real,
    }
}
