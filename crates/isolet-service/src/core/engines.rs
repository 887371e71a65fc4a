//! The engines of a service, one for each set of imported packages.
//!
//! The tenant whose request builds an engine is its owner. An owner keeps a number of engines, and
//! the least recently used ones are dropped. If an owner's packages repeatedly take too long to
//! import, it gets no images for a while: its sessions load and import the packages themselves.

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use isolet::{Engine, EngineBuilder, Error, ErrorKind, Isolation, Permissions};

use isolet::internals::lock;

/// The minimum memory of a session, in bytes, for using an image with its packages.
pub const IMAGE_MEMORY_BYTES: u64 = 512 << 20;

/// The maximum number of package sets of one owner.
const KEPT: usize = 16;

/// The number of an owner's images that may take too long before it gets no more.
const MOST_LATE: usize = 3;

/// How long an image that took too long is not tried again.
const LATE_FOR: Duration = Duration::from_hours(1);

/// How often to check whether another thread has finished an engine.
const LOOK: Duration = Duration::from_millis(20);

/// Builds engines, and shares equal ones.
pub struct Engines {
    base: EngineBuilder,
    isolation: Isolation,
    made: Mutex<HashMap<EngineKey, CacheEntry>>,
    late: Mutex<HashMap<String, Vec<Late>>>,
}

/// The conditions under which a sandbox is built.
#[derive(Default)]
pub struct Terms {
    /// The owner of its engine.
    pub owner: String,
    /// The longest time of the imports for an image. Default: as long as code may run.
    pub import_time: Option<Duration>,
    /// Set if packages that sessions load are resolved before there is a session.
    pub resolves: bool,
    /// Set once the request was cancelled.
    pub given_up: Option<Arc<AtomicBool>>,
    /// Dropped when the sandbox is built.
    pub turn: Option<Box<dyn Any + Send>>,
}

impl Terms {
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// The key of an engine.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct EngineKey {
    pub(crate) isolation: Isolation,
    /// Packages and modules that the host trusts like its own code.
    pub(crate) preload: Vec<String>,
    /// Packages that the host trusts no more than a guest.
    pub(crate) confined: Vec<String>,
    /// Packages that sessions load.
    pub(crate) loaded: Vec<String>,
    pub(crate) sources: Sources,
}

/// The sources of packages.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sources {
    pub(crate) wheels: Vec<PathBuf>,
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) offline: bool,
}

struct CacheEntry {
    owner: String,
    used: Instant,
    result: Arc<SharedResult>,
}

/// The result for a set of packages. Reading a finished result does not wait.
#[derive(Default)]
struct SharedResult {
    made: OnceLock<Made>,
    /// Held by the thread that computes the result.
    turn: Mutex<()>,
}

/// The result for a set of packages.
#[derive(Clone)]
enum Made {
    Engine(Engine),
    /// No image: sessions load the packages.
    NoImage,
    /// The packages were resolved and fetched.
    Resolved,
}

/// A set of packages that took too long.
struct Late {
    at: Instant,
    key: EngineKey,
}

impl Engines {
    /// Builds engines like `base`. `isolation` is the default isolation of policies.
    pub fn new(base: EngineBuilder, isolation: Isolation) -> Self {
        Self { base, isolation, made: Mutex::default(), late: Mutex::default() }
    }

    /// Returns the default isolation of policies.
    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns an engine, building it if necessary. `None` if the request was cancelled.
    pub(crate) fn get(
        &self,
        key: &EngineKey,
        sources: &Permissions,
        terms: &Terms,
    ) -> Result<Option<Engine>, Error> {
        let make = || Self::build(key, sources, self.base.clone()).map(Made::Engine);
        Ok(match self.kept(key, terms, make)? {
            Some(Made::Engine(engine)) => Some(engine),
            _ => None,
        })
    }

