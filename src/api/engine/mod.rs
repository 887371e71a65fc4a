//! The engine: what all sessions of a process share, and the limit on open sessions.

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

/// V8 and a verified Pyodide, shared by all sessions of the process.
///
/// Expensive to make, cheap to clone. Making an engine reads and verifies the image that sessions
/// start from. If these assets have no image yet, it reads and verifies the assets and builds one.
/// That takes several seconds and happens once.
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

/// A place in the engine's count of open sessions, given back on drop.
pub(crate) struct Slot(Arc<Inner>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine {
    /// The default of [`with_max_sessions`](Self::with_max_sessions).
    pub const DEFAULT_MAX_SESSIONS: usize = 1000;

    /// Makes an engine from the assets that [`find_assets`](crate::find_assets) finds.
    ///
    /// # Errors
    ///
    /// As [`from_assets`](Self::from_assets).
    pub fn new() -> Result<Self, Error> {
        Self::from_assets(crate::api::assets::find_assets(None)?)
    }

    /// Makes an engine from the assets in `dir`.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Assets`] if a required file is missing or does not have the expected digest;
    ///   the error names the path and both digests. Also if other users could have written the
    ///   image.
    /// * [`ErrorKind::Start`] if there is no image and it cannot be built.
    pub fn from_assets(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open(dir.as_ref(), &PackagePolicy::default(), false)
    }

    /// Starts to build an engine with preloaded packages.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Makes an engine from the assets in `dir`, and replaces an image that cannot be used.
    ///
    /// # Errors
    ///
    /// As [`from_assets`](Self::from_assets), except for errors about an existing image.
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

    /// Returns how many threads of killed sessions are still running in this process.
    ///
    /// Some of V8's steps cannot be interrupted, so a thread in one of them may never end. Its run
    /// has returned and the host no longer serves the thread, but the thread still uses processor
    /// time and its session's memory. Once there are eight such threads, no session on a thread can
    /// start. With [`Isolation::Process`] there are none.
    #[must_use]
    pub fn lost_threads() -> usize {
        lost_threads()
    }

    /// Returns the directory that the assets were read from.
    #[must_use]
    pub fn assets_dir(&self) -> &Path {
        &self.inner.assets_dir
    }

    /// Returns the path of the stored memory image; `None` if the image could not be stored.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        self.inner.interpreters.source.path()
    }

    /// Sets where sessions run, unless
    /// [`SandboxBuilder::isolation`](crate::SandboxBuilder::isolation) says otherwise.
    ///
    /// Default: [`Isolation::Process`] on Linux, [`Isolation::Thread`] elsewhere.
    #[must_use]
    pub fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.confinement.isolation = isolation;
        self
    }

    /// Sets the program that workers are started from, unless
    /// [`SandboxBuilder::worker`](crate::SandboxBuilder::worker) says otherwise.
    ///
    /// Default: this program itself if its `main` begins with [`init`](crate::init), else a file
    /// `isolet` in the same directory, else `isolet` on the `PATH`.
    #[must_use]
    pub fn with_worker(mut self, program: impl Into<PathBuf>) -> Self {
        self.confinement.worker = Some(program.into());
        self
    }

    /// Sets the isolation layers that must be in force for a session to start, in place of those
    /// set before. [`SandboxBuilder::require`](crate::SandboxBuilder::require) adds to them.
    ///
    /// Default: none.
    #[must_use]
    pub fn with_required(mut self, layers: impl IntoIterator<Item = Layer>) -> Self {
        self.confinement.required = layers.into_iter().collect();
        self
    }

    /// Sets how workers start: `false` to copy them from a booted process, `true` to start each as
    /// a new program.
    ///
    /// With `false`, from the third session of a kind on, a worker is a copy (`fork`) of a process
    /// that has booted an interpreter and has run no guest code. It starts in milliseconds and
    /// shares all memory that it does not write to. However, all these workers have their code and
    /// data at the same addresses, and share their namespaces. What an attacker who took over V8 in
    /// one session learns of these is true in other sessions too. Default: `false`.
    #[must_use]
    pub fn with_fresh_workers(mut self, fresh: bool) -> Self {
        self.confinement.fresh_workers = fresh;
        self
    }

    /// Sets the maximum number of open sessions, counted across all clones of the engine. Opening
    /// one more fails with [`ErrorKind::Limit`].
    ///
    /// Each session takes a thread and tens of megabytes. Default: 1000.
    #[must_use]
    pub fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Keeps `sessions` interpreters booted and ready. Sandboxes with the engine's isolation and
    /// the default limits of memory and values use them; for others there is
    /// [`Sandbox::prewarm`](crate::Sandbox::prewarm).
    ///
    /// Such a session opens in well under a millisecond (docs/performance.md). The rest of its
    /// start-up happens in the background; if that fails, the session's first command fails with
    /// [`ErrorKind::Start`]. The interpreter that it takes is replaced in the background. If none
    /// is ready, a session boots its own, and at most one per processor boots at a time. Each ready
    /// interpreter takes as much memory as an idle session. A count of 0 drops the ready
    /// interpreters. Default: 0.
    ///
    /// Returns at once; [`prewarmed`](Self::prewarmed) waits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] if `sessions` exceeds the engine's [maximum](Self::with_max_sessions);
    /// [`ErrorKind::Start`] if the thread that boots them cannot start.
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

    /// Waits until the number of interpreters set with [`prewarm`](Self::prewarm) is ready.
    ///
    /// # Errors
    ///
    /// The reason why an interpreter could not start, as for
    /// [`Sandbox::session`](crate::Sandbox::session).
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

    /// Reserves a place for one session.
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

    /// Returns Pyodide's lock file, which lists its packages.
    pub(crate) fn lock_json(&self) -> &Arc<[u8]> {
        &self.inner.lock_json
    }

    /// Returns the packages that every session starts with.
    pub(crate) fn preload(&self) -> &Preload {
        &self.inner.preload
    }

    /// Returns the pool of ready interpreters.
    pub(crate) fn pool(&self) -> &Pool {
        &self.inner.pool
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("assets_dir", &self.inner.assets_dir).finish_non_exhaustive()
    }
}
