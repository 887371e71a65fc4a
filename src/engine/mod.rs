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
mod heap;
mod image;
mod isolate;
mod loader;
mod ops;
mod pending;
mod platform;
mod relay;
mod trampoline;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use isolet_pyodide_assets::Assets;
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind};
use crate::isolation::{Confinement, Isolation, Layer};
use crate::waist::{Host, Link, ReplySink};
use crate::worker::Blob;
use image::{Damaged, Image};
pub(crate) use isolate::Running;
use isolate::{Parts, SharedWasm};
pub use platform::v8_version;

/// V8 and a verified Pyodide, shared by everything that runs in the process.
///
/// Expensive to make, cheap to clone. Making one reads and verifies the assets and the memory image
/// that sessions start from; the image is built first if there is none for these assets, which takes
/// a few seconds and happens once.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    confinement: Confinement,
    max_sessions: usize,
}

pub(crate) struct Inner {
    files: Files,
    lock_json: Arc<[u8]>,
    assets_dir: PathBuf,
    wasm: SharedWasm,
    image: Image,
    /// The same for workers, once there is one.
    blobs: OnceLock<[Blob; 4]>,
    open_sessions: AtomicUsize,
}

/// One of the sessions that an engine may have open.
pub(crate) struct Slot(Arc<Inner>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an interpreter is made of beside its memory image, verified.
#[derive(Clone)]
pub(crate) struct Files {
    asm_wasm: Bytes,
    asm_mjs: Bytes,
    stdlib_zip: Bytes,
}

impl Files {
    fn new(assets: &Assets) -> Self {
        let bytes = |file: &Arc<[u8]>| Bytes::from_owner(Arc::clone(file));
        Self {
            asm_wasm: bytes(assets.asm_wasm()),
            asm_mjs: bytes(assets.asm_mjs()),
            stdlib_zip: bytes(assets.stdlib_zip()),
        }
    }
}

impl Engine {
    /// Default of [`with_max_sessions`](Self::with_max_sessions).
    pub const DEFAULT_MAX_SESSIONS: usize = 1000;

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
        let inner = Arc::new(Inner {
            files: Files::new(&assets),
            lock_json: Arc::clone(assets.lock_json()),
            assets_dir: dir.to_path_buf(),
            wasm,
            image,
            blobs: OnceLock::new(),
            open_sessions: AtomicUsize::new(0),
        });
        let confinement = Confinement::default();
        Ok(Self { inner, confinement, max_sessions: Self::DEFAULT_MAX_SESSIONS })
    }

    /// Returns the directory that the assets were read from.
    #[must_use]
    pub fn assets_dir(&self) -> &Path {
        &self.inner.assets_dir
    }

    /// Returns where the memory image is stored, if it could be.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        self.inner.image.path()
    }

    /// Returns this engine with another default of where sessions run,
    /// [`SandboxBuilder::isolation`](crate::SandboxBuilder::isolation).
    ///
    /// At first that is [`Isolation::Thread`].
    #[must_use]
    pub fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.confinement.isolation = isolation;
        self
    }

    /// Returns this engine with another default of the program that workers are made of,
    /// [`SandboxBuilder::worker`](crate::SandboxBuilder::worker).
    ///
    /// At first it is a file `isolet` beside this program, else the one in `PATH`.
    #[must_use]
    pub fn with_worker(mut self, program: impl Into<PathBuf>) -> Self {
        self.confinement.worker = Some(program.into());
        self
    }

    /// Returns this engine with another default of what has to be in force,
    /// [`SandboxBuilder::require`](crate::SandboxBuilder::require).
    ///
    /// At first that is nothing.
    #[must_use]
    pub fn with_required(mut self, layers: impl IntoIterator<Item = Layer>) -> Self {
        self.confinement.required = layers.into_iter().collect();
        self
    }

    /// Returns this engine with another limit of the sessions that it may have open, those of its clones
    /// included. One more is refused with [`ErrorKind::Limit`].
    ///
    /// At first that is 1000; each takes a thread and tens of megabytes.
    #[must_use]
    pub fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Takes the place of one session.
    pub(crate) fn take_slot(&self) -> Result<Slot, Error> {
        let slot = Slot(Arc::clone(&self.inner));
        let needed = self.inner.open_sessions.fetch_add(1, Ordering::Relaxed) + 1;
        if needed <= self.max_sessions {
            return Ok(slot);
        }
        let limit = self.max_sessions;
        let message = format!("too many sessions of the engine: limit {limit}, needed {needed}");
        Err(Error::new(ErrorKind::Limit, message))
    }

    pub(crate) fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// What Pyodide's distribution says about packages.
    pub(crate) fn lock_json(&self) -> &Arc<[u8]> {
        &self.inner.lock_json
    }

    /// Starts an isolate on a thread of its own.
    pub(crate) fn spawn(&self, host: Arc<dyn Host>, max_memory_bytes: u64) -> Result<Link, Error> {
        let Inner { files, wasm, image, .. } = &*self.inner;
        let (files, wasm) = (files.clone(), Arc::clone(wasm));
        let parts = Parts { files, wasm, host, max_memory_bytes };
        let (sink, replies) = mpsc::unbounded_channel();
        let sink = Box::new(move |reply| sink.send(reply).is_ok());
        let Running { messages, control } = isolate::spawn(parts, image.clone(), sink)?;
        let messages = Arc::new(move |message| {
            // An isolate that is gone says so by its replies.
            let _ = messages.send(message);
        });
        Ok(Link { messages, replies, control })
    }

    /// What [`start_of_files`] wants in a worker, shared by all workers of this engine.
    pub(crate) fn blobs(&self) -> Result<&[Blob; 4], Error> {
        let Inner { files, image, blobs, .. } = &*self.inner;
        if let Some(blobs) = blobs.get() {
            return Ok(blobs);
        }
        let make = || {
            Ok([
                Blob::new("isolet-wasm", &files.asm_wasm)?,
                Blob::new("isolet-module", &files.asm_mjs)?,
                Blob::new("isolet-stdlib", &files.stdlib_zip)?,
                Blob::new("isolet-image", image.file())?,
            ])
        };
        let new = make().map_err(|error: std::io::Error| {
            let message = format!("the interpreter cannot be put into shared memory: {error}");
            Error::new(ErrorKind::Start, message)
        })?;
        // Another thread may have been quicker.
        Ok(blobs.get_or_init(|| new))
    }
}

/// Starts an isolate of what [`Engine::blobs`] holds, in a process that has no engine.
pub(crate) fn start_of_files(
    [asm_wasm, asm_mjs, stdlib_zip, image]: [Bytes; 4],
    host: Arc<dyn Host>,
    max_memory_bytes: u64,
    replies: ReplySink,
) -> Result<Running, Error> {
    let image = Image::trusted(image).ok_or_else(|| {
        Error::new(ErrorKind::Start, "the memory image is not laid out as an image is")
    })?;
    let files = Files { asm_wasm, asm_mjs, stdlib_zip };
    let wasm = SharedWasm::default();
    isolate::spawn(Parts { files, wasm, host, max_memory_bytes }, image, replies)
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("assets_dir", &self.inner.assets_dir).finish_non_exhaustive()
    }
}
