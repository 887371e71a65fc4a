//! The environment that configurations refer to, as values: the library reads no variable itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::hidden::Secret;

/// The environment variables that a server process inherits, besides its own `env`.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// A system, by where programs on it keep their settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum System {
    /// Linux, and others that follow the directories of XDG.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this program runs on.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };
}

/// The variables that a configuration may name, and that say where its files are.
///
/// ```
/// use isolet_support::template::Environment;
///
/// let environment = Environment::new([("HOME", "/home/ada"), ("PATH", "/usr/bin")]);
/// assert_eq!(environment.get("HOME"), Some("/home/ada"));
/// ```
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<String, Secret>,
    system: System,
}

impl Default for Environment {
    fn default() -> Self {
        Self { variables: BTreeMap::new(), system: System::HERE }
    }
}

impl Environment {
    /// Makes an environment of these variables. A command passes all variables that it has.
    pub fn new<K, V>(variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let pair = |(name, value): (K, V)| (name.into(), Secret::new(value));
        Self { variables: variables.into_iter().map(pair).collect(), ..Self::default() }
    }

    /// Has it be the environment of a program on another system.
    #[must_use]
    pub fn on(self, system: System) -> Self {
        Self { system, ..self }
    }

    /// Returns the system that it is of.
    #[must_use]
    pub fn system(&self) -> System {
        self.system
    }

    /// Returns the value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(Secret::expose)
    }

    /// Adds a variable, for the texts that name it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), Secret::new(value));
        self
    }

    /// Returns the variables that every process gets.
    pub fn passed_on(&self) -> impl Iterator<Item = (&'static str, &str)> {
        PASSED_ON.into_iter().filter_map(|name| Some((name, self.get(name)?)))
    }

    /// Returns all variables, for a command of the user's own.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.expose()))
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.directory("HOME").or_else(|| self.directory("USERPROFILE"))
    }

    /// Returns the directory in which applications keep their settings.
    pub fn settings(&self) -> Option<PathBuf> {
        match self.system {
            System::MacOs => Some(self.home()?.join("Library/Application Support")),
            System::Windows => self.directory("APPDATA"),
            System::Linux => self.configuration(),
        }
    }

    /// Returns the directory in which programs of a terminal keep their settings.
    pub fn configuration(&self) -> Option<PathBuf> {
        self.directory("XDG_CONFIG_HOME").or_else(|| Some(self.home()?.join(".config")))
    }

    /// Returns the absolute directory that a variable names.
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(self.get(name)?);
        path.is_absolute().then(|| path.to_owned())
    }
}

impl fmt::Debug for Environment {
    /// Shows the names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
