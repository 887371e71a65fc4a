//! The package policy: which packages may be imported, and from which sources.

use std::path::PathBuf;

use super::requirement::Requirement;
use crate::data::error::{Error, ErrorKind};

/// Packages that a guest may import, and their sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackagePolicy {
    pub(crate) allowed: Vec<Requirement>,
    pub(crate) wheels: Vec<PathBuf>,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) offline: bool,
    pub(crate) pyodide_packages: Option<String>,
}

impl PackagePolicy {
    pub(crate) fn allow(&mut self, requirement: &str) -> Result<(), Error> {
        let refused = |error: <Requirement as std::str::FromStr>::Err| {
            Error::new(ErrorKind::Config, error.to_string())
        };
        self.allowed.push(requirement.parse().map_err(refused)?);
        Ok(())
    }
}
