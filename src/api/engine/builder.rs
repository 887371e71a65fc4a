//! Makes an [`Engine`]: everything that one is told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::Engine;
use super::image::DamagedImage;
use super::sets::PackageSets;
use crate::api::permissions::Permissions;
use crate::data::error::Error;
use crate::data::isolation::{Confinement, Isolation, Layer, WorkerStart};
use crate::image::PRELOADED_BYTES;
use crate::packages::{Bundle, LazyStore, PackagePolicy, Preload};
use crate::worker::check_event_loop;

/// Builds an [`Engine`].
///
/// ```no_run
/// use isolet::{Engine, Layer, Sandbox};
///
/// # async fn example() -> Result<(), isolet::Error> {
/// let engine = Engine::builder()
///     .preload("pydantic")?
///     .require([Layer::Seccomp, Layer::Landlock])
///     .max_sessions(200)
///     .build()?;
/// let sandbox = Sandbox::builder(&engine).build()?;
/// let execution = sandbox.run("import pydantic; pydantic.VERSION").await?;
/// # let _ = execution;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct EngineBuilder {
    pub(super) assets: Option<PathBuf>,
    /// The directory of the image without packages.
    pub(super) image_home: Option<PathBuf>,
    pub(super) images: Option<PathBuf>,
    pub(super) damaged_image: DamagedImage,
    pub(super) packages: PackagePolicy,
    pub(super) bundle: Option<Bundle>,
    /// Whether sessions start from images of the bundle's sets, and whether these are made.
    pub(super) set_images: SetImages,
    pub(super) confines_preloaded: bool,
    pub(super) import_time: Duration,
    pub(super) confinement: Confinement,
    pub(super) max_sessions: usize,
    pub(super) spare_sessions: usize,
    /// Reads what workers send, as far as it can.
    pub(super) event_loop: Option<Handle>,
    pub(super) on_notice: OnNotice,
}

/// What becomes of the images of a bundle's sets of packages. See
/// [`EngineBuilder::bundle`](EngineBuilder::bundle).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetImages {
    /// Sessions start from images that are there.
    #[default]
    Use,
    /// A process of low priority makes those that are missed, once the packages are imported for
    /// the first time.
    Make,
    /// Sessions import the packages themselves.
    Ignore,
}

/// What to call with sentences for a person.
#[derive(Clone, Default)]
pub(super) struct OnNotice(Option<Arc<Tell>>);

type Tell = dyn Fn(&str) + Send + Sync;

impl OnNotice {
    pub(super) fn tell(&self, text: &str) {
        if let Some(call) = &self.0 {
            call(text);
        }
    }
}

impl fmt::Debug for OnNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a function" } else { "none" })
    }
}

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            assets: None,
            image_home: None,
            images: None,
            damaged_image: DamagedImage::default(),
            packages: PackagePolicy::default(),
            bundle: None,
            set_images: SetImages::default(),
            confines_preloaded: false,
            import_time: Self::IMPORT_TIME,
            confinement: Confinement::default(),
            max_sessions: Engine::DEFAULT_MAX_SESSIONS,
            spare_sessions: Engine::DEFAULT_SPARE_SESSIONS,
            event_loop: None,
            on_notice: OnNotice::default(),
        }
    }
}

impl EngineBuilder {
    /// The maximum size of the images with packages in [their directory](Self::images) together,
    /// in bytes: 2 GiB.
    pub const IMAGES_BYTES: u64 = PRELOADED_BYTES;

    /// The default of [`max_import_time`](Self::max_import_time): 5 minutes, many times what the
    /// largest sets of packages take on a busy machine.
    pub const IMPORT_TIME: Duration = Duration::from_mins(5);

    /// Sets the directory of the assets.
    ///
    /// Default: the directory that [`find_assets`](crate::find_assets) finds. If files are missing
    /// in that one, and the variable `ISOLET_ASSETS` does not name it, [`build`](Self::build)
    /// fetches them with the feature `fetch`, as the command does: by npm or over HTTPS, from the
    /// source in the variable `ISOLET_ASSETS_URL` if it is set. Each has to have its sha256.
    pub fn assets(mut self, dir: impl Into<PathBuf>) -> Self {
        self.assets = Some(dir.into());
        self
    }

