//! Python packages: the host resolves, fetches and verifies them, and shows them to the guest as
//! read-only files.
//!
//! A [`PackageStore`](store::PackageStore) turns [`Requirement`]s into a [`Resolution`] of verified
//! [`Wheel`]s; a [`PackageTree`] contains the files of those that a session has loaded. The guest
//! can only name a module. A name that the owner has not allowed has no effect.

pub(crate) mod archive;
mod bundle;
mod bundle_writer;
mod cache;
mod directory;
mod download;
mod error;
mod export;
mod files;
mod imports;
mod inflate_cache;
mod interpreter;
mod lazy_store;
mod local;
pub(crate) mod lock;
pub(crate) mod marker;
mod mentions;
pub(crate) mod metadata;
mod patch;
mod pip;
mod policy;
mod prefer;
mod preload;
mod process;
mod pure;
pub(crate) mod report;
pub(crate) mod requirement;
mod resolve;
pub(crate) mod script;
pub(crate) mod signature;
mod store;
mod stubs;
mod tree;
pub(crate) mod wasm;
pub(crate) mod wheel;
pub(crate) mod wheel_name;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use bundle::{Bundle, BundledPackage};
pub(crate) use bundle_writer::BundleWriter;
pub(crate) use download::DownloadSink;
pub use download::PackageDownload;
pub(crate) use error::PackageError;
pub(crate) use lazy_store::LazyStore;
pub(crate) use mentions::imported_modules;
pub(crate) use policy::PackagePolicy;
pub(crate) use preload::Preload;
pub(crate) use requirement::{Requirement, normalised};
pub use script::script_packages;
pub(crate) use tree::PackageTree;
pub(crate) use wheel::Wheel;

/// The directory in which the guest's Python searches for packages.
pub(crate) const SITE_PACKAGES: &str = "/lib/python3.14/site-packages";

/// Returns the version of CPython that guests run.
#[must_use]
pub fn python_version() -> &'static str {
    interpreter::PYTHON
}

/// The wheels that meet a set of requirements, with all dependencies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolution {
    wheels: Vec<Arc<Wheel>>,
}

impl Resolution {
    /// Returns the wheels, sorted by name.
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
    /// The SHA-256 digest of its wheel, in lower-case hexadecimal.
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