    /// Returns an engine whose image has imported untrusted packages. `None` if sessions have to
    /// load them, because no image can hold them or importing takes too long.
    pub(crate) fn imported(
        &self,
        key: &EngineKey,
        sources: &Permissions,
        terms: &Terms,
        import_time: Duration,
    ) -> Result<Option<Engine>, Error> {
        let make = || {
            if !self.may_try(&terms.owner, key) {
                return Ok(Made::NoImage);
            }
            let base = self.base.clone().max_import_time(import_time);
            match Self::build(key, sources, base).map(Made::Engine) {
                Err(error) if error.kind() == ErrorKind::Limit => {
                    self.note_late(&terms.owner, key);
                    Ok(Made::NoImage)
                }
                Err(error) if error.kind() == ErrorKind::Start && !terms.is_given_up() => {
                    Ok(Made::NoImage)
                }
                built => built,
            }
        };
        Ok(match self.kept(key, terms, make)? {
            Some(Made::Engine(engine)) => Some(engine),
            _ => None,
        })
    }

    /// Resolves packages that sessions load, unless this was done before.
    pub(crate) fn resolved(
        &self,
        key: &EngineKey,
        terms: &Terms,
        resolve: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.kept(key, terms, || resolve().map(|()| Made::Resolved)).map(drop)
    }

    /// Returns whether an engine exists for these packages, without waiting; `None` if no result
    /// exists yet.
    pub(crate) fn has(&self, key: &EngineKey) -> Option<bool> {
        let result = lock(&self.made).get(key).map(|kept| Arc::clone(&kept.result))?;
        // Other results have no engine.
        result.made.get().map(|made| matches!(made, Made::Engine(_)))
    }

    /// Returns the stored result for a set of packages, or computes it with `make`. `None` if the
    /// request was cancelled.
    fn kept(
        &self,
        key: &EngineKey,
        terms: &Terms,
        make: impl FnOnce() -> Result<Made, Error>,
    ) -> Result<Option<Made>, Error> {
        let result = self.result(key, &terms.owner);
        if let Some(made) = result.made.get() {
            return Ok(Some(made.clone()));
        }
        // Requests for the same packages wait for the first one.
        let Some(_turn) = turn(&result.turn, terms) else { return Ok(None) };
        if let Some(made) = result.made.get() {
            return Ok(Some(made.clone()));
        }
        let fresh = self.shared(make()?);
        Ok(Some(result.made.get_or_init(|| fresh).clone()))
    }

    /// Returns the entry of a set of packages. Drops the least recently used ones of its owner.
    fn result(&self, key: &EngineKey, owner: &str) -> Arc<SharedResult> {
        let mut all = lock(&self.made);
        if let Some(kept) = all.get_mut(key) {
            kept.used = Instant::now();
            return Arc::clone(&kept.result);
        }
        let is_own = |(key, kept): &(&EngineKey, &CacheEntry)| kept.owner == owner && key.may_go();
        while all.iter().filter(is_own).count() >= KEPT {
            let oldest = all.iter().filter(is_own).min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            all.remove(&oldest);
        }
        let result = Arc::<SharedResult>::default();
        let kept = CacheEntry {
            owner: owner.to_owned(),
            used: Instant::now(),
            result: Arc::clone(&result),
        };
        all.insert(key.clone(), kept);
        result
    }

    /// Returns an existing engine with the same image, if there is one: different requirements may
    /// resolve to the same packages.
    fn shared(&self, made: Made) -> Made {
        let Made::Engine(engine) = &made else { return made };
        let Some(path) = engine.image_path().map(PathBuf::from) else { return made };
        for kept in lock(&self.made).values() {
            if let Some(Made::Engine(other)) = kept.result.made.get()
                && other.image_path() == Some(path.as_path())
            {
                return Made::Engine(other.clone());
            }
        }
        made
    }

    fn build(key: &EngineKey, sources: &Permissions, base: EngineBuilder) -> Result<Engine, Error> {
        let mut builder = base.isolation(key.isolation);
        if !key.preload.is_empty() || !key.confined.is_empty() {
            builder = builder.packages_from(sources);
        }
        if !key.confined.is_empty() {
            builder = builder.confine_preloaded().replace_damaged_image();
        }
        for package in key.preload.iter().chain(&key.confined) {
            builder = builder.preload(package)?;
        }
        builder.build()
    }

