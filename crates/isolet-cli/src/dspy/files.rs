//! The host files that DSPy's options allow the code to use.

use std::io;
use std::path::{Path, PathBuf};

use isolet::profile::host_path::HostPath;

/// Files and directories that were opened before any code ran.
pub(super) struct AllowedFiles {
    read: Vec<HostPath>,
    write: Vec<HostPath>,
}

impl AllowedFiles {
    /// Opens these files and directories, if they exist or can be created.
    pub(super) fn new(read: Vec<PathBuf>, write: Vec<PathBuf>) -> Self {
        let open = |paths: Vec<PathBuf>| {
            paths.into_iter().filter_map(|path| HostPath::open(path).ok()).collect()
        };
        Self { read: open(read), write: open(write) }
    }

    /// Reads a file, if it is allowed for reading or writing.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let (allowed, rest) = allowed(path, self.read.iter().chain(&self.write), "read")?;
        allowed.read_in(&rest).map_err(|error| format!("`{path}`: {error}"))
    }

    /// Writes a file, if it is allowed for writing. DSPy requests this after every run, so a file
    /// that already has these contents is not touched: a reader would see it empty for a moment.
    pub(super) fn write(&self, path: &str, contents: &[u8]) -> Result<(), String> {
        let (allowed, rest) = allowed(path, self.write.iter(), "write")?;
        if allowed.read_in(&rest).is_ok_and(|there| there == contents) {
            return Ok(());
        }
        allowed.write_in(&rest, contents).map_err(|error| format!("`{path}`: {error}"))
    }
}

/// Finds the allowed file or directory that a path names or is inside of, and returns it with the
/// rest of the path. A writable file need not exist, but its directory must.
fn allowed<'a>(
    path: &str,
    mut allowed: impl Iterator<Item = &'a HostPath>,
    what: &str,
) -> Result<(&'a HostPath, PathBuf), String> {
    let real = real(Path::new(path)).map_err(|error| format!("`{path}`: {error}"))?;
    let beneath = |allowed: &'a HostPath| {
        let rest = real.strip_prefix(allowed.real()).ok()?;
        Some((allowed, rest.to_owned()))
    };
    allowed
        .find_map(beneath)
        .ok_or_else(|| format!("access to `{path}` is not allowed; allow-{what} does not cover it"))
}

fn real(path: &Path) -> io::Result<PathBuf> {
    HostPath::open(path).map(|path| path.real().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_allowed_file_that_became_a_link_is_neither_read_nor_written() {
        let top = tempfile::tempdir().unwrap();
        let (file, directory) = (top.path().join("file"), top.path().join("directory"));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, "before").unwrap();
        let secret = top.path().join("secret");
        fs::write(&secret, "canary").unwrap();
        let missing = top.path().join("none/file");
        let files = AllowedFiles::new(vec![missing], vec![file.clone(), directory.clone()]);
        let (file, inner) = (file.to_str().unwrap(), directory.join("new"));
        let inner = inner.to_str().unwrap();
        files.write(file, b"one").unwrap();
        files.write(inner, b"two").unwrap();
        assert_eq!(
            (files.read(file).unwrap(), files.read(inner).unwrap()),
            ("one".into(), "two".into())
        );
        for path in [file, inner] {
            fs::remove_file(path).unwrap();
            symlink(&secret, path).unwrap();
            files.write(path, b"evil").unwrap_err();
            files.read(path).unwrap_err();
        }
        let error = files.read(secret.to_str().unwrap()).unwrap_err();
        assert!(error.contains("allow-read does not cover it"), "{error}");
        assert_eq!(fs::read_to_string(secret).unwrap(), "canary");
    }
}
