//! Packages that all sessions of an engine have from the start, imported: what the image is made
//! with.

use super::error::PackageError;
use super::requirement::Requirement;
use super::store::PackageStore;
use super::tree::PackageTree;

/// Wheels with all that they need, and what is imported of them.
#[derive(Debug, Default)]
pub(crate) struct Preload {
    tree: PackageTree,
    pinned: Vec<Requirement>,
    modules: Vec<String>,
    key: String,
}

impl Preload {
    /// Finds what meets these requirements. Blocks, for minutes if they were never resolved before.
    pub(crate) fn resolve(
        store: &PackageStore,
        requirements: &[Requirement],
    ) -> Result<Self, PackageError> {
        let mut preload = Self::default();
        let is_wanted = |name: &str| requirements.iter().any(|wanted| wanted.name() == name);
        for wheel in store.resolve(requirements)?.wheels() {
            preload.tree.add(wheel)?;
            let (name, version) = (wheel.name(), wheel.version());
            preload.pinned.push(format!("{name}=={version}").parse()?);
            preload.key.extend([name, " ", &wheel.digest().to_string(), "\n"]);
            if is_wanted(name) {
                preload.modules.extend(wheel.imports().iter().cloned());
            }
        }
        preload.key.push_str(&preload.modules.join(" "));
        Ok(preload)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pinned.is_empty()
    }

    /// A tree of the wheels, for one session.
    pub(crate) fn tree(&self) -> PackageTree {
        self.tree.copy()
    }

    /// The wheels as requirements that nothing else meets.
    pub(crate) fn pinned(&self) -> &[Requirement] {
        &self.pinned
    }

    /// What is imported, by its name.
    pub(crate) fn modules(&self) -> &[String] {
        &self.modules
    }

    /// What tells this from others.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}
