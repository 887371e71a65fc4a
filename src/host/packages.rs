//! The packages of one session: which may be imported, how they are loaded, and which WebAssembly
//! they contain.

use std::sync::{Arc, Mutex};

use isolet_pyodide_assets::Digest;

use super::exchanges::{Answers, send};
use crate::data::error::Error;
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::audit::{Access, AuditLog};
use crate::packages::{LazyStore, LoadedPackage, PackageError, PackageTree, Requirement};
use crate::support::lock::lock;

/// Cheap to clone: clones share the same state.
#[derive(Clone)]
pub(crate) struct SessionPackages(Arc<Inner>);

struct Inner {
    store: Arc<LazyStore>,
    tree: Arc<PackageTree>,
    audit: AuditLog,
    answers: Answers,
    /// All packages that were requested or preloaded; they must be compatible with each other.
    wanted: Mutex<Vec<Requirement>>,
    attempt: Mutex<Attempt>,
}

/// The one attempt of a session to load the allowed packages for an import. A guest cannot keep the
/// host busy by importing repeatedly.
#[derive(Default)]
enum Attempt {
    #[default]
    None,
    UnderWay,
    /// The attempt ended; holds the reason if it failed.
    Ended(Option<String>),
}

/// The maximum length of a module name that is looked up, in bytes.
const MODULE_NAME_BYTES: usize = 255;

impl SessionPackages {
    pub(super) fn new(
        store: Arc<LazyStore>,
        tree: Arc<PackageTree>,
        wanted: Vec<Requirement>,
        audit: AuditLog,
        answers: Answers,
    ) -> Self {
        let (wanted, attempt) = (Mutex::new(wanted), Mutex::default());
        Self(Arc::new(Inner { store, tree, audit, answers, wanted, attempt }))
    }

    /// Loads packages for the owner. Blocks while they are resolved and fetched.
    pub(crate) fn load(&self, requirements: &[Requirement]) -> Result<Vec<LoadedPackage>, Error> {
        let inner = &self.0;
        let mut wanted = lock(&inner.wanted);
        let mut together = wanted.clone();
        together.extend(requirements.iter().filter(|new| !wanted.contains(new)).cloned());
        let resolution = inner.store.store()?.resolve(&together).map_err(refused)?;
        let before = inner.tree.loaded();
        for wheel in resolution.wheels() {
            inner.tree.add(wheel).map_err(refused)?;
        }
        *wanted = together;
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
        if let Some(answer) = self.answer_at_once(module) {
            return send(&self.0.answers, call, answer);
        }
        let packages = self.clone();
        let load = move || {
            // Resolved together they are compatible; one by one they might not be.
            let loaded = packages.load(packages.0.store.allowed()).map_err(|e| e.to_string());
            *lock(&packages.0.attempt) = Attempt::Ended(loaded.as_ref().err().cloned());
            let answer = loaded.map(|loaded| Value::Bool(!loaded.is_empty()));
            send(&packages.0.answers, call, answer.map_err(import_error));
        };
        let started = std::thread::Builder::new().name("isolet-packages".to_owned()).spawn(load);
        if let Err(error) = started {
            let reason = format!("the thread that loads packages cannot start: {error}");
            *lock(&self.0.attempt) = Attempt::Ended(Some(reason.clone()));
            send(&self.0.answers, call, Err(import_error(reason)));
        }
    }

    /// Returns the answer to an import for which nothing needs loading. `None` begins the attempt.
    fn answer_at_once(&self, module: &str) -> Option<Result<Value, ToolError>> {
        let inner = &self.0;
        let name = module.split('.').next().unwrap_or_default();
        if name.len() > MODULE_NAME_BYTES {
            return Some(Ok(Value::Bool(false)));
        }
        let store = match inner.store.store() {
            Ok(store) => store,
            Err(error) => return Some(Err(import_error(error.to_string()))),
        };
        let allowed = inner.store.allowed();
        let is_allowed = store.allowed_for_import(name, allowed).is_some()
            // A program may import what a package needs before the package itself.
            || (matches!(*lock(&inner.attempt), Attempt::None)
                && !allowed.is_empty()
                && store.is_needed_by(name, allowed));
        if !is_allowed {
            let reason = "no allowed package has this module".to_owned();
            inner.audit.tell(false, reason, || Access::Package { name: name.to_owned() });
            return Some(Ok(Value::Bool(false)));
        }
        let mut attempt = lock(&inner.attempt);
        match &*attempt {
            Attempt::None => {
                *attempt = Attempt::UnderWay;
                None
            }
            Attempt::UnderWay => {
                Some(Err(import_error("the packages are being loaded already".to_owned())))
            }
            Attempt::Ended(None) => Some(Ok(Value::Bool(false))),
            Attempt::Ended(Some(reason)) => Some(Err(import_error(reason.clone()))),
        }
    }

    /// Accepts only the WebAssembly of loaded packages.
    pub(super) fn verify(&self, code: &[u8]) -> Result<(), ToolError> {
        const REFUSAL: &str =
            "WebAssembly code that is not part of a loaded package cannot be compiled";
        let digest = Digest::of(code);
        let known = self.0.tree.contains_module(digest.as_bytes());
        let reason = if known { "part of a loaded package" } else { REFUSAL };
        self.0
            .audit
            .tell(known, reason.to_owned(), || Access::Module { sha256: digest.to_string() });
        if known { Ok(()) } else { Err(ToolError::new("PermissionError", REFUSAL)) }
    }

    /// Returns `true` if packages are allowed, so that asking the host about a failed import makes
    /// sense.
    pub(crate) fn any_allowed(&self) -> bool {
        !self.0.store.allowed().is_empty()
    }
}

fn import_error(reason: String) -> ToolError {
    ToolError::new("ImportError", reason)
}

fn refused(error: PackageError) -> Error {
    Error::from(error).with_session_alive()
}
