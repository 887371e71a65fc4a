//! The package store: resolves from the owner's directories, the cache, the package index and
//! Pyodide.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use isolet_pyodide_assets::{Authorities, Digest, DownloadError, Wanted};

use super::Resolution;
use super::bundle::Bundle;
use super::cache::{Cache, FORM};
use super::directory::{self, Candidate};
use super::error::PackageError;
use super::interpreter::{ABI, PLATFORM, PYTHON};
use super::local::{self, Local};
use super::lock::Lock;
use super::pip::Pip;
use super::requirement::Requirement;
use super::wheel::Wheel;
use crate::support::lock::lock;
use crate::support::patience::GivenUp;

/// The maximum number of requirements that are resolved together.
const MAX_REQUIREMENTS: usize = 1000;

/// Fetches files of Pyodide's distribution into a directory. They are compared with the lock.
pub(crate) type Fetch = Arc<dyn Fn(&[Wanted], &Path) -> Result<(), DownloadError> + Send + Sync>;

/// The sources of a store.
#[derive(Clone, Default)]
pub(crate) struct StoreOptions {
    /// Directories of wheels. Packages in them take precedence over all other sources. They are
    /// read once. Default: none.
    pub(crate) wheels: Vec<PathBuf>,
    /// Wheels that stand after these directories, and before all other sources. Default: none.
    pub(crate) bundle: Option<Bundle>,
    /// A directory with the files of Pyodide's distribution. Default: none.
    pub(crate) pyodide_packages: Option<PathBuf>,
    /// Fetches files that this directory lacks. Default: nothing is fetched.
    pub(crate) fetch: Option<Fetch>,
    /// The Python whose pip queries the package index. Default: `python3`.
    pub(crate) python: Option<PathBuf>,
    /// Certificate authorities that pip trusts, too. Default: none.
    pub(crate) authorities: Authorities,
    /// Set once nobody waits for the packages any more. Default: never.
    pub(crate) given_up: GivenUp,
    /// Set to neither run pip nor fetch anything. Default: `false`.
    pub(crate) offline: bool,
}

/// Resolves requirements to verified wheels. Clones share all state.
#[derive(Clone)]
pub(crate) struct PackageStore(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) cache: Cache,
    pub(super) lock: Lock,
    lock_digest: Digest,
    pub(super) options: StoreOptions,
    pub(super) pip: Pip,
    directories: OnceLock<Vec<Arc<Candidate>>>,
    /// For each module, the distributions known to contain it. `None` until the cache is read.
    pub(super) imports: Mutex<Option<BTreeMap<String, BTreeSet<String>>>>,
    open: Mutex<HashMap<Digest, Weak<Wheel>>>,
}

impl PackageStore {
    /// Makes a store with its cache in this directory, and with the bytes of `pyodide-lock.json`.
    ///
    /// # Errors
    ///
    /// Fails if the lock cannot be used.
    pub(crate) fn new(
        cache: PathBuf,
        lock_json: &[u8],
        options: StoreOptions,
    ) -> Result<Self, PackageError> {
        Ok(Self(Arc::new(Inner {
            cache: Cache::new(cache),
            lock: Lock::parse(lock_json)?,
            lock_digest: Digest::of(lock_json),
            pip: Pip::new(
                options.python.clone(),
                options.authorities.clone(),
                options.given_up.clone(),
            ),
            options,
            directories: OnceLock::new(),
            imports: Mutex::default(),
            open: Mutex::default(),
        })))
    }

    /// Resolves the requirements with all dependencies, then fetches and opens the wheels. The same
    /// requirements resolve to the same wheels until the cache is cleared. Blocks, for minutes if
    /// the package index is slow.
    ///
    /// # Errors
    ///
    /// Fails if no packages meet the requirements, a source cannot be used, or a wheel is invalid.
    pub(crate) fn resolve(&self, requirements: &[Requirement]) -> Result<Resolution, PackageError> {
        let mut texts = BTreeMap::new();
        for requirement in requirements {
            texts.insert(requirement.to_string(), requirement.clone());
        }
        if texts.len() > MAX_REQUIREMENTS {
            let reason = format!("limit {MAX_REQUIREMENTS} requirements, has {}", texts.len());
            return Err(PackageError::Unresolved { wanted: "the requirements".into(), reason });
        }
        if texts.is_empty() {
            return Ok(Resolution::default());
        }
        if let Some(wheels) = self.0.bundled(&texts)? {
            return Ok(Resolution { wheels });
        }
        let key = self.0.key(texts.keys())?;
        if let Some(wheels) = self.0.recorded(key)? {
            return Ok(Resolution { wheels });
        }
        let requirements: Vec<Requirement> = texts.into_values().collect();
        let mut wheels = self.0.resolve_afresh(&requirements)?;
        wheels.sort_by(|a, b| a.name().cmp(b.name()));
        self.0.cache.put_record(key, &wheels)?;
        self.0.learn(&wheels);
        Ok(Resolution { wheels })
    }
}

impl fmt::Debug for PackageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackageStore").field("cache", &self.0.cache).finish_non_exhaustive()
    }
}

impl Inner {
    /// Returns the wheels of the owner's directories, best first.
    pub(super) fn directories(&self) -> Result<&[Arc<Candidate>], PackageError> {
        if let Some(candidates) = self.directories.get() {
            return Ok(candidates);
        }
        let candidates = directory::scan(&self.options.wheels)?;
        let candidates = candidates.into_iter().map(Arc::new);
        let bundled = self.options.bundle.iter().flat_map(Bundle::candidates);
        let candidates = candidates.chain(bundled.cloned()).collect();
        Ok(self.directories.get_or_init(|| candidates))
    }

