//! The engine: what all sessions of a process share, and the limit on open sessions.

mod builder;
pub(crate) mod checkpointer;
mod image;
pub(crate) mod image_maker;
#[cfg(feature = "engine")]
mod image_worker;
mod interpreters;
pub(crate) mod pool;
pub(crate) mod ready;
mod sets;
pub(crate) mod startup;
mod takers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use isolet_pyodide_assets::Assets;

use self::checkpointer::Checkpointer;
use self::interpreters::Interpreters;
use self::pool::Pool;
use self::ready::InterpreterKind;
use self::sets::PackageSets;
use crate::api::blocking;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{Confinement, Isolation};
use crate::data::limits::Limits;
use crate::image::{ImageLocation, Importer};
use crate::isolate::lost_threads;
use crate::packages::{Bundle, Preload};
use crate::protocol::codec;
use crate::support::cache_dir::cache_dir;
use crate::support::obstacles;
use crate::support::patience::Patience;
use crate::support::signals::outlive_file_size_limit;
pub use builder::{EngineBuilder, SetImages};

/// V8 and a verified Pyodide, shared by all sessions of the process.
///
/// Expensive to make, cheap to clone. Making an engine reads and verifies the image that sessions
/// start from. If these assets have no image yet, it reads and verifies the assets and builds one.
/// That takes several seconds and happens once. So does fetching the assets, 13 MiB, if there are
/// none: see [`EngineBuilder::assets`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    lock_json: Arc<[u8]>,
    assets_dir: PathBuf,
    /// Why the image was not stored.
    unstored: Option<String>,
    preload: Preload,
    bundle: Option<Bundle>,
    sets: Option<Arc<PackageSets>>,
    confinement: Confinement,
    max_sessions: usize,
    spare_sessions: usize,
    open_sessions: AtomicUsize,
    pool: Arc<Pool>,
    interpreters: Arc<Interpreters>,
    checkpointer: Arc<Checkpointer>,
}

