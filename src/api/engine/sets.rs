//! The engines of a bundle's sets: each has an image that has imported the packages of its set.
//! Sessions that have done nothing yet move there when their first code imports such packages.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::builder::OnNotice;
use super::image_maker::{ImageRequest, begin};
use super::{Engine, EngineBuilder};
use crate::api::policy::Policy;
use crate::data::error::Error;
use crate::image::{ImageLocation, Importer};
use crate::packages::{Bundle, PackagePolicy, imported_modules};
use crate::support::lock::lock;
use crate::support::offload;
use crate::worker::find_worker;

/// The minimum memory of a session, in bytes, for starting with the packages of a set.
const MEMORY_BYTES: u64 = 512 << 20;

/// What the names of environment variables begin with that packages read when they are imported. A
/// session that has one imports its packages itself.
const READ_AT_IMPORT: [&str; 10] =
    ["BLAS", "KMP", "MATPLOTLIB", "MPL", "NPY", "NUMPY", "OMP", "OPENBLAS", "PANDAS", "SCIPY"];

/// The sets of an engine's bundle.
pub(super) struct PackageSets {
    bundle: Bundle,
    /// Builds an engine like the one that has the sets.
    builder: EngineBuilder,
    /// Whether images that are missing are made in the background.
    makes_images: bool,
    /// Gets a sentence for a person when making an image begins.
    on_notice: OnNotice,
    states: Vec<Mutex<State>>,
}

#[derive(Default)]
enum State {
    #[default]
    Unopened,
    /// There was no image here when it was looked for, and none has to be asked for any more.
    Missing(Box<ImageLocation>),
    Open(Engine),
    /// Its packages are not as they should be. What imports them says so.
    Unusable,
}

impl PackageSets {
    pub(super) fn new(
        bundle: Bundle,
        builder: EngineBuilder,
        makes_images: bool,
        on_notice: OnNotice,
    ) -> Self {
        let states = bundle.sets().map(|_| Mutex::default()).collect();
        Self { bundle, builder, makes_images, on_notice, states }
    }

    /// Returns which set has what this code imports.
    fn set_for(&self, code: &str) -> Option<usize> {
        let modules = imported_modules(code);
        let packages = modules.iter().filter_map(|module| self.bundle.package_of(module));
        let names: BTreeSet<String> = packages.map(|package| package.name().to_owned()).collect();
        self.bundle.set_for(&names)
    }

    /// Returns the engine of a set, if there is an image of it. Otherwise has one made.
    fn open(&self, number: usize) -> Option<Engine> {
        let mut state = lock(self.states.get(number)?);
        match &*state {
            State::Open(engine) => return Some(engine.clone()),
            State::Unusable => return None,
            State::Missing(location) if !location.path().exists() => return None,
            State::Missing(_) | State::Unopened => {}
        }
        let builder = self.builder_of(number).ok()?;
        *state = match Engine::open_if_made(builder.clone()) {
            Ok(Ok(engine)) => State::Open(engine),
            Ok(Err(location)) => {
                // Without it, sessions import the packages themselves.
                if self.makes_images
                    && location.can_be_made()
                    && Self::begin(&builder, &location).is_ok()
                {
                    self.tell(number);
                }
                State::Missing(Box::new(location))
            }
            Err(_) => State::Unusable,
        };
        match &*state {
            State::Open(engine) => Some(engine.clone()),
            _ => None,
        }
    }

    fn tell(&self, number: usize) {
        let names: Vec<&str> =
            self.bundle.set(number).into_iter().flatten().map(String::as_str).collect();
        self.on_notice.tell(&format!(
            "the session imports its packages itself, which takes seconds; for later ones, an \
             image of {} is being made in the background (`isolet packages prepare` makes all \
             such images)",
            names.join(", ")
        ));
    }

    /// Returns the engine whose image has exactly these packages, each as `NAME VERSION`. Makes the
    /// image if it is not there.
    fn with_packages(&self, packages: &[String]) -> Option<Engine> {
        let name_of = |package: &String| package.split(' ').next().map(str::to_owned);
        let names: BTreeSet<String> = packages.iter().filter_map(name_of).collect();
        let mut sets = self.bundle.sets().zip(0..);
        sets.find_map(|(set, number)| {
            if !set.is_subset(&names) {
                return None;
            }
            let engine = match self.open(number) {
                Some(engine) => engine,
                None => self.builder_of(number).and_then(EngineBuilder::build).ok()?,
            };
            (engine.preload().described() == packages).then_some(engine)
        })
    }

    fn builder_of(&self, number: usize) -> Result<EngineBuilder, Error> {
        let mut builder = self.builder.clone();
        for name in self.bundle.set(number).into_iter().flatten() {
            builder = builder.preload(name)?;
        }
        Ok(builder)
    }

    /// Starts a process that makes the image of a set.
    fn begin(builder: &EngineBuilder, location: &ImageLocation) -> Result<(), Error> {
        let program = find_worker(builder.confinement.worker.as_deref())?;
        let (Some(assets), Some(images)) = (&builder.assets, location.path().parent()) else {
            return Ok(());
        };
        let home = location.without_packages();
        let home = home.path().parent().unwrap_or(Path::new("."));
        let packages: &PackagePolicy = &builder.packages;
        let request = ImageRequest::new(
            assets,
            home,
            images,
            packages,
            Importer::Owner,
            false,
            EngineBuilder::IMPORT_TIME,
        );
        begin(&program, &request.in_background())
    }
}

impl Engine {
    /// Returns the engine for a session that was saved over an image with these packages, each as
    /// `NAME VERSION`: this one, unless its bundle has a set of them.
    pub(crate) async fn for_saved(&self, packages: &[String]) -> Self {
        let Some(sets) = &self.inner.sets else { return self.clone() };
        if packages.is_empty() {
            return self.clone();
        }
        let (sets, packages) = (Arc::clone(sets), packages.to_vec());
        let found = offload::run(true, move || sets.with_packages(&packages)).await;
        found.ok().flatten().unwrap_or_else(|| self.clone())
    }

    /// Returns `true` if a session of this policy may move to the engine of a set.
    pub(crate) fn may_leave(&self, policy: &Policy) -> bool {
        let is_read = |(name, _): &(String, String)| {
            READ_AT_IMPORT.iter().any(|prefix| name.starts_with(prefix))
        };
        self.inner.sets.is_some()
            && policy.packages.bundle().is_some()
            && policy.limits.memory_bytes() >= MEMORY_BYTES
            && !policy.env.iter().any(is_read)
            && !policy.audit.is_set()
    }

    /// Returns the engine that a session moves to before it runs this code, if it
    /// [may](Self::may_leave) and has run none yet.
    pub(crate) async fn for_code(&self, code: &str) -> Option<Self> {
        let sets = self.inner.sets.as_ref()?;
        let number = sets.set_for(code)?;
        // Another thread may be reading the image, which takes a while.
        if let Ok(state) = sets.states.get(number)?.try_lock()
            && let State::Open(engine) = &*state
        {
            return Some(engine.clone());
        }
        let sets = Arc::clone(sets);
        offload::run(true, move || sets.open(number)).await.ok().flatten()
    }
}
