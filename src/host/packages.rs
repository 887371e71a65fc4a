//! The packages of one session: which may be imported, loading them, what they have in them.

use std::sync::{Arc, Mutex, PoisonError};

use isolet_pyodide_assets::Digest;

use super::exchanges::{Answers, send};
use crate::audit::{Access, AuditLog};
use crate::error::Error;
use crate::packages::{LoadedPackage, PackageError, PackageTree, Requirement};
use crate::permissions::LazyStore;
use crate::tool::ToolError;
use crate::value::Value;

/// Cheap to clone: a clone is the same.
#[derive(Clone)]
pub(crate) struct SessionPackages(Arc<Inner>);

struct Inner {
    store: Arc<LazyStore>,
    tree: Arc<PackageTree>,
    audit: AuditLog,
    answers: Answers,
    /// Everything that was asked for, which has to go together.
    wanted: Mutex<Vec<Requirement>>,
}

impl SessionPackages {
    pub(super) fn new(
        store: Arc<LazyStore>,
        tree: Arc<PackageTree>,
        audit: AuditLog,
        answers: Answers,
    ) -> Self {
        let wanted = Mutex::default();
        Self(Arc::new(Inner { store, tree, audit, answers, wanted }))
    }

    /// Loads packages that the owner asks for. Blocks while they are resolved and fetched.
    pub(crate) fn load(&self, requirements: &[Requirement]) -> Result<Vec<LoadedPackage>, Error> {
        let inner = &self.0;
        let mut wanted = inner.wanted.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Loads the package that has a module, if one is allowed, on a thread of its own; the answer to
    /// the call says whether something was loaded.
    pub(super) fn import(&self, call: u32, module: &str) {
        let name = module.split('.').next().unwrap_or_default().to_owned();
        let inner = &self.0;
        let store = match inner.store.store() {
            Ok(store) => store,
            Err(error) => {
                let error = ToolError::new("ImportError", error.to_string());
                return send(&inner.answers, call, Err(error));
            }
        };
        if store.allowed_for_import(&name, inner.store.allowed()).is_none() {
            let reason = "no allowed package has this module".to_owned();
            inner.audit.tell(false, reason, || Access::Package { name });
            return send(&inner.answers, call, Ok(Value::Bool(false)));
        }
        let packages = self.clone();
        let load = move || {
            // Resolved together they fit; one by one they might not.
            let loaded = packages.load(packages.0.store.allowed());
            let answer = loaded.map(|loaded| Value::Bool(!loaded.is_empty()));
            let answer = answer.map_err(|error| ToolError::new("ImportError", error.to_string()));
            send(&packages.0.answers, call, answer);
        };
        let started = std::thread::Builder::new().name("isolet-packages".to_owned()).spawn(load);
        if let Err(error) = started {
            let message = format!("the thread that loads packages cannot start: {error}");
            send(&inner.answers, call, Err(ToolError::new("ImportError", message)));
        }
    }

    /// Whether this is WebAssembly of a loaded package.
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

    /// Whether imports that fail may find something here.
    pub(crate) fn any_allowed(&self) -> bool {
        !self.0.store.allowed().is_empty()
    }
}

fn refused(error: PackageError) -> Error {
    Error::from(error).with_session_alive()
}