/// A place in the engine's count of open sessions, given back on drop.
pub(crate) struct Slot(Arc<Inner>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine {
    /// The default of [`EngineBuilder::max_sessions`].
    pub const DEFAULT_MAX_SESSIONS: usize = 1000;

    /// The default of [`EngineBuilder::spare_sessions`].
    pub const DEFAULT_SPARE_SESSIONS: usize = 2;

    /// Makes an engine with every default of [`EngineBuilder`].
    ///
    /// # Errors
    ///
    /// As [`EngineBuilder::build`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// Starts building an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    #[cfg(feature = "fetch")]
    fn open(options: EngineBuilder) -> Result<Self, Error> {
        use isolet_pyodide_assets::{Authorities, Silent};

        use crate::api::assets::find_assets;
        use crate::support::asset_fetch::{fetch_missing, is_for_a_missing_file};
        use crate::support::cache_dir::is_named;

        if is_named(options.assets.as_deref()) {
            return Self::open_fetched(options);
        }
        let dir = find_assets(None)?;
        match Self::open_fetched(options.clone()) {
            Err(error) if is_for_a_missing_file(&error, &dir) => {
                let tell = |text: &str| options.on_notice.tell(text);
                fetch_missing(&dir, Authorities::default(), &mut Silent, &tell)?;
                Self::open_fetched(options)
            }
            result => result,
        }
    }

    #[cfg(not(feature = "fetch"))]
    fn open(options: EngineBuilder) -> Result<Self, Error> {
        Self::open_fetched(options)
    }

    /// Opens an engine whose assets are there.
    fn open_fetched(options: EngineBuilder) -> Result<Self, Error> {
        match Self::open_or(options, image::open)? {
            Ok(engine) => Ok(engine),
            Err(location) => {
                let message = format!("there is no image at `{}`", location.path().display());
                Err(Error::new(ErrorKind::Start, message))
            }
        }
    }

    /// Opens an engine if there is an image for it. Otherwise returns where it would be.
    fn open_if_made(options: EngineBuilder) -> Result<Result<Self, ImageLocation>, Error> {
        Self::open_or(options, image::find)
    }

    fn open_or(
        mut options: EngineBuilder,
        image: impl FnOnce(&image::ImageSpec<'_>) -> Result<image::Found, Error>,
    ) -> Result<Result<Self, ImageLocation>, Error> {
        outlive_file_size_limit();
        let assets_dir = match options.assets.clone() {
            Some(dir) => dir,
            None => crate::api::assets::find_assets(None)?,
        };
        options.assets = Some(assets_dir.clone());
        let sets = options.sets();
        let lock_json = Assets::open_lock_json(&assets_dir).map_err(Error::of_assets)?;
        let preload = builder::resolve(&options.packages, &lock_json)?;
        let images = match options.images.clone() {
            Some(dir) => dir,
            None if preload.is_empty() => assets_dir.clone(),
            None => cache_dir("images")?,
        };
        let importer = match options.confinement.isolation {
            _ if preload.is_empty() || !options.confines_preloaded => Importer::Owner,
            Isolation::Thread => Importer::GuestThread,
            Isolation::Process => Importer::GuestWorker,
        };
        let home = options.image_home.unwrap_or_else(|| crate::api::assets::image_dir(&assets_dir));
        let image = image(&image::ImageSpec {
            assets: &assets_dir,
            home: &home,
            images: &images,
            preload: &preload,
            packages: &options.packages,
            confinement: &options.confinement,
            importer,
            damaged: options.damaged_image,
            tell: &|text| options.on_notice.tell(text),
            patience: Patience::new(options.import_time, options.packages.given_up.clone()),
        })?;
        let image = match image {
            Ok(image) => image,
            Err(location) => return Ok(Err(location)),
        };
        let unstored = image.why_unstored().map(|reason| {
            let dir = if preload.is_empty() { &home } else { &images };
            unstored(dir, &assets_dir, reason)
        });
        if let Some(text) = &unstored {
            options.on_notice.tell(text);
        }
        let is_confined = importer == Importer::GuestWorker;
        let interpreters = Arc::new(Interpreters::new(image, is_confined, options.event_loop)?);
        let pool = Pool::new({
            let interpreters = Arc::clone(&interpreters);
            Arc::new(move |kind| Arc::clone(&interpreters).boot(kind).boxed())
        });
        let EngineBuilder { bundle, confinement, max_sessions, spare_sessions, .. } = options;
        let inner = Inner {
            lock_json,
            assets_dir,
            unstored,
            preload,
            bundle,
            sets,
            confinement,
            max_sessions,
            spare_sessions,
            open_sessions: AtomicUsize::new(0),
            pool,
            interpreters,
            checkpointer: Arc::default(),
        };
        Ok(Ok(Self { inner: Arc::new(inner) }))
    }

    /// Returns how many threads of killed sessions are still running in this process.
    ///
    /// V8 has steps that nothing interrupts, so that a thread in one of them may never end. The run
    /// that it was killed in has returned, and the host does nothing for it any more; but it takes
    /// processor time and the memory of its session. From eight on no further session gets a
    /// thread. With [`Isolation::Process`](crate::Isolation::Process) there are none.
    #[must_use]
    pub fn lost_threads() -> usize {
        lost_threads()
    }

    /// Returns what of this machine may keep a session from starting, each in a sentence: limits of
    /// this process (`ulimit -v`, `-d`, `-n`, `-u`, `-f`, `pids.max`), memory that cannot be made
    /// executable, system calls and files that are missing. The errors of sessions that do not
    /// start name the same. Empty where nothing is known.
    #[must_use]
    pub fn obstacles() -> Vec<String> {
        obstacles::of_worker().iter().map(ToString::to_string).collect()
    }

    /// Returns the directory that the assets were read from.
    #[must_use]
    pub fn assets_dir(&self) -> &Path {
        &self.inner.assets_dir
    }

    /// Returns the path of the stored memory image; `None` if the image could not be stored.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        self.inner.interpreters.image.path()
    }

    /// Returns why this engine's image, which it has made, could not be stored, and what helps.
    /// Every start makes such an image again.
    #[must_use]
    pub fn image_notice(&self) -> Option<&str> {
        self.inner.unstored.as_deref()
    }

    /// Keeps `sessions` interpreters booted and ready. Sandboxes with the engine's isolation and
    /// the default limits of memory and values use them; for others there is
    /// [`Sandbox::prewarm`](crate::Sandbox::prewarm).
    ///
    /// Such a session opens in well under a millisecond (`docs/performance.md`). The rest of its
    /// start-up happens in the background; if that fails, the session's first command fails with
    /// [`ErrorKind::Start`]. The interpreter that it takes is replaced in the background. If none
    /// is ready, a session boots its own, and at most one per processor boots at a time. Each ready
    /// interpreter takes as much memory as an idle session. A count of 0 drops the ready
    /// interpreters, except [spare ones](EngineBuilder::spare_sessions). Default: 0.
    ///
    /// Returns at once; [`prewarmed`](Self::prewarmed) waits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] if `sessions` exceeds the engine's
    /// [maximum](EngineBuilder::max_sessions); [`ErrorKind::Start`] if the thread that boots them
    /// cannot start.
    pub fn prewarm(&self, sessions: usize) -> Result<(), Error> {
        self.keep_ready(&self.kind(), sessions)
    }

    pub(crate) fn keep_ready(&self, kind: &InterpreterKind, sessions: usize) -> Result<(), Error> {
        let limit = self.inner.max_sessions;
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

    /// Returns the same engine with calls that block.
    #[must_use]
    pub fn blocking(&self) -> blocking::Engine {
        blocking::Engine::new(self.clone())
    }

    fn kind(&self) -> InterpreterKind {
        let limits = Limits::default();
        InterpreterKind {
            confinement: self.inner.confinement.clone(),
            memory_bytes: limits.memory_bytes(),
            max_report_bytes: codec::max_report_bytes(limits.value_bytes()),
            max_copies: None,
        }
    }

    /// Reserves a place for one session.
    pub(crate) fn take_slot(&self) -> Result<Slot, Error> {
        let slot = Slot(Arc::clone(&self.inner));
        let needed = self.inner.open_sessions.fetch_add(1, Ordering::Relaxed) + 1;
        if needed <= self.inner.max_sessions {
            return Ok(slot);
        }
        let limit = self.inner.max_sessions;
        let message = format!("too many sessions of the engine: limit {limit}, needed {needed}");
        Err(Error::new(ErrorKind::Limit, message))
    }

    /// Returns the packages that its sandboxes may import without further permission.
    #[must_use]
    pub fn bundle(&self) -> Option<&Bundle> {
        self.inner.bundle.as_ref()
    }

    pub(crate) fn spare_sessions(&self) -> usize {
        self.inner.spare_sessions
    }

    pub(crate) fn confinement(&self) -> &Confinement {
        &self.inner.confinement
    }

    /// Returns Pyodide's lock file, which lists its packages.
    pub(crate) fn lock_json(&self) -> &Arc<[u8]> {
        &self.inner.lock_json
    }

    /// Returns the packages that every session starts with.
    pub(crate) fn preload(&self) -> &Preload {
        &self.inner.preload
    }

    /// Returns what works for idle sessions.
    pub(crate) fn checkpointer(&self) -> &Arc<Checkpointer> {
        &self.inner.checkpointer
    }

    /// Returns the pool of ready interpreters.
    pub(crate) fn pool(&self) -> &Pool {
        &self.inner.pool
    }
}

/// Says why an image was not stored in a directory, and what helps.
fn unstored(dir: &Path, assets: &Path, reason: &str) -> String {
    let remedy = if dir == assets && cache_dir("images").is_ok() {
        "run `isolet assets prepare` as a user who may write to it, or set ISOLET_ASSETS to a copy"
    } else {
        "set XDG_CACHE_HOME to a directory that this user may write to, and nobody else"
    };
    format!(
        "the memory image cannot be kept in `{}`: {reason}; every start makes it again, which \
         takes seconds; {remedy}",
        dir.display()
    )
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("assets_dir", &self.inner.assets_dir).finish_non_exhaustive()
    }
}
