//! Makes an [`Engine`] whose sessions have packages from the start.

use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use crate::api::permissions::Permissions;
use crate::data::error::Error;
use crate::packages::{LazyStore, PackagePolicy, Preload};

/// Makes an [`Engine`].
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
    /// By default it is what [`find_assets`](crate::find_assets) finds.
    pub fn assets(mut self, dir: impl Into<PathBuf>) -> Self {
        self.assets = Some(dir.into());
        self
    }

    /// Has every session start with this package imported: `NAME`, or with a version as in
    /// `NAME>=2,<3`. It may be called for several.
    ///
    /// [`build`](Self::build) resolves and fetches them with all that they require, as
    /// [`Session::load_packages`](crate::Session::load_packages) does, boots an interpreter that
    /// imports them, and keeps its memory as an image beside the assets, which takes some seconds
    /// and happens once; later an engine reads that, and the packages' wheels from the cache. An
    /// `import` in a session then finds what is there already, whatever its [`Permissions`] say of
    /// packages.
    ///
    /// What a package does when it is imported, it does once, without network, files or
    /// environment. A state of its own that it draws from entropy then is the same in all sessions;
    /// `random` and `numpy.random` are seeded anew.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if it is no requirement of a package by its
    /// name.
    pub fn preload(mut self, requirement: &str) -> Result<Self, Error> {
        self.packages.allow(requirement)?;
        Ok(self)
    }

    /// Takes packages from where these permissions do: directories of wheels, the cache, Pyodide's
    /// own, offline or not. Which they allow does not matter.
    pub fn packages_from(mut self, permissions: &Permissions) -> Self {
        let allowed = std::mem::take(&mut self.packages.allowed);
        self.packages = PackagePolicy { allowed, ..permissions.packages.clone() };
        self
    }

    /// Makes the engine.
    ///
    /// # Errors
    ///
    /// As [`Engine::from_assets`], and [`ErrorKind::Packages`](crate::ErrorKind::Packages) if a
    /// package cannot be resolved or fetched; [`ErrorKind::Start`](crate::ErrorKind::Start) if one
    /// cannot be imported, or has something in memory that an image cannot hold: objects of
    /// JavaScript, functions that `ctypes` gave an address.
    pub fn build(self) -> Result<Engine, Error> {
        let assets = match self.assets {
            Some(dir) => dir,
            None => crate::api::assets::find_assets(None)?,
        };
        Engine::open(&assets, &self.packages, false)
    }
}

/// Finds the packages that are to be preloaded.
pub(super) fn resolve(packages: &PackagePolicy, lock_json: &Arc<[u8]>) -> Result<Preload, Error> {
    if packages.allowed.is_empty() {
        return Ok(Preload::default());
    }
    let store = LazyStore::new(packages.clone(), Arc::clone(lock_json));
    Ok(Preload::resolve(store.store()?, store.allowed())?)
}
