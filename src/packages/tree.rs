//! The guest's `site-packages`: the union of the loaded wheels.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use isolet_pyodide_assets::Digest;

use super::LoadedPackage;
use super::error::PackageError;
use super::wheel::Wheel;
use crate::fs::{Tree, TreeEntry};

/// The modification time of every file: 1980-01-01, the earliest time in ZIP files. A fixed time
/// keeps runs reproducible.
const MODIFIED_MS: f64 = 315_532_800_000.0;

/// The files of all loaded wheels, read-only. Its root is `site-packages`, with the path `""`.
#[derive(Debug, Default)]
pub(crate) struct PackageTree {
    state: RwLock<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    loaded: BTreeMap<String, Arc<Wheel>>,
    files: HashMap<String, (Arc<Wheel>, usize)>,
    /// The names in each directory, except the root, whose names are in `top`.
    directories: HashMap<String, BTreeSet<String>>,
    top: BTreeSet<String>,
}

impl PackageTree {
    /// Makes a tree of the same wheels, to which others can be added.
    pub(crate) fn copy(&self) -> Self {
        Self { state: RwLock::new(self.state().clone()) }
    }

    /// Loads a wheel, unless it is already loaded. On an error nothing changes.
    ///
    /// # Errors
    ///
    /// Fails if another version or file of the distribution is loaded, or a file exists with
    /// different bytes.
    pub(crate) fn add(&self, wheel: &Arc<Wheel>) -> Result<(), PackageError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = state.loaded.get(wheel.name()) {
            return already_loaded(loaded, wheel);
        }
        state.check(wheel)?;
        for (index, file) in wheel.files().iter().enumerate() {
            if let Entry::Vacant(slot) = state.files.entry(file.path.clone()) {
                slot.insert((Arc::clone(wheel), index));
                state.add_names(&file.path);
            }
        }
        state.loaded.insert(wheel.name().to_owned(), Arc::clone(wheel));
        Ok(())
    }

    /// Returns `true` if this is the sha256 of a native module of a loaded wheel. The first call
    /// takes time: until then nobody has inflated the modules.
    pub(crate) fn contains_module(&self, sha256: &[u8; 32]) -> bool {
        // Computed without holding the lock.
        let wheels: Vec<Arc<Wheel>> = self.state().loaded.values().cloned().collect();
        let is_in = |wheel: &Arc<Wheel>| {
            // A wheel whose modules are damaged has none.
            let modules = wheel.modules().unwrap_or_default();
            modules.iter().any(|(_, digest)| digest.as_bytes() == sha256)
        };
        wheels.iter().any(is_in)
    }

    /// Returns the native module at this path, and its sha256. The first call takes time.
    ///
    /// # Errors
    ///
    /// Fails if the bytes of a module of this wheel are damaged.
    pub(crate) fn module(&self, path: &str) -> io::Result<Option<(Arc<[u8]>, Digest)>> {
        let found = self.state().files.get(path).cloned();
        let Some((wheel, index)) = found else {
            return Ok(None);
        };
        let modules = wheel.modules()?;
        let Some((_, digest)) = modules.iter().find(|(at, _)| *at == index) else {
            return Ok(None);
        };
        Ok(Some((wheel.read(index)?, *digest)))
    }

    /// Returns the loaded packages, sorted by name.
    pub(crate) fn loaded(&self) -> Vec<LoadedPackage> {
        let state = self.state();
        state.loaded.values().map(|wheel| LoadedPackage::of(wheel)).collect()
    }
}

impl PackageTree {
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn already_loaded(loaded: &Wheel, wheel: &Wheel) -> Result<(), PackageError> {
    if loaded.digest() == wheel.digest() {
        return Ok(());
    }
    let full = |wheel: &Wheel| format!("{} (`{}`)", wheel.version(), wheel.file_name());
    Err(PackageError::Loaded {
        name: wheel.name().to_owned(),
        wanted: full(wheel),
        loaded: full(loaded),
    })
}

impl State {
    /// Checks that no file of the wheel conflicts with an existing one.
    fn check(&self, wheel: &Wheel) -> Result<(), PackageError> {
        let clash = |path: &str, loaded: &Wheel| PackageError::Clash {
            wanted: wheel.file_name().to_owned(),
            path: path.to_owned(),
            loaded: loaded.file_name().to_owned(),
        };
        for (index, file) in wheel.files().iter().enumerate() {
            let path = file.path.as_str();
            if let Some((other, at)) = self.files.get(path) {
                let same_size = other.files().get(*at).is_some_and(|it| it.size() == file.size());
                let read = |wheel: &Wheel, index| {
                    wheel
                        .read(index)
                        .map_err(|e| PackageError::wheel(wheel.file_name(), e.to_string()))
                };
                if !same_size || read(wheel, index)? != read(other, *at)? {
                    return Err(clash(path, other));
                }
            }
            if self.directories.contains_key(path) {
                let other = self.any_below(path).unwrap_or(wheel);
                return Err(clash(path, other));
            }
            for parent in parents(path) {
                if let Some((other, _)) = self.files.get(parent) {
                    return Err(clash(parent, other));
                }
            }
        }
        Ok(())
    }

    fn any_below(&self, directory: &str) -> Option<&Wheel> {
        let is_below =
            |path: &str| path.strip_prefix(directory).is_some_and(|p| p.starts_with('/'));
        self.files.iter().find(|(path, _)| is_below(path)).map(|(_, (wheel, _))| wheel.as_ref())
    }

    fn add_names(&mut self, path: &str) {
        let mut path = path;
        while let Some((parent, name)) = path.rsplit_once('/') {
            let new = !self.directories.contains_key(parent);
            self.directories.entry(parent.to_owned()).or_default().insert(name.to_owned());
            if !new {
                return;
            }
            path = parent;
        }
        self.top.insert(path.to_owned());
    }
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

impl Tree for PackageTree {
    fn entry(&self, path: &str) -> Option<TreeEntry> {
        let state = self.state();
        if path.is_empty() || state.directories.contains_key(path) {
            return Some(TreeEntry::Directory { modified_ms: MODIFIED_MS });
        }
        let (wheel, index) = state.files.get(path)?;
        let size = wheel.files().get(*index)?.size();
        Some(TreeEntry::File { size, modified_ms: MODIFIED_MS })
    }

    fn names(&self, path: &str) -> Option<Vec<String>> {
        let state = self.state();
        let names = if path.is_empty() { &state.top } else { state.directories.get(path)? };
        Some(names.iter().cloned().collect())
    }

    fn bytes(&self, path: &str) -> io::Result<Arc<[u8]>> {
        let found = {
            let state = self.state();
            if path.is_empty() || state.directories.contains_key(path) {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            state.files.get(path).map(|(wheel, index)| (Arc::clone(wheel), *index))
        };
        let (wheel, index) = found.ok_or(io::ErrorKind::NotFound)?;
        wheel.read(index)
    }
}
