//! Reads Pyodide's lock, which lists its own packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use isolet_pyodide_assets::Digest;
use serde::Deserialize;

use super::error::PackageError;
use super::interpreter::{ABI_VERSION, PYTHON};
use super::requirement::normalised;
use super::wheel_name::WheelName;

/// The packages of a Pyodide distribution, by normalised name. Contains only wheels: tests, shared
/// libraries and packages that need a shared library are left out.
#[derive(Debug)]
pub(crate) struct Lock {
    packages: BTreeMap<String, LockedPackage>,
}

/// A package of the lock.
#[derive(Debug)]
pub(crate) struct LockedPackage {
    pub(crate) file: WheelName,
    pub(crate) file_name: String,
    pub(crate) digest: Digest,
    /// The normalised names of its dependencies.
    pub(crate) depends: BTreeSet<String>,
    /// The names of its modules.
    pub(crate) imports: Vec<String>,
}

#[derive(Deserialize)]
struct RawLock {
    info: RawInfo,
    packages: BTreeMap<String, RawPackage>,
}

#[derive(Deserialize)]
struct RawInfo {
    abi_version: String,
    python: String,
}

#[derive(Deserialize)]
struct RawPackage {
    depends: Vec<String>,
    file_name: String,
    imports: Vec<String>,
    name: String,
    package_type: String,
    sha256: String,
}

impl Lock {
    /// Parses the bytes of `pyodide-lock.json`.
    ///
    /// # Errors
    ///
    /// Fails if the bytes have another format, or are for another interpreter than the guest's.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, PackageError> {
        let raw: RawLock =
            serde_json::from_slice(bytes).map_err(|error| PackageError::Lock(error.to_string()))?;
        let RawInfo { abi_version, python } = raw.info;
        if (python.as_str(), abi_version.as_str()) != (PYTHON, ABI_VERSION) {
            let is = format!("it is for Python {python} with ABI {abi_version}");
            let wanted = format!("wanted Python {PYTHON} with ABI {ABI_VERSION}");
            return Err(PackageError::Lock(format!("{is}, {wanted}")));
        }
        let mut packages = BTreeMap::new();
        for package in raw.packages.into_values() {
            let file = Path::new(&package.file_name);
            if package.package_type == "package" && file.extension() == Some("whl".as_ref()) {
                packages.insert(normalised(&package.name), package.checked()?);
            }
        }
        let mut lock = Self { packages };
        lock.drop_incomplete();
        Ok(lock)
    }

    /// Returns a package by its normalised name.
    pub(crate) fn get(&self, name: &str) -> Option<&LockedPackage> {
        self.packages.get(name)
    }

    /// Returns all packages with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &LockedPackage)> {
        self.packages.iter().map(|(name, package)| (name.as_str(), package))
    }

    fn drop_incomplete(&mut self) {
        let known: BTreeSet<String> = self.packages.keys().cloned().collect();
        self.packages.retain(|_, package| package.depends.is_subset(&known));
    }
}

impl RawPackage {
    fn checked(self) -> Result<LockedPackage, PackageError> {
        let file: WheelName = self.file_name.parse()?;
        if file.name != normalised(&self.name) {
            let reason = format!("`{}` is not a wheel of {}", self.file_name, self.name);
            return Err(PackageError::Lock(reason));
        }
        let digest = self.sha256.parse().map_err(|reason| {
            PackageError::Lock(format!("the sha256 of `{}` is {reason}", self.file_name))
        })?;
        Ok(LockedPackage {
            file,
            file_name: self.file_name,
            digest,
            depends: self.depends.iter().map(|name| normalised(name)).collect(),
            imports: self.imports,
        })
    }
}
