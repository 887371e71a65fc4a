//! The package store of one sandbox, created on first use.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use isolet_pyodide_assets::Downloader;

use super::LoadedPackage;
use super::bundle::Bundle;
use super::download;
use super::policy::PackagePolicy;
use super::requirement::Requirement;
use super::store::{PackageStore, StoreOptions};
use crate::data::error::Error;
use crate::support::cache_dir::cache_dir;

/// The placeholder for a file name in the URL of a source.
const FILE: &str = "{file}";

/// The package store of one sandbox, created on first use.
pub(crate) struct LazyStore {
    policy: PackagePolicy,
    lock_json: Arc<[u8]>,
    store: OnceLock<PackageStore>,
}

impl LazyStore {
    pub(crate) fn new(policy: PackagePolicy, lock_json: Arc<[u8]>) -> Self {
        Self { policy, lock_json, store: OnceLock::new() }
    }

    /// Returns the packages that may be imported.
    pub(crate) fn allowed(&self) -> &[Requirement] {
        &self.policy.allowed
    }

    /// Returns the packages that may be imported without being named.
    pub(crate) fn bundle(&self) -> Option<&Bundle> {
        self.policy.bundle.as_ref()
    }

    /// Writes the wheels of these packages, and of all that they need, into a directory. Blocks
    /// while they are resolved and fetched.
    pub(crate) fn export(
        &self,
        requirements: &[String],
        into: &Path,
    ) -> Result<Vec<LoadedPackage>, Error> {
        let parse = |text: &String| text.parse::<Requirement>();
        let requirements = requirements.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(self.store()?.export(&requirements, into)?)
    }

    /// Returns the store, and creates it on the first call.
    pub(crate) fn store(&self) -> Result<&PackageStore, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let policy = &self.policy;
        let cache = match &policy.cache {
            Some(directory) => directory.clone(),
            None => cache_dir("packages")?,
        };
        let mut options = StoreOptions {
            wheels: policy.wheels.clone(),
            bundle: policy.bundle.clone(),
            authorities: policy.authorities.clone(),
            offline: policy.offline,
            given_up: policy.given_up.clone(),
            ..StoreOptions::default()
        };
        match policy.pyodide_packages.clone().or_else(pyodides_own) {
            Some(source) if source.contains(FILE) => {
                let mut downloader =
                    Downloader::new([source]).authorities(policy.authorities.clone());
                if let Some(flag) = policy.given_up.flag() {
                    downloader = downloader.given_up(flag);
                }
                options.fetch = Some(download::fetch(downloader, policy.on_download.clone()));
            }
            directory => options.pyodide_packages = directory.map(PathBuf::from),
        }
        let store = PackageStore::new(cache, &self.lock_json, options)?;
        Ok(self.store.get_or_init(|| store))
    }
}

/// Returns the URL at which Pyodide publishes its packages, the same as for Pyodide itself.
fn pyodides_own() -> Option<String> {
    isolet_pyodide_assets::lock().ok()?.sources().last().cloned()
}

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyStore").field("policy", &self.policy).finish_non_exhaustive()
    }
}
