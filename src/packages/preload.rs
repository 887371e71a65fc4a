//! Packages that all sessions of an engine start with, already imported: they are part of the
//! image.

use super::error::PackageError;
use super::requirement::Requirement;
use super::store::PackageStore;
use super::tree::PackageTree;

/// Wheels with all dependencies, and the modules to import from them.
#[derive(Debug, Default)]
pub(crate) struct Preload {
    tree: PackageTree,
    pinned: Vec<Requirement>,
    modules: Vec<String>,
    /// What was asked for: names of packages and of modules.
    wanted: Vec<String>,
    key: String,
}

impl Preload {
    /// Resolves these requirements, and the packages of these modules. Blocks, for minutes if they
    /// were never resolved before.
    pub(crate) fn resolve(
        store: &PackageStore,
        requirements: &[Requirement],
        modules: &[String],
    ) -> Result<Self, PackageError> {
        let mut preload = Self::default();
        let mut requirements = requirements.to_vec();
        let mut own_modules = Vec::new();
        for module in modules {
            match store.package_of(module, &requirements) {
                Some(package) => {
                    own_modules.push(module.clone());
                    requirements.push(package);
                }
                None => requirements.push(module.parse()?),
            }
        }
        let packages = requirements.iter().map(Requirement::name);
        preload
            .wanted
            .extend(packages.chain(own_modules.iter().map(String::as_str)).map(str::to_owned));
        let is_wanted = |name: &str| requirements.iter().any(|wanted| wanted.name() == name);
        for wheel in store.resolve(&requirements)?.wheels() {
            preload.tree.add(wheel)?;
            let (name, version) = (wheel.name(), wheel.version());
            preload.pinned.push(format!("{name}=={version}").parse()?);
            preload.key.extend([name, " ", &wheel.digest().to_string(), "\n"]);
            preload.key.extend(wheel.patch_key().flat_map(|file| [file, "\n"]));
            if is_wanted(name) {
                preload.modules.extend(wheel.imports().iter().cloned());
            }
        }
        preload.modules.extend(own_modules);
        preload.key.push_str(&preload.modules.join(" "));
        Ok(preload)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pinned.is_empty()
    }

    /// Returns a tree of the wheels, for one session.
    pub(crate) fn tree(&self) -> PackageTree {
        self.tree.copy()
    }

    /// Describes the wheels, each as `NAME VERSION`.
    pub(crate) fn described(&self) -> Vec<String> {
        let loaded = self.tree.loaded();
        loaded.iter().map(|one| format!("{} {}", one.name, one.version)).collect()
    }

    /// Returns the wheels as requirements that only they meet.
    pub(crate) fn pinned(&self) -> &[Requirement] {
        &self.pinned
    }

    /// Returns what was asked for, in words.
    pub(crate) fn purpose(&self) -> String {
        self.wanted.join(", ")
    }

    /// Returns the names of the modules to import.
    pub(crate) fn modules(&self) -> &[String] {
        &self.modules
    }

    /// Returns the key that identifies this set of packages.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}
