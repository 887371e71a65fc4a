//! The engine: V8, Pyodide and the threads they run on. The only module that names either.
//!
//! An isolate is made, used and dropped on one thread of its own ([`isolate`]); nothing of V8 leaves
//! it but the handle to terminate it. All isolates share the compiled WebAssembly module and start
//! from the same memory image ([`image`]).

mod allocator;
mod budget;
mod builtin_ops;
mod control;
mod extension;
mod guarded;
mod heap;
mod image;
mod isolate;
mod loader;
mod ops;
mod pending;
mod platform;
mod trampoline;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolet_pyodide_assets::Assets;

use crate::error::{Error, ErrorKind};
use crate::waist::{Host, Link};
use image::{Damaged, Image};
use isolate::{Parts, SharedWasm};
pub use platform::v8_version;

/// V8 and a verified Pyodide, shared by everything that runs in the process.
///
/// Expensive to make, cheap to clone. Making one reads and verifies the assets and the memory image
/// that sessions start from; the image is built first if there is none for these assets, which takes
/// a few seconds and happens once.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

pub(crate) struct Inner {
    assets: Assets,
    assets_dir: PathBuf,
    wasm: SharedWasm,
    image: Image,
}

impl Engine {
    /// Makes an engine of the assets that [`find_assets`](crate::find_assets) finds.
    ///
    /// # Errors
    ///
    /// As [`from_assets`](Self::from_assets).
    pub fn new() -> Result<Self, Error> {
        Self::from_assets(crate::assets::find_assets(None)?)
    }

    /// Makes an engine of the assets in `dir`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Assets`] if a file is missing or not exactly the one that is expected, with its
    /// path and both digests; [`ErrorKind::Start`] if the memory image cannot be built.
    pub fn from_assets(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open(dir.as_ref(), Damaged::Refuse)
    }

    /// Makes an engine of the assets in `dir`, and a new memory image if the one there is damaged.
    ///
    /// # Errors
    ///
    /// As [`from_assets`](Self::from_assets), but for a damaged image.
    pub fn prepare_assets(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open(dir.as_ref(), Damaged::Replace)
    }

    fn open(dir: &Path, damaged: Damaged) -> Result<Self, Error> {
        let assets =
            Assets::open(dir).map_err(|error| Error::new(ErrorKind::Assets, error.to_string()))?;
        let wasm = SharedWasm::default();
        let image = Image::load_or_build(&assets, dir, &wasm, damaged)?;
        Ok(Self(Arc::new(Inner { assets, assets_dir: dir.to_path_buf(), wasm, image })))
    }

    /// Returns the directory that the assets were read from.
    #[must_use]
    pub fn assets_dir(&self) -> &Path {
        &self.0.assets_dir
    }

    /// Returns where the memory image is stored, if it could be.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        self.0.image.path()
    }

    /// What Pyodide's distribution says about packages.
    pub(crate) fn lock_json(&self) -> &Arc<[u8]> {
        self.0.assets.lock_json()
    }

    /// Starts an isolate on a thread of its own.
    pub(crate) fn spawn(
        &self,
        host: Arc<dyn Host>,
        max_value_bytes: u64,
        max_memory_bytes: u64,
    ) -> Result<Link, Error> {
        let Inner { assets, wasm, image, .. } = &*self.0;
        let parts = Parts {
            assets: assets.clone(),
            wasm: Arc::clone(wasm),
            host,
            max_value_bytes,
            max_memory_bytes,
        };
        isolate::spawn(parts, image.clone())
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("assets_dir", &self.0.assets_dir).finish_non_exhaustive()
    }
}
