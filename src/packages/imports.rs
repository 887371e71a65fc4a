//! Which of the allowed packages has a module, without using the network.

use std::collections::BTreeSet;

use super::requirement::{Requirement, is_name, normalised};
use super::store::PackageStore;
use crate::support::lock::lock;

/// What distributions have in their names besides that of their module: `python-docx` has `docx`.
const DECORATIONS: [(&str, &str); 4] = [("python-", ""), ("", "-python"), ("py", ""), ("py-", "")];

impl PackageStore {
    /// Returns the normalised names of the distributions that may contain a module: the known ones,
    /// and the one of the same name. Does not use the network.
    pub(crate) fn names_for_import(&self, module: &str) -> Vec<String> {
        let top = module.split('.').next().unwrap_or_default();
        let mut names = BTreeSet::new();
        for (name, package) in self.0.lock.iter() {
            if package.imports.iter().any(|import| import.split('.').next() == Some(top)) {
                names.insert(name.to_owned());
            }
        }
        // `resolve` reports a directory that cannot be read.
        for candidate in self.0.directories().unwrap_or_default() {
            if candidate.imports.contains(top) {
                names.insert(candidate.name.clone());
            }
        }
        let mut imports = lock(&self.0.imports);
        let imports = imports.get_or_insert_with(|| self.0.cache.imports());
        names.extend(imports.get(top).into_iter().flatten().cloned());
        if is_name(top) {
            names.insert(normalised(top));
        }
        names.into_iter().collect()
    }

    /// Returns the first allowed requirement that may contain a module. Does not use the network:
    /// imports of any other module end here.
    pub(crate) fn allowed_for_import(
        &self,
        module: &str,
        allowed: &[Requirement],
    ) -> Option<Requirement> {
        let names = self.names_for_import(module);
        let is_named = |requirement: &&Requirement| names.iter().any(|n| n == requirement.name());
        let is_likely = |requirement: &&Requirement| {
            names.iter().any(|name| is_likely(requirement.name(), name))
        };
        allowed.iter().find(is_named).or_else(|| allowed.iter().find(is_likely)).cloned()
    }

    /// Returns the package that a dotted module belongs to: one of these requirements, or one that
    /// the lock or a directory has.
    pub(crate) fn package_of(
        &self,
        module: &str,
        requirements: &[Requirement],
    ) -> Option<Requirement> {
        if self.is_known(&normalised(module)) {
            // A package may have a dotted name itself, such as `ruamel.yaml`.
            return None;
        }
        self.allowed_for_import(module, requirements).or_else(|| {
            let names = self.names_for_import(module);
            names.iter().find(|name| self.is_known(name))?.parse().ok()
        })
    }

    /// Returns `true` if the lock or a directory has this package.
    fn is_known(&self, name: &str) -> bool {
        self.0.lock.get(name).is_some()
            || self.0.directories().is_ok_and(|all| all.iter().any(|one| one.name == name))
    }

    /// Returns `true` if a module may belong to a package that the allowed ones need. The lock, the
    /// directories and recorded resolutions say so.
    pub(crate) fn is_needed_by(&self, module: &str, allowed: &[Requirement]) -> bool {
        let top = module.split('.').next().unwrap_or_default();
        let texts: BTreeSet<String> = allowed.iter().map(ToString::to_string).collect();
        if let Ok(Some(wheels)) = self.0.key(texts.iter()).and_then(|key| self.0.recorded(key)) {
            return wheels.iter().any(|wheel| wheel.imports().contains(top));
        }
        let names = self.names_for_import(top);
        // What another package needs is known once it has been resolved.
        let all_known = allowed.iter().all(|requirement| self.is_known(requirement.name()));
        let needed = self.needed(allowed);
        names.iter().any(|name| needed.contains(name) || (!all_known && self.is_known(name)))
    }

    /// Returns the names of all packages that these need, as far as that is known.
    fn needed(&self, requirements: &[Requirement]) -> BTreeSet<String> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<String> =
            requirements.iter().map(|requirement| requirement.name().to_owned()).collect();
        while let Some(name) = open.pop() {
            if !needed.insert(name.clone()) {
                continue;
            }
            if let Some(package) = self.0.lock.get(&name) {
                open.extend(package.depends.iter().cloned());
            }
            for candidate in self.0.directories().unwrap_or_default() {
                if candidate.name == name {
                    open.extend(candidate.needs().into_iter().map(|one| one.name().to_owned()));
                }
            }
        }
        needed
    }
}

/// Returns `true` if a distribution of this name is likely to have the module of this name.
fn is_likely(distribution: &str, module: &str) -> bool {
    DECORATIONS.iter().any(|(before, after)| {
        let bare = distribution.strip_prefix(before).and_then(|name| name.strip_suffix(after));
        bare == Some(module)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decorated_name_is_likely_to_have_the_bare_module() {
        for (distribution, module) in
            [("python-docx", "docx"), ("pyjwt", "jwt"), ("attrs-python", "attrs")]
        {
            assert!(is_likely(distribution, module), "{distribution}");
        }
        for (distribution, module) in [("docx2", "docx"), ("requests", "request"), ("python-", "")]
        {
            assert!(!is_likely(distribution, module) || module.is_empty(), "{distribution}");
        }
    }
}
