//! The built command as packages install it: `bin/isolet` beside `share/isolet/assets`, in a
//! temporary directory that every user may read, with a cache and a home.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, wheel};

/// The installation. It is removed at the end.
pub(crate) struct Installed {
    dir: PathBuf,
}

impl Installed {
    /// Copies `command` and Pyodide's files, and makes the memory image in the cache.
    pub(crate) fn new(command: &Path, purpose: &str) -> Result<Self> {
        let dir = env::temp_dir().join(format!("isolet-{purpose}-{}", std::process::id()));
        let installed = Self { dir };
        let bin = installed.dir.join("bin");
        for made in [&bin, &installed.cache(), &installed.home()] {
            fs::create_dir_all(made)
                .with_context(|| format!("cannot make `{}`", made.display()))?;
        }
        fs::copy(command, installed.command()).with_context(|| {
            format!("cannot copy `{}`; `cargo xtask setup` builds it", command.display())
        })?;
        wheel::stage(&installed.dir.join("share/isolet/assets"))?;
        let mut prepare = Command::new(installed.command());
        prepare.args(["assets", "prepare"]);
        process::check(installed.with_environment(&mut prepare))?;
        Ok(installed)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn command(&self) -> PathBuf {
        self.dir.join("bin/isolet")
    }

    /// Returns a cache directory that has the image.
    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// Returns a home that is empty at first.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Sets what a command finds by its environment.
    pub(crate) fn with_environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, _) in env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.cache()).env("HOME", self.home())
    }
}

/// Whether a variable would change what the command does, or where it looks.
fn is_ours(name: &str) -> bool {
    name.starts_with("ISOLET_") || name.starts_with("XDG_")
}

impl Drop for Installed {
    fn drop(&mut self) {
        // What another user has made in it may stay.
        let _ = fs::remove_dir_all(&self.dir);
    }
}
