//! The engines of a service, one for each set of packages that images have imported.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use isolet::{Engine, EngineBuilder, Error, ErrorKind, Isolation, Permissions};

use super::lock;

/// The memory of a session, in bytes, from which on its packages may come with an image.
pub(crate) const IMAGE_MEMORY_BYTES: u64 = 512 << 20;

/// Makes engines, and shares those that are alike.
pub(crate) struct Engines {
    base: EngineBuilder,
    isolation: Isolation,
    made: Mutex<HashMap<Wanted, Arc<Mutex<Option<Engine>>>>>,
}

/// What distinguishes engines.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) isolation: Isolation,
    /// Packages and modules that the host trusts as its own code.
    pub(super) preload: Vec<String>,
    /// Packages that it trusts no further than a guest.
    pub(super) confined: Vec<String>,
    /// Where packages come from, in words.
    pub(super) sources: String,
}

impl Engines {
    /// Makes engines like `base`, whose isolation is `isolation` unless a policy says otherwise.
    pub(crate) fn new(base: EngineBuilder, isolation: Isolation) -> Self {
        Self { base, isolation, made: Mutex::default() }
    }

    /// Returns where guests run, unless a policy says otherwise.
    pub(super) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns an engine, and makes it if there is none.
    pub(super) fn get(&self, wanted: &Wanted, sources: &Permissions) -> Result<Engine, Error> {
        let place = Arc::clone(lock(&self.made).entry(wanted.clone()).or_default());
        // Who asks for the same engine waits for it.
        let mut place = lock(&place);
        if let Some(engine) = &*place {
            return Ok(engine.clone());
        }
        let mut builder = self.base.clone().isolation(wanted.isolation);
        if !wanted.preload.is_empty() || !wanted.confined.is_empty() {
            builder = builder.packages_from(sources);
        }
        for package in &wanted.preload {
            builder = builder.preload(package)?;
        }
        if !wanted.confined.is_empty() {
            builder = confined(builder, &wanted.confined)?;
        }
        let engine = builder.build()?;
        *place = Some(engine.clone());
        Ok(engine)
    }
}

/// Makes an image with packages, which are trusted no further than a guest.
fn confined(builder: EngineBuilder, packages: &[String]) -> Result<EngineBuilder, Error> {
    let builder = builder.confine_preloaded().replace_damaged_image();
    packages.iter().try_fold(builder, |builder, package| builder.preload(package))
}

/// Whether no image can hold these packages, so that they have to be loaded.
pub(super) fn has_to_load(error: &Error) -> bool {
    error.kind() == ErrorKind::Start
}
