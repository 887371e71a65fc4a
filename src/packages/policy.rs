//! The package policy: which packages may be imported, and from which sources.

use std::path::PathBuf;

use isolet_pyodide_assets::Authorities;

use super::bundle::Bundle;
use super::download::DownloadSink;
use super::requirement::Requirement;
use crate::data::error::{Error, ErrorKind};
use crate::support::patience::GivenUp;

/// Packages that a guest may import, and their sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackagePolicy {
    pub(crate) allowed: Vec<Requirement>,
    /// Modules to preload, whose packages are found when they are resolved.
    pub(crate) modules: Vec<String>,
    pub(crate) wheels: Vec<PathBuf>,
    /// Packages that may be imported without being named.
    pub(crate) bundle: Option<Bundle>,
    /// Set if the packages of the engine's bundle may not be imported.
    pub(crate) forbids_bundle: bool,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) offline: bool,
    pub(crate) pyodide_packages: Option<String>,
    /// Certificate authorities that are trusted, too.
    pub(crate) authorities: Authorities,
    pub(crate) on_download: Option<DownloadSink>,
    /// Set once nobody waits for the packages any more.
    pub(crate) given_up: GivenUp,
}

impl PackagePolicy {
    pub(crate) fn allow(&mut self, requirement: &str) -> Result<(), Error> {
        let refused = |error: <Requirement as std::str::FromStr>::Err| {
            Error::new(ErrorKind::Config, error.to_string())
        };
        self.allowed.push(requirement.parse().map_err(refused)?);
        Ok(())
    }

    /// Adds a package to preload, or a module of one by its dotted name.
    pub(crate) fn preload(&mut self, text: &str) -> Result<(), Error> {
        let is_identifier = |part: &str| {
            part.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
                && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        };
        if text.contains('.') && text.split('.').all(is_identifier) {
            self.modules.push(text.to_owned());
            return Ok(());
        }
        self.allow(text)
    }
}
