//! The packages of one session: which may be imported, how they are loaded, and which WebAssembly
//! they contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use isolet_pyodide_assets::Digest;

use super::exchanges::{Answers, send};
use super::saved::SavedPackage;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::PyException;
use crate::data::shown::shown;
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::audit::{Access, AuditLog};
use crate::packages::{
    Bundle, LazyStore, LoadedPackage, PackageError, PackageTree, Requirement, Resolution,
    SITE_PACKAGES,
};
use crate::support::lock::lock;

/// Cheap to clone: clones share the same state.
#[derive(Clone)]
pub(crate) struct SessionPackages(Arc<Inner>);

struct Inner {
    store: Arc<LazyStore>,
    tree: Arc<PackageTree>,
    /// The packages of the image.
    preloaded: Arc<[LoadedPackage]>,
    audit: AuditLog,
    answers: Answers,
    /// All packages that were requested or preloaded; they must be compatible with each other.
    wanted: Mutex<Vec<Requirement>>,
    attempt: Mutex<Attempt>,
    /// The packages of the bundle that were imported, each with why it was not loaded.
    bundled: Mutex<BTreeMap<String, Option<String>>>,
}

/// The one attempt of a session to load the allowed packages for an import. A guest cannot keep the
/// host busy by importing repeatedly.
#[derive(Default)]
enum Attempt {
    #[default]
    None,
    UnderWay,
    /// It was made for a module that might have belonged to a package, and failed. Another one may
    /// be made for a module that does.
    Guessed,
    /// The attempt ended; holds the reason if it failed.
    Ended(Option<String>),
}

/// What loads the package of a module.
enum Import {
    /// A package of the bundle.
    Bundled(Requirement),
    /// The packages that are allowed by name, one of which is known to have the module or may have
    /// it.
    Allowed { is_named: bool },
}

/// Why WebAssembly may be compiled.
const IS_KNOWN: &str = "part of a loaded package";

/// The maximum length of a module name that is looked up, in bytes.
const MODULE_NAME_BYTES: usize = 255;

/// What the names of packages of ours begin with. Code has no need to import those.
const OWN: &str = "isolet-";

/// How many packages the traceback of a missing module lists.
const EXPLAINED: usize = 100;

/// How many packages a message lists.
const LISTED: usize = 20;

impl SessionPackages {
    pub(super) fn new(
        store: Arc<LazyStore>,
        tree: Arc<PackageTree>,
        wanted: Vec<Requirement>,
        audit: AuditLog,
        answers: Answers,
    ) -> Self {
        let (wanted, attempt) = (Mutex::new(wanted), Mutex::default());
        let bundled = Mutex::default();
        let preloaded = tree.loaded().into();
        Self(Arc::new(Inner { store, tree, preloaded, audit, answers, wanted, attempt, bundled }))
    }

    /// Makes the packages of a copy of the session: the same ones are loaded. Also returns their
    /// files.
    pub(super) fn copy(&self, audit: AuditLog, answers: Answers) -> (Self, Arc<PackageTree>) {
        let Inner { store, tree, preloaded, wanted, attempt, bundled, .. } = &*self.0;
        let preloaded = Arc::clone(preloaded);
        let (store, tree) = (Arc::clone(store), Arc::new(tree.copy()));
        let wanted = Mutex::new(lock(wanted).clone());
        let attempt = Mutex::new(match &*lock(attempt) {
            // The copy gets no answer to it.
            Attempt::UnderWay | Attempt::None => Attempt::None,
            Attempt::Guessed => Attempt::Guessed,
            Attempt::Ended(reason) => Attempt::Ended(reason.clone()),
        });
        let bundled = Mutex::new(lock(bundled).clone());
        let files = Arc::clone(&tree);
        let inner = Inner { store, tree, preloaded, audit, answers, wanted, attempt, bundled };
        (Self(Arc::new(inner)), files)
    }

