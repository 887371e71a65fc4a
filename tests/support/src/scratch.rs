//! A separate directory for one test.

use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Command;

use crate::target_dir;

/// A separate, empty directory for one test, removed on drop.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory. No other test may have this name.
    #[must_use]
    pub fn new(test: &str) -> Self {
        let name = format!("it-{test}-{}", std::process::id());
        let dir = target_dir().join("tmp").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// Writes a program and returns its path.
    #[cfg(unix)]
    #[expect(clippy::must_use_candidate, reason = "what is on `PATH` is found without its path")]
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.0.join(name);
        // Written by another process. If a thread of this one held the file open for writing while
        // another thread forks, the file could not be run.
        let write = "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", write, "sh", script]).arg(&path);
        assert!(shell.status().unwrap().success());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Anything left stays in the target directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
