//! The engine: what all sessions of a process share, and how many of them there may be.

mod builder;
mod interpreters;
pub(crate) mod pool;
pub(crate) mod ready;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use isolet_pyodide_assets::Assets;

use self::interpreters::Interpreters;
use self::pool::Pool;
use self::ready::InterpreterKind;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{Confinement, Isolation, Layer};
use crate::data::limits::Limits;
use crate::isolate::{Source, lost_threads};
use crate::packages::{PackagePolicy, Preload};
use crate::protocol::codec;
pub use builder::EngineBuilder;

/// V8 and a verified Pyodide, shared by everything that runs in the process.
///
/// Expensive to make, cheap to clone. Making one reads and verifies the image that sessions start
/// from. If there is none for these assets, it reads and verifies them and builds it, which takes
/// several seconds and happens once.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    confinement: Confinement,
    max_sessions: usize,
}

struct Inner {
    lock_json: Arc<[u8]>,
    assets_dir: PathBuf,
    preload: Preload,
    open_sessions: AtomicUsize,
    pool: Arc<Pool>,
    interpreters: Arc<Interpreters>,
}

/// One of the sessions that an engine may have open.
pub(crate) struct Slot(Arc<Inner>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_sessions.fetch_sub(1, Ordering::Relaxed);
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
        Self::from_assets(crate::api::assets::find_assets(None)?)
    }

    /// Makes an engine of the assets in `dir`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Assets`] if a file that is needed is missing or not exactly the one that is
    /// expected, with its path and both digests, or if others may have written the image;
    /// [`ErrorKind::Start`] if there is none and it cannot be built.
    pub fn from_assets(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open(dir.as_ref(), &PackagePolicy::default(), false)
    }

    /// Starts to make an engine that has packages preloaded.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Makes an engine of the assets in `dir`, and a new image if the one there cannot be used.
    ///
    /// # Errors
    ///
    /// As [`from_assets`](Self::from_assets), but for the image.
    pub fn prepare_assets(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open(dir.as_ref(), &PackagePolicy::default(), true)
    }

    fn open(dir: &Path, preload: &PackagePolicy, replace_damaged: bool) -> Result<Self, Error> {
        let wrong =
            |error: isolet_pyodide_assets::Error| Error::new(ErrorKind::Assets, error.to_string());
        let lock_json = Assets::open_lock_json(dir).map_err(wrong)?;
        let preload = builder::resolve(preload, &lock_json)?;
        let source = Source::open(dir, &preload, replace_damaged)?;
        let interpreters = Arc::new(Interpreters::new(source));
        let pool = Pool::new({
            let interpreters = Arc::clone(&interpreters);
            Arc::new(move |kind| Arc::clone(&interpreters).boot(kind).boxed())
        });
        let inner = Arc::new(Inner {
            lock_json,
            assets_dir: dir.to_path_buf(),
            preload,
            open_sessions: AtomicUsize::new(0),
            pool,
            interpreters,
        });
        let confinement = Confinement::default();
        Ok(Self { inner, confinement, max_sessions: Self::DEFAULT_MAX_SESSIONS })
    }

    /// Returns how many threads of killed sessions have not ended, in this process.
    ///
    /// V8 has steps that nothing interrupts, so that a thread in one of them may never end. The run
    /// that it was killed in has returned, and the host does nothing for it any more; but it takes
    /// processor time and the memory of its session. From eight on no further session gets a
    /// thread. With [`Isolation::Process`] there are none.
    #[must_use]
    pub fn lost_threads() -> usize {
        lost_threads()
    }

    /// Returns the directory that the assets were read from.
    #[must_use]
    pub fn assets_dir(&self) -> &Path {
        &self.inner.assets_dir
    }

    /// Returns where the memory image is stored, if it could be.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        self.inner.interpreters.source.path()
    }

    /// Returns this engine with another default of where sessions run,
    /// [`SandboxBuilder::isolation`](crate::SandboxBuilder::isolation).
    ///
    /// At first that is [`Isolation::Process`] on Linux, and [`Isolation::Thread`] elsewhere.
    #[must_use]
    pub fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.confinement.isolation = isolation;
        self
    }

    /// Returns this engine with another default of the program that workers are made of,
    /// [`SandboxBuilder::worker`](crate::SandboxBuilder::worker).
    ///
    /// At first it is this program itself if its `main` begins with [`init`](crate::init), else a
    /// file `isolet` beside it, else the one in `PATH`.
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

    /// Returns this engine with another answer to whether each worker is a program started anew.
    ///
    /// At first it is not: from the third session of a kind on, its worker is a copy (`fork`) of a
    /// process that has booted an interpreter and runs nobody's code. It starts in milliseconds and
    /// shares the memory that it does not write to. But all these workers have their code and data
    /// at the same addresses, and share their namespaces: what code that took V8 over learns of
    /// that in one session is true in another.
    #[must_use]
    pub fn with_fresh_workers(mut self, fresh: bool) -> Self {
        self.confinement.fresh_workers = fresh;
        self
    }

    /// Returns this engine with another limit of the sessions that it may have open, those of its
    /// clones included. One more is refused with [`ErrorKind::Limit`].
    ///
    /// At first that is 1000; each takes a thread and tens of megabytes.
    #[must_use]
    pub fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Keeps so many interpreters booted, for sessions of sandboxes whose isolation is the engine's
    /// and whose limits of memory and values are the default ones; for others there is
    /// [`Sandbox::prewarm`](crate::Sandbox::prewarm).
    ///
    /// Such a session is there in well under a millisecond (docs/performance.md). The little that
    /// it still has to do before its first command happens beside the caller; if that fails, the
    /// first command does, with [`ErrorKind::Start`]. The interpreter that it takes is replaced in
    /// the background; when there is none left, a session boots its own, no more of them at once
    /// than there are processors. Each one that is ready takes as much memory as an idle session.
    /// At first none is kept; with 0 those that are ready are dropped.
    ///
    /// It does not wait: see [`prewarmed`](Self::prewarmed).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] if these are more than the engine may have
    /// [open](Self::with_max_sessions); [`ErrorKind::Start`] if there can be no further thread.
    pub fn prewarm(&self, sessions: usize) -> Result<(), Error> {
        self.keep_ready(&self.kind(), sessions)
    }

    pub(crate) fn keep_ready(&self, kind: &InterpreterKind, sessions: usize) -> Result<(), Error> {
        let limit = self.max_sessions;
        if sessions > limit {
            let message =
                format!("too many sessions to keep ready: limit {limit}, needed {sessions}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.inner.pool.keep(kind, sessions)
    }

    /// Waits until as many interpreters are ready as [`prewarm`](Self::prewarm) was told.
    ///
    /// # Errors
    ///
    /// Why one could not start, as [`Sandbox::session`](crate::Sandbox::session) says.
    pub async fn prewarmed(&self) -> Result<(), Error> {
        self.inner.pool.full(&self.kind()).await
    }

    fn kind(&self) -> InterpreterKind {
        let limits = Limits::default();
        InterpreterKind {
            confinement: self.confinement.clone(),
            memory_bytes: limits.memory_bytes(),
            max_report_bytes: codec::max_report_bytes(limits.value_bytes()),
        }
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

    /// The packages that every session has from the start.
    pub(crate) fn preload(&self) -> &Preload {
        &self.inner.preload
    }

    /// The interpreters that are kept ready.
    pub(crate) fn pool(&self) -> &Pool {
        &self.inner.pool
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("assets_dir", &self.inner.assets_dir).finish_non_exhaustive()
    }
}
