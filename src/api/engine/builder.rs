//! Builds an [`Engine`] whose sessions start with packages already imported.

use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use crate::api::permissions::Permissions;
use crate::data::error::Error;
use crate::packages::{LazyStore, PackagePolicy, Preload};

/// Builds an [`Engine`].
///
/// ```no_run
/// use isolet::{Engine, Sandbox};
///
/// # async fn example() -> Result<(), isolet::Error> {
/// let engine = Engine::builder().preload("pydantic")?.build()?;
/// let execution = Sandbox::builder(&engine).build()?.run("pydantic.VERSION").await;
/// # let _ = execution;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EngineBuilder {
    assets: Option<PathBuf>,
    packages: PackagePolicy,
}

impl EngineBuilder {
    /// Sets the directory of the assets.
    ///
    /// Default: the directory that [`find_assets`](crate::find_assets) finds.
    pub fn assets(mut self, dir: impl Into<PathBuf>) -> Self {
        self.assets = Some(dir.into());
        self
    }

    /// Preloads a package, so that every session starts with it imported. The requirement is
    /// `NAME`, or has a version as in `NAME>=2,<3`. Call this once for each package.
    ///
    /// [`build`](Self::build) resolves and fetches the packages and their dependencies, as
    /// [`Session::load_packages`](crate::Session::load_packages) does. It boots an interpreter that
    /// imports them and stores its memory as an image beside the assets. This takes some seconds
    /// and happens once: later engines read the image, and the packages' wheels from the cache. An
    /// `import` of such a package in a session succeeds even if the session's [`Permissions`] do
    /// not allow the package.
    ///
    /// The import of a package runs only once, without network, files or environment. Any state
    /// that a package then derives from entropy is the same in all sessions, except that `random`
    /// and `numpy.random` are seeded anew.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the requirement does not name a package.
    pub fn preload(mut self, requirement: &str) -> Result<Self, Error> {
        self.packages.allow(requirement)?;
        Ok(self)
    }

    /// Uses the package sources of these permissions: wheel directories, the cache, Pyodide's own
    /// packages, offline or not. The packages that the permissions allow are ignored.
    pub fn packages_from(mut self, permissions: &Permissions) -> Self {
        let allowed = std::mem::take(&mut self.packages.allowed);
        self.packages = PackagePolicy { allowed, ..permissions.packages.clone() };
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    ///
    /// As [`Engine::from_assets`], and in addition:
    /// * [`ErrorKind::Packages`](crate::ErrorKind::Packages) if a package cannot be resolved or
    ///   fetched;
    /// * [`ErrorKind::Start`](crate::ErrorKind::Start) if a package cannot be imported, or its
    ///   memory holds something that an image cannot store: JavaScript objects, or functions to
    ///   which `ctypes` gave an address.
    pub fn build(self) -> Result<Engine, Error> {
        let assets = match self.assets {
            Some(dir) => dir,
            None => crate::api::assets::find_assets(None)?,
        };
        Engine::open(&assets, &self.packages, false)
    }
}

/// Resolves the packages to preload.
pub(super) fn resolve(packages: &PackagePolicy, lock_json: &Arc<[u8]>) -> Result<Preload, Error> {
    if packages.allowed.is_empty() {
        return Ok(Preload::default());
    }
    let store = LazyStore::new(packages.clone(), Arc::clone(lock_json));
    Ok(Preload::resolve(store.store()?, store.allowed())?)
}
