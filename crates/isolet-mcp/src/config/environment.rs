//! The environment that configurations refer to, as values: the library reads no variable itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::secret::Secret;

/// The environment variables that a server process inherits, besides its own `env`.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// The variables that a configuration may name, and that say where its files are.
///
/// ```
/// use isolet_mcp::Environment;
///
/// let environment = Environment::new([("HOME", "/home/ada"), ("PATH", "/usr/bin")]);
/// assert_eq!(environment.get("HOME"), Some("/home/ada"));
/// ```
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, Secret>);

impl Environment {
    /// Makes an environment of these variables. A command passes all variables that it has.
    pub fn new<K, V>(variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let pair = |(name, value): (K, V)| (name.into(), Secret::new(value));
        Self(variables.into_iter().map(pair).collect())
    }

    /// Returns the value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(Secret::expose)
    }

    /// Returns the variables that every process gets.
    pub(crate) fn passed_on(&self) -> impl Iterator<Item = (&'static str, &str)> {
        PASSED_ON.into_iter().filter_map(|name| Some((name, self.get(name)?)))
    }

    /// Returns all variables, for a command of the user's own.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.expose()))
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.directory("HOME").or_else(|| self.directory("USERPROFILE"))
    }

    /// Returns the directory in which applications keep their settings.
    pub(super) fn settings(&self) -> Option<PathBuf> {
        if cfg!(target_os = "macos") {
            return Some(self.home()?.join("Library/Application Support"));
        }
        if cfg!(windows) {
            return self.directory("APPDATA");
        }
        self.directory("XDG_CONFIG_HOME").or_else(|| Some(self.home()?.join(".config")))
    }

    /// Returns the absolute directory that a variable names.
    pub(super) fn directory(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(self.get(name)?);
        path.is_absolute().then(|| path.to_owned())
    }
}

impl fmt::Debug for Environment {
    /// Shows the names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