    /// Resolves requirements from the bundle alone, if it has all that they need. Directories go
    /// before it.
    fn bundled(
        &self,
        requirements: &BTreeMap<String, Requirement>,
    ) -> Result<Option<Vec<Arc<Wheel>>>, PackageError> {
        let Some(bundle) = self.options.bundle.as_ref().filter(|_| self.options.wheels.is_empty())
        else {
            return Ok(None);
        };
        let requirements: Vec<Requirement> = requirements.values().cloned().collect();
        let Local::Complete(chosen) = local::resolve(&requirements, bundle)? else {
            return Ok(None);
        };
        chosen.iter().map(|one| self.open_bundled(one)).collect::<Result<_, _>>().map(Some)
    }

    /// Opens a wheel of the bundle, or returns it if it is already open.
    pub(super) fn open_bundled(&self, candidate: &Candidate) -> Result<Arc<Wheel>, PackageError> {
        if let Some(wheel) = self.opened(candidate.digest) {
            return Ok(wheel);
        }
        let (file_name, digest) = (&candidate.file_name, candidate.digest);
        Ok(self.note_open(Wheel::unchanged(file_name, candidate.bytes()?, digest)?))
    }

    /// Opens a wheel, or returns it if it is already open. The bytes must have this digest.
    pub(super) fn open(
        &self,
        file_name: &str,
        digest: Digest,
        bytes: &Arc<[u8]>,
    ) -> Result<Arc<Wheel>, PackageError> {
        if let Some(wheel) = self.opened(digest) {
            return Ok(wheel);
        }
        Ok(self.note_open(Wheel::of_digest(file_name, Arc::clone(bytes), digest)?))
    }

    fn note_open(&self, wheel: Wheel) -> Arc<Wheel> {
        let wheel = Arc::new(wheel);
        let mut open = lock(&self.open);
        open.retain(|_, wheel| wheel.strong_count() > 0);
        open.insert(wheel.digest(), Arc::downgrade(&wheel));
        wheel
    }

    /// Opens a wheel from the cache, if it is there.
    pub(super) fn open_cached(
        &self,
        file_name: &str,
        digest: Digest,
    ) -> Result<Option<Arc<Wheel>>, PackageError> {
        if let Some(wheel) = self.opened(digest) {
            return Ok(Some(wheel));
        }
        match self.cache.wheel(file_name, digest)? {
            Some(bytes) => self.open(file_name, digest, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Opens a wheel and, if that succeeds, stores it in the cache.
    pub(super) fn keep(
        &self,
        file_name: &str,
        digest: Digest,
        bytes: &Arc<[u8]>,
    ) -> Result<Arc<Wheel>, PackageError> {
        let found = Digest::of(bytes);
        if found != digest {
            let file = file_name.to_owned();
            return Err(PackageError::Digest { file, expected: digest, found });
        }
        let wheel = self.open(file_name, digest, bytes)?;
        self.cache.put_wheel(file_name, digest, bytes)?;
        Ok(wheel)
    }

    fn opened(&self, digest: Digest) -> Option<Arc<Wheel>> {
        lock(&self.open).get(&digest)?.upgrade()
    }

    /// Returns the key of a resolution. It covers everything that could change the result.
    pub(super) fn key<'a>(
        &self,
        texts: impl Iterator<Item = &'a String>,
    ) -> Result<Digest, PackageError> {
        let mut text = format!("{FORM} {PYTHON} {ABI} {PLATFORM} {}\n", self.lock_digest);
        for requirement in texts {
            text.extend(["requirement ", requirement, "\n"]);
        }
        for (file_name, digest) in directory::list(&self.options.wheels, &self.cache)? {
            text.extend(["wheel ", &file_name, " ", &digest.to_string(), "\n"]);
        }
        if let Some(bundle) = &self.options.bundle {
            text.extend(["bundle ", &bundle.digest().to_string(), "\n"]);
        }
        Ok(Digest::of(text.as_bytes()))
    }

    /// Opens the wheels of a stored resolution. Returns `None` if it is not stored or one of its
    /// wheels is missing.
    pub(super) fn recorded(&self, key: Digest) -> Result<Option<Vec<Arc<Wheel>>>, PackageError> {
        let Some(record) = self.cache.record(key) else {
            return Ok(None);
        };
        let mut wheels = Vec::new();
        for recorded in &record.wheels {
            let Some((digest, _)) = recorded.checked() else {
                return Ok(None);
            };
            if let Some(bundled) =
                self.options.bundle.as_ref().and_then(|all| all.candidate(digest))
            {
                wheels.push(self.open_bundled(bundled)?);
                continue;
            }
            match self.open_cached(&recorded.file_name, digest)? {
                Some(wheel) => wheels.push(wheel),
                None => return Ok(None),
            }
        }
        Ok(Some(wheels))
    }

    fn learn(&self, wheels: &[Arc<Wheel>]) {
        // If the imports were not read yet, they are read from the cache when they are needed.
        let mut imports = lock(&self.imports);
        let Some(imports) = imports.as_mut() else {
            return;
        };
        for wheel in wheels {
            for module in wheel.imports() {
                imports.entry(module.clone()).or_default().insert(wheel.name().to_owned());
            }
        }
    }
}
