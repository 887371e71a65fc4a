//! Python packages: resolved, fetched and verified by the host, shown to the guest as read-only
//! files.
//!
//! A [`PackageStore`](store::PackageStore) turns [`Requirement`]s into a [`Resolution`] of verified
//! [`Wheel`]s; a [`PackageTree`] has the files of those that a session has loaded. The guest has no
//! part in it but to name a module, and a name that the owner has not allowed reaches nothing.

mod archive;
mod cache;
mod directory;
mod error;
mod files;
mod inflated;
mod interpreter;
mod lazy_store;
mod local;
mod lock;
mod marker;
mod metadata;
mod pip;
mod policy;
mod preload;
mod process;
mod report;
mod requirement;
mod resolve;
mod script;
mod store;
mod stubs;
mod tree;
mod wheel;
mod wheel_name;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use error::PackageError;
pub(crate) use lazy_store::LazyStore;
pub(crate) use policy::PackagePolicy;
pub(crate) use preload::Preload;
pub(crate) use requirement::Requirement;
pub use script::script_packages;
pub(crate) use tree::PackageTree;
pub(crate) use wheel::Wheel;

/// Where the guest's Python looks for packages.
pub(crate) const SITE_PACKAGES: &str = "/lib/python3.14/site-packages";

/// Returns the version of CPython that guests run.
#[must_use]
pub fn python_version() -> &'static str {
    interpreter::PYTHON
}

/// The wheels that meet requirements, with all that they need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolution {
    wheels: Vec<Arc<Wheel>>,
}

impl Resolution {
    /// Returns the wheels, in the order of their names.
    pub(crate) fn wheels(&self) -> &[Arc<Wheel>] {
        &self.wheels
    }
}

/// A Python package that a session has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedPackage {
    /// The normalised name of the distribution.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The file name of its wheel.
    pub file_name: String,
    /// The SHA-256 digest of its wheel, as lower-case hexadecimal digits.
    pub sha256: String,
}

impl LoadedPackage {
    fn of(wheel: &Wheel) -> Self {
        Self {
            name: wheel.name().to_owned(),
            version: wheel.version().to_string(),
            file_name: wheel.file_name().to_owned(),
            sha256: wheel.digest().to_string(),
        }
    }
}