    /// Sets the directory of images with [preloaded](Self::preload) packages. Default: `images` in
    /// the user's cache directory for isolet, such as `~/.cache/isolet/images`.
    ///
    /// The images in it have together at most [`IMAGES_BYTES`](Self::IMAGES_BYTES). Beyond that,
    /// those that were not used for the longest time are removed.
    pub fn images(mut self, dir: impl Into<PathBuf>) -> Self {
        self.images = Some(dir.into());
        self
    }

    /// Sets the directory of the image without packages.
    #[cfg_attr(
        not(feature = "engine"),
        expect(dead_code, reason = "programs make images for others")
    )]
    pub(super) fn image_home(mut self, dir: PathBuf) -> Self {
        self.image_home = Some(dir);
        self
    }

    /// Replaces an image that is damaged, or that other users could have written. Default: such an
    /// image is an error.
    pub fn replace_damaged_image(mut self) -> Self {
        self.damaged_image = DamagedImage::Replace;
        self
    }

    /// Imports this package in every session before it starts: `NAME`, or with a version as in
    /// `NAME>=2,<3`. Or a module of a package, by its dotted name as in `sklearn.linear_model`, for
    /// packages that import little of themselves. Call it once for each.
    ///
    /// [`build`](Self::build) resolves and fetches the packages with all that they require, as
    /// [`Session::load_packages`](crate::Session::load_packages) does. It boots an interpreter that
    /// imports them and stores its memory as an image in the directory of [`images`](Self::images).
    /// This takes some seconds and happens once: later engines read the image, and the wheels from
    /// the package cache. An `import` in a session finds the package, whatever the session's
    /// [`Permissions`] say. If the packages cannot be kept in an image, that is remembered there.
    ///
    /// The code that a package runs when it is imported runs once, without network, files or
    /// environment. State that it draws from entropy then is the same in all sessions; `random` and
    /// `numpy.random` are seeded anew.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if this is no requirement of a package by
    /// its name.
    pub fn preload(mut self, requirement: &str) -> Result<Self, Error> {
        self.packages.preload(requirement)?;
        Ok(self)
    }

    /// Lets sandboxes import the packages of this bundle without further permission, unless theirs
    /// [forbid](Permissions::forbid_bundle) it. [Preloaded](Self::preload) packages come from it,
    /// too. Default: none.
    ///
    /// The packages are trusted as the host's own code is. An `import` loads one, with what it
    /// needs, from the bundle's directory. If the first
    /// code of a session imports packages of one of the bundle's [sets](Bundle::sets), the session
    /// gets an interpreter of an image that has imported them, if there is one:
    /// [`set_images`](Self::set_images).
    pub fn bundle(mut self, bundle: Bundle) -> Self {
        self.packages.bundle = Some(bundle.clone());
        self.bundle = Some(bundle);
        self
    }

    /// Sets what becomes of the images of the [bundle's](Self::bundle) sets. Default:
    /// [`SetImages::Use`].
    ///
    /// They are in the directory of [`images`](Self::images). No session starts from one if its
    /// sandbox has an audit log, less than 512 MiB of memory, or environment variables that the
    /// packages read when they are imported, such as `MPLBACKEND`.
    pub fn set_images(mut self, what: SetImages) -> Self {
        self.set_images = what;
        self
    }

    /// Returns the sets of packages that sessions of the engine may move to.
    pub(super) fn sets(&self) -> Option<Arc<PackageSets>> {
        let bundle = self.bundle.clone()?;
        let is_plain = self.packages.allowed.is_empty() && self.packages.modules.is_empty();
        if !is_plain || self.set_images == SetImages::Ignore {
            return None;
        }
        let builder =
            Self { set_images: SetImages::Ignore, on_notice: OnNotice::default(), ..self.clone() };
        let makes_images = self.set_images == SetImages::Make;
        let on_notice = self.on_notice.clone();
        Some(Arc::new(PackageSets::new(bundle, builder, makes_images, on_notice)))
    }

    /// Sets how long [preloaded](Self::preload) packages may take when an image is made that has
    /// imported them: what they do when they are imported, and compiling them. Default:
    /// [`IMPORT_TIME`](Self::IMPORT_TIME). Resolving and fetching them does not count.
    ///
    /// [`build`](Self::build) then fails with [`ErrorKind::Limit`](crate::ErrorKind::Limit). Unlike
    /// other reasons why there is no image, this one is not remembered.
    pub fn max_import_time(mut self, time: Duration) -> Self {
        self.import_time = time;
        self
    }

    /// Trusts [preloaded](Self::preload) packages no further than guests. Default: a thread of this
    /// process imports them, and workers are copied from a process that has booted with them.
    ///
    /// With [`Isolation::Process`] a worker imports them for the image, locked down like that of a
    /// session, and sessions are locked down before they use what the packages have written to the
    /// image. A further session then takes as long as the first one. A
    /// [sandbox](crate::SandboxBuilder::isolation) of the engine cannot change to
    /// [`Isolation::Thread`]: its sessions fail with
    /// [`ErrorKind::Config`](crate::ErrorKind::Config).
    ///
    /// With [`Isolation::Thread`] the packages are imported on a thread, as a guest would run.
    ///
    /// A package that prints something when it is imported is refused with
    /// [`ErrorKind::Start`](crate::ErrorKind::Start), because sessions would miss it.
    pub fn confine_preloaded(mut self) -> Self {
        self.confines_preloaded = true;
        self
    }

    /// Takes packages from the sources of these permissions: directories of wheels, the cache,
    /// Pyodide's own packages, offline or not. The packages that they allow do not matter.
    pub fn packages_from(self, permissions: &Permissions) -> Self {
        let PackagePolicy { allowed, modules, bundle, .. } = self.packages.clone();
        let sources = permissions.packages.clone();
        self.packages(PackagePolicy { allowed, modules, bundle, ..sources })
    }

    /// Sets the packages to preload, and their sources.
    pub(super) fn packages(mut self, packages: PackagePolicy) -> Self {
        self.bundle.clone_from(&packages.bundle);
        self.packages = packages;
        self
    }

    /// Sets where sessions run. Default: [`Isolation::Process`] on Linux, [`Isolation::Thread`]
    /// elsewhere.
    ///
    /// [`SandboxBuilder::isolation`](crate::SandboxBuilder::isolation) sets it for one sandbox.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.confinement.isolation = isolation;
        self
    }

    /// Sets the program that workers are made of: the command `isolet`, or a program whose `main`
    /// begins with [`init`](crate::init). It has to be of exactly this version.
    ///
    /// Default: this program if its `main` begins with [`init`](crate::init), else the file
    /// `isolet` beside it, else the one in `PATH`.
    pub fn worker(mut self, program: impl Into<PathBuf>) -> Self {
        self.confinement.worker = Some(program.into());
        self
    }

    /// Sets how the processes of workers start. Default: [`WorkerStart::Fork`].
    pub fn worker_start(mut self, start: WorkerStart) -> Self {
        self.confinement.worker_start = start;
        self
    }

    /// Sets the niceness of worker processes relative to this one (`nice(2)`), 0 to 19, so that a
    /// busy server is scheduled before its guests. Higher values count as 19. Default: 0.
    ///
    /// While processors are busy, a worker with 5 gets a third of the processor time that this
    /// process gets, and one with 10 a tenth. This helps servers whose guests compute, or whose
    /// workers end all at once.
    pub fn worker_niceness(mut self, niceness: u8) -> Self {
        self.confinement.worker_niceness = niceness;
        self
    }

    /// Reads worker sockets on this tokio runtime instead of on threads. A call that runs on the
    /// runtime then gets its result without waking another thread. Default: threads read, and wake
    /// the runtime.
    ///
    /// Threads still do what takes time: requests for files and the network, standard input, and
    /// reading from workers that send much. When the runtime ends, threads read everything. While
    /// the runtime is blocked, results and output wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the runtime was built without I/O or
    /// time.
    pub fn event_loop(mut self, runtime: Handle) -> Result<Self, Error> {
        check_event_loop(&runtime)?;
        self.event_loop = Some(runtime);
        Ok(self)
    }

    /// Sets whether an isolate spins for 20 to 300 µs before it sleeps. Default: yes.
    ///
    /// Spinning saves the 20 to 50 µs that waking a thread takes at the start of a run, and costs
    /// processor time at each wait. A server whose sessions share busy processors does more runs
    /// without it.
    pub fn busy_wait(mut self, busy: bool) -> Self {
        self.confinement.busy_wait = busy;
        self
    }

    /// Adds layers of isolation that must be in force: a session that would run without one of them
    /// does not start, and the error names the layer. Default: none.
    ///
    /// [`SandboxBuilder::require`](crate::SandboxBuilder::require) adds more for one sandbox.
    pub fn require(mut self, layers: impl IntoIterator<Item = Layer>) -> Self {
        self.confinement.required.extend(layers);
        self
    }

    /// Sets the maximum number of open sessions, counted across all clones of the engine. A session
    /// more is refused with [`ErrorKind::Limit`](crate::ErrorKind::Limit). Default: 1000.
    ///
    /// A session takes a thread and some megabytes: see `docs/performance.md`.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets how many interpreters are kept ready of each kind of worker that is used repeatedly.
    /// Default: 2.
    ///
    /// From the third session of a kind on, workers are copies of a process that has booted.
    /// Copying takes milliseconds, and a session that takes a spare copy does not wait for it. A
    /// copy that was taken is replaced in the background. Each takes as much memory as an idle
    /// session, until the engine ends. [`Engine::prewarm`] asks for more.
    ///
    /// There are none of [forkable](crate::SandboxBuilder::forkable) sessions, with
    /// [`Isolation::Thread`], with [`WorkerStart::Fresh`] and with
    /// [`confine_preloaded`](Self::confine_preloaded).
    pub fn spare_sessions(mut self, sessions: usize) -> Self {
        self.spare_sessions = sessions;
        self
    }

    /// Calls a function with sentences for the person who runs the program, while the engine is
    /// built: Pyodide's files are fetched, the image cannot be stored, so that every start makes it
    /// again, or another process that makes it does not come to an end. Default: they are not told;
    /// [`Engine::image_notice`] has the second one.
    pub fn on_notice(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_notice = OnNotice(Some(Arc::new(tell)));
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Assets`](crate::ErrorKind::Assets) if a file that is needed is missing and
    ///   cannot be fetched, or differs from the expected one, with its path and both digests; or if
    ///   other users could have written the image.
    /// * [`ErrorKind::Packages`](crate::ErrorKind::Packages) if a package cannot be resolved or
    ///   fetched.
    /// * [`ErrorKind::Start`](crate::ErrorKind::Start) if there is no image and none can be made: a
    ///   package cannot be imported, or leaves something in memory that an image cannot hold
    ///   (objects of JavaScript, functions that `ctypes` gave an address).
    /// * [`ErrorKind::Limit`](crate::ErrorKind::Limit) if there is no image and the packages take
    ///   longer than [`max_import_time`](Self::max_import_time).
    /// * [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no image, isolet was built
    ///   without the feature `engine`, and there is no worker program to make the image.
    pub fn build(self) -> Result<Engine, Error> {
        Engine::open(self)
    }
}

/// Resolves the packages to preload.
pub(super) fn resolve(packages: &PackagePolicy, lock_json: &Arc<[u8]>) -> Result<Preload, Error> {
    if packages.allowed.is_empty() && packages.modules.is_empty() {
        return Ok(Preload::default());
    }
    let store = LazyStore::new(packages.clone(), Arc::clone(lock_json));
    Ok(Preload::resolve(store.store()?, store.allowed(), &packages.modules)?)
}