    /// Loads packages for the owner. Blocks while they are resolved and fetched.
    pub(crate) fn load(&self, requirements: &[Requirement]) -> Result<Vec<LoadedPackage>, Error> {
        let inner = &self.0;
        inner.audit.check().map_err(|reason| unlogged(&reason))?;
        let mut wanted = lock(&inner.wanted);
        let mut together = wanted.clone();
        together.extend(requirements.iter().filter(|new| !wanted.contains(new)).cloned());
        let resolution = inner.store.store()?.resolve(&together).map_err(refused)?;
        let loaded = self.add(&resolution)?;
        *wanted = together;
        Ok(loaded)
    }

    /// Loads the wheels of a resolution, and returns those that were not loaded before.
    fn add(&self, resolution: &Resolution) -> Result<Vec<LoadedPackage>, Error> {
        let inner = &self.0;
        let before = inner.tree.loaded();
        for wheel in resolution.wheels() {
            inner.tree.add(wheel).map_err(refused)?;
        }
        let loaded = inner.tree.loaded().into_iter().filter(|package| !before.contains(package));
        Ok(loaded
            .inspect(|package| {
                let reason = format!("sha256 {}", package.sha256);
                let name = format!("{} {}", package.name, package.version);
                inner.audit.tell(true, reason, || Access::Package { name });
            })
            .collect())
    }

    /// Loads the allowed packages on a separate thread, if one of them has this module and they are
    /// not loaded yet. The answer to the call says whether anything was loaded.
    pub(super) fn import(&self, call: u32, module: &str) {
        let attempt = match self.answer_at_once(module) {
            Ok(attempt) => attempt,
            Err(answer) => return send(&self.0.answers, call, answer),
        };
        let packages = self.clone();
        let load = move || {
            let is_named = match attempt {
                Import::Bundled(package) => {
                    let answer = packages.load_bundled(&package);
                    return send(&packages.0.answers, call, answer);
                }
                Import::Allowed { is_named } => is_named,
            };
            // Resolved together they are compatible; one by one they might not be.
            let loaded = packages.load(packages.0.store.allowed()).map_err(|e| e.to_string());
            // Whether a package needs the module was a guess. The error is that of the package.
            let is_guess = !is_named && loaded.is_err();
            let ended = Attempt::Ended(loaded.as_ref().err().cloned());
            *lock(&packages.0.attempt) = if is_guess { Attempt::Guessed } else { ended };
            let answer = match loaded {
                Ok(loaded) => Ok(Value::Bool(!loaded.is_empty())),
                Err(_) if is_guess => Ok(Value::Bool(false)),
                Err(reason) => Err(import_error(reason)),
            };
            send(&packages.0.answers, call, answer);
        };
        let started = std::thread::Builder::new().name("isolet-packages".to_owned()).spawn(load);
        if let Err(error) = started {
            let reason = format!("the thread that loads packages cannot start: {error}");
            let mut attempt = lock(&self.0.attempt);
            if matches!(*attempt, Attempt::UnderWay) {
                *attempt = Attempt::Ended(Some(reason.clone()));
            }
            drop(attempt);
            send(&self.0.answers, call, Err(import_error(reason)));
        }
    }

    /// Loads a package of the bundle, and what it needs. The answer says whether anything was
    /// loaded.
    fn load_bundled(&self, package: &Requirement) -> Result<Value, ToolError> {
        let loaded = self.load_from_bundle(package).map_err(|error| error.to_string());
        let reason = loaded.as_ref().err().cloned();
        lock(&self.0.bundled).insert(package.name().to_owned(), reason);
        loaded.map(|loaded| Value::Bool(!loaded.is_empty())).map_err(import_error)
    }

    /// Loads a package with the bundle's versions of all that it needs. If another version of one
    /// is loaded, resolves it together with what is loaded.
    fn load_from_bundle(&self, package: &Requirement) -> Result<Vec<LoadedPackage>, Error> {
        let inner = &self.0;
        inner.audit.check().map_err(|reason| unlogged(&reason))?;
        let resolution = inner.store.store()?.resolve(std::slice::from_ref(package))?;
        let mut wanted = lock(&inner.wanted);
        let is_other = |one: &LoadedPackage| {
            let same = resolution.wheels().iter().find(|wheel| wheel.name() == one.name);
            same.is_some_and(|wheel| wheel.digest().to_string() != one.sha256)
        };
        if inner.tree.loaded().iter().any(is_other) {
            drop(wanted);
            return self.load(std::slice::from_ref(package));
        }
        let loaded = self.add(&resolution)?;
        if !wanted.contains(package) {
            wanted.push(package.clone());
        }
        Ok(loaded)
    }