    /// Returns `true` if building an image for this owner may be tried.
    fn may_try(&self, owner: &str, key: &EngineKey) -> bool {
        let mut late = lock(&self.late);
        let Some(own) = late.get_mut(owner) else { return true };
        own.retain(|late| late.at.elapsed() < LATE_FOR);
        own.len() < MOST_LATE && own.iter().all(|late| late.key != *key)
    }

    fn note_late(&self, owner: &str, key: &EngineKey) {
        let late = Late { at: Instant::now(), key: key.clone() };
        lock(&self.late).entry(owner.to_owned()).or_default().push(late);
    }
}

impl EngineKey {
    /// Returns `true` if it may be dropped when unused. Packages of the operator's configuration
    /// stay.
    fn may_go(&self) -> bool {
        !self.confined.is_empty() || !self.loaded.is_empty()
    }
}

/// Waits for another thread that may be computing the result. `None` if the request was cancelled.
fn turn<'a, T>(mutex: &'a Mutex<T>, terms: &Terms) -> Option<MutexGuard<'a, T>> {
    loop {
        if terms.is_given_up() {
            return None;
        }
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engines() -> Engines {
        Engines::new(Engine::builder(), Isolation::Process)
    }

    fn key(package: usize) -> EngineKey {
        EngineKey {
            isolation: Isolation::Process,
            preload: Vec::new(),
            confined: vec![format!("p{package}")],
            loaded: Vec::new(),
            sources: Sources::default(),
        }
    }

    #[test]
    fn images_that_take_too_long_are_not_tried_again_and_soon_none_of_their_owner_is() {
        let engines = engines();
        for nth in 0..MOST_LATE {
            assert!(engines.may_try("a", &key(nth)));
            engines.note_late("a", &key(nth));
            assert!(!engines.may_try("a", &key(nth)));
        }
        assert!(!engines.may_try("a", &key(MOST_LATE)));
        assert!(engines.may_try("b", &key(0)));
        // After a while they are.
        for late in lock(&engines.late).get_mut("a").unwrap() {
            late.at = late.at.checked_sub(LATE_FOR).unwrap();
        }
        assert!(engines.may_try("a", &key(0)));
    }

    #[test]
    fn an_owner_keeps_so_many_sets_and_those_not_used_for_longest_go() {
        let (engines, terms) = (engines(), Terms { owner: "a".to_owned(), ..Terms::default() });
        let other = Terms { owner: "b".to_owned(), ..Terms::default() };
        let note = |nth, terms: &Terms| {
            engines.kept(&key(nth), terms, || Ok(Made::NoImage)).unwrap().unwrap();
        };
        note(1000, &other);
        for nth in 0..2 * KEPT {
            note(nth, &terms);
            note(0, &terms);
        }
        let all = lock(&engines.made);
        assert_eq!(all.len(), KEPT + 1);
        assert!([0, 1000, 2 * KEPT - 1].iter().all(|nth| all.contains_key(&key(*nth))));
        assert!(!all.contains_key(&key(1)));
    }

    #[test]
    fn who_has_given_up_waits_for_nothing() {
        let (engines, flag) = (engines(), Arc::new(AtomicBool::new(true)));
        let terms = Terms { given_up: Some(flag), ..Terms::default() };
        let result = engines.result(&key(0), "a");
        let _made_by_another = lock(&result.turn);
        let made = engines.kept(&key(0), &terms, || Ok(Made::NoImage));
        assert!(made.ok().unwrap().is_none());
    }

    #[test]
    fn what_is_there_is_found_without_a_turn() {
        let (engines, terms) = (engines(), Terms::default());
        let make = || engines.kept(&key(0), &terms, || Ok(Made::Resolved)).unwrap();
        assert!(make().is_some());
        let result = engines.result(&key(0), "");
        let _held = lock(&result.turn);
        assert!(make().is_some());
        assert_eq!(engines.has(&key(0)), Some(false));
    }
}