    /// Returns the package of the bundle that has a module, if it was not imported before. Then the
    /// answer is as before.
    fn bundled(&self, module: &str) -> Option<Result<Import, Result<Value, ToolError>>> {
        let package = self.0.store.bundle()?.package_of(module)?;
        Some(match lock(&self.0.bundled).get(package.name()) {
            None => Ok(Import::Bundled(package)),
            Some(None) => Err(Ok(Value::Bool(false))),
            Some(Some(reason)) => Err(Err(import_error(reason.clone()))),
        })
    }

    /// Begins an attempt to load what has a module, or returns the answer to an import for which
    /// nothing needs loading.
    fn answer_at_once(&self, module: &str) -> Result<Import, Result<Value, ToolError>> {
        let inner = &self.0;
        let name = module.split('.').next().unwrap_or_default();
        if name.len() > MODULE_NAME_BYTES {
            return Err(Ok(Value::Bool(false)));
        }
        let allowed = inner.store.allowed();
        // What is allowed by name may be another version than the bundle's.
        if allowed.is_empty()
            && let Some(bundled) = self.bundled(name)
        {
            return bundled;
        }
        let store = inner.store.store().map_err(|error| Err(import_error(error.to_string())))?;
        let is_named = store.allowed_for_import(name, allowed).is_some();
        let is_allowed = is_named
            // A program may import what a package needs before the package itself.
            || (self.is_any_unloaded() && store.is_needed_by(name, allowed));
        if !is_allowed {
            if let Some(bundled) = self.bundled(name) {
                return bundled;
            }
            let reason = "no allowed package has this module".to_owned();
            inner.audit.tell(false, reason, || Access::Package { name: name.to_owned() });
            return Err(Ok(Value::Bool(false)));
        }
        let mut attempt = lock(&inner.attempt);
        match &*attempt {
            Attempt::None | Attempt::Guessed => {
                *attempt = Attempt::UnderWay;
                Ok(Import::Allowed { is_named })
            }
            Attempt::UnderWay => {
                Err(Err(import_error("the packages are being loaded already".to_owned())))
            }
            // It may be none of theirs after all.
            Attempt::Ended(None) => match self.bundled(name) {
                Some(bundled) => bundled,
                None => Err(Ok(Value::Bool(false))),
            },
            Attempt::Ended(Some(reason)) => Err(Err(import_error(reason.clone()))),
        }
    }

    /// Returns `true` if an allowed package was neither loaded nor tried.
    fn is_any_unloaded(&self) -> bool {
        // Whoever tries holds the other lock meanwhile.
        if !matches!(*lock(&self.0.attempt), Attempt::None) {
            return false;
        }
        let wanted = lock(&self.0.wanted);
        let is_wanted = |name: &str| wanted.iter().any(|one| one.name() == name);
        self.0.store.allowed().iter().any(|one| !is_wanted(one.name()))
    }

    /// Accepts only the WebAssembly of loaded packages.
    pub(super) fn verify(&self, code: &[u8]) -> Result<(), ToolError> {
        const REFUSAL: &str =
            "WebAssembly code that is not part of a loaded package cannot be compiled";
        let digest = Digest::of(code);
        let known = self.0.tree.contains_module(digest.as_bytes());
        let checked = if known { self.0.audit.check() } else { Err(REFUSAL.to_owned()) };
        self.tell(checked.as_ref().map(|()| IS_KNOWN).map_err(|reason| &**reason), digest);
        checked.map_err(|reason| ToolError::new("PermissionError", reason))
    }

    /// Returns the WebAssembly of a loaded package's library, by its path in the guest.
    pub(super) fn library(&self, path: &str) -> io::Result<Option<Arc<[u8]>>> {
        let path = path.strip_prefix(SITE_PACKAGES).and_then(|path| path.strip_prefix('/'));
        let Some((code, digest)) = path.map(|path| self.0.tree.module(path)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        let checked = self.0.audit.check();
        self.tell(checked.as_ref().map(|()| IS_KNOWN).map_err(|reason| &**reason), digest);
        checked.map(|()| Some(code)).map_err(io::Error::other)
    }

    fn tell(&self, decision: Result<&str, &str>, module: Digest) {
        let (Ok(reason) | Err(reason)) = decision;
        let access = || Access::Module { sha256: module.to_string() };
        self.0.audit.tell(decision.is_ok(), reason.to_owned(), access);
    }

    /// Describes the packages of the image, each as `NAME VERSION`, and those that were loaded.
    pub(super) fn saved(&self) -> (Vec<String>, Vec<SavedPackage>) {
        let Inner { tree, preloaded, .. } = &*self.0;
        let loaded = tree.loaded().into_iter().filter(|package| !preloaded.contains(package));
        let loaded = loaded.map(|LoadedPackage { name, version, sha256, .. }| SavedPackage {
            name,
            version,
            sha256,
        });
        (described(preloaded), loaded.collect())
    }

    /// Loads the packages of a saved session, if they are allowed.
    pub(super) fn restore(
        &self,
        preloaded: &[String],
        wanted: &[SavedPackage],
    ) -> Result<(), Error> {
        let own = described(&self.0.preloaded);
        if own != preloaded {
            let message = format!(
                "the session was saved over an image with {}, and this engine's has {}",
                listed(preloaded),
                listed(&own)
            );
            return Err(Error::new(ErrorKind::Config, message)
                .with_hint("use an engine with the same `EngineBuilder::preload`"));
        }
        if wanted.is_empty() {
            return Ok(());
        }
        self.load(&self.allowed_as_in(wanted)?)?;
        for SavedPackage { name, sha256, .. } in wanted {
            let mut bundled = self.0.store.bundle().into_iter().flat_map(Bundle::candidates);
            let is_it = bundled.find(|one| one.name == *name && one.digest.to_string() == *sha256);
            if let Some(bundled) = is_it {
                self.load_from_bundle(&bundled.name.parse()?)?;
            }
        }
        *lock(&self.0.attempt) = Attempt::Ended(None);
        let loaded = self.0.tree.loaded();
        for package in wanted {
            let same = |one: &&LoadedPackage| one.name == package.name;
            let found = loaded.iter().find(same);
            if found.is_some_and(|found| found.sha256 == package.sha256) {
                continue;
            }
            let SavedPackage { name, version, sha256 } = package;
            let [name, version, sha256] = [name, version, sha256].map(|text| shown(text));
            let message = match found {
                None => format!(
                    "the saved session has loaded the package {name} {version}, which the sandbox \
                     does not allow"
                ),
                Some(found) => format!(
                    "the saved session has loaded {name} {version} with sha256 {sha256}, and the \
                     sandbox gives {} with sha256 {}",
                    found.version, found.sha256
                ),
            };
            let hint = format!("allow `{name}=={version}` with `Permissions::allow_package`");
            return Err(Error::new(ErrorKind::Packages, message).with_hint(hint));
        }
        Ok(())
    }

    /// Returns what is allowed, in the versions that a session has loaded where it allows them.
    fn allowed_as_in(&self, wanted: &[SavedPackage]) -> Result<Vec<Requirement>, Error> {
        let (allowed, store) = (self.0.store.allowed(), self.0.store.store()?);
        let mut pinned = allowed.to_vec();
        loop {
            let resolution = match store.resolve(&pinned) {
                Ok(resolution) => resolution,
                Err(error) if pinned.len() == allowed.len() => return Err(refused(error)),
                // Together they are not allowed.
                Err(_) => return Ok(allowed.to_vec()),
            };
            // Only what is allowed, or needed by it, is in a resolution.
            let others = resolution.wheels().iter().filter_map(|wheel| {
                let one = wanted.iter().find(|one| one.name == wheel.name())?;
                let version = one.version.parse().ok().filter(|it| it != wheel.version())?;
                Some(Requirement::exactly(wheel.name(), &version))
            });
            let before = pinned.len();
            let others: Vec<_> = others.filter(|one| !pinned.contains(one)).collect();
            pinned.extend(others);
            if pinned.len() == before {
                return Ok(pinned);
            }
        }
    }

    /// Loads packages for a session that is replayed, whose owner or whose sandbox has let it load
    /// them. Fails if one is another one now.
    pub(crate) fn load_exactly(&self, wanted: &[SavedPackage]) -> Result<(), Error> {
        let pin = |one: &SavedPackage| format!("{}=={}", one.name, one.version).parse();
        let pinned = wanted.iter().map(pin).collect::<Result<Vec<Requirement>, _>>()?;
        self.load(&pinned)?;
        let loaded = self.0.tree.loaded();
        for SavedPackage { name, version, sha256 } in wanted {
            let found = loaded.iter().find(|one| one.name == *name);
            let found = found.map(|found| found.sha256.as_str()).unwrap_or_default();
            if found != sha256 {
                let [name, version, sha256] = [name, version, sha256].map(|text| shown(text));
                let message = format!(
                    "the session had loaded {name} {version} with sha256 {sha256}, and now it has \
                     sha256 {found}"
                );
                return Err(Error::new(ErrorKind::Packages, message));
            }
        }
        Ok(())
    }

    /// Adds to an exception that a module is missing which packages there are, for whoever has
    /// written the code: a language model knows nothing else of them.
    pub(crate) fn explain(&self, exception: &mut PyException) {
        let missing = exception.message.strip_prefix("No module named '");
        let missing = missing.and_then(|rest| rest.strip_suffix('\''));
        // A part of a package is missing for another reason.
        let is_package =
            missing.is_some_and(|name| !name.is_empty() && !name.contains(['.', '\'']));
        let Some(bundle) = self.0.store.bundle().filter(|_| is_package) else { return };
        if exception.type_name != "ModuleNotFoundError" {
            return;
        }
        let allowed = self.0.store.allowed().iter().map(Requirement::name);
        let names = bundle.names().chain(allowed).filter(|name| !name.starts_with(OWN));
        let names: BTreeSet<&str> = names.collect();
        let more = names.len().saturating_sub(EXPLAINED);
        let mut names = names.into_iter().take(EXPLAINED).collect::<Vec<_>>().join(", ");
        if more > 0 {
            // Writing to a string cannot fail.
            let _ = write!(names, ", and {more} more");
        }
        let end = if exception.traceback.ends_with('\n') { "" } else { "\n" };
        let _ = writeln!(
            exception.traceback,
            "{end}The sandbox has these packages besides the standard library, and code can \
             install no others: {names}"
        );
    }

    /// Returns `true` if packages are allowed, so that asking the host about a failed import makes
    /// sense.
    pub(crate) fn any_allowed(&self) -> bool {
        !self.0.store.allowed().is_empty() || self.0.store.bundle().is_some()
    }
}

fn described(packages: &[LoadedPackage]) -> Vec<String> {
    packages.iter().map(|one| format!("{} {}", one.name, one.version)).collect()
}

/// Returns what a message says of a list of packages, which anyone may have written.
fn listed(packages: &[String]) -> String {
    if packages.is_empty() {
        return "no packages".to_owned();
    }
    let mut listed: Vec<_> = packages.iter().take(LISTED).map(|name| shown(name)).collect();
    if packages.len() > LISTED {
        listed.push(format!("and {} more", packages.len() - LISTED));
    }
    listed.join(", ")
}

/// The error of packages whose loading cannot be reported.
fn unlogged(reason: &str) -> Error {
    Error::new(ErrorKind::Packages, format!("packages are not loaded: {reason}"))
        .with_session_alive()
}

fn import_error(reason: String) -> ToolError {
    ToolError::new("ImportError", reason)
}

fn refused(error: PackageError) -> Error {
    Error::from(error).with_session_alive()
}
