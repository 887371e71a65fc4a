//! A bundle: a directory of wheels that belong together, with what is known about each, so that
//! packages are found, resolved and loaded without an index and without reading all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolet_pyodide_assets::Digest;
use pep440_rs::Version;
use serde::{Deserialize, Serialize};

use super::directory::Candidate;
use super::error::PackageError;
use super::files;
use super::interpreter::{ABI_VERSION, PYTHON};
use super::local::Source;
use super::metadata::Metadata;
use super::requirement::{Requirement, normalised};
use super::wheel::Wheel;
use super::wheel_name::WheelName;
use crate::data::error::{Error, ErrorKind};

/// The file that describes a bundle.
pub(crate) const MANIFEST: &str = "bundle.json";

/// The version of the manifest's format.
const FORM: u32 = 1;

/// The maximum size of a manifest, in bytes, and of what is in it.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;
const MAX_PACKAGES: usize = 2000;
const MAX_SETS: usize = 16;

/// The contents of `bundle.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    form: u32,
    /// The version of CPython, and of Pyodide's ABI, that the wheels are for.
    python: String,
    abi: String,
    packages: Vec<BundledWheel>,
    /// Packages that are often imported together, the smallest set first.
    sets: Vec<BTreeSet<String>>,
}

/// A wheel of a bundle: its name, its digest, and what would have to be read from it otherwise.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BundledWheel {
    file_name: String,
    sha256: String,
    bytes: u64,
    /// Whether it was asked for by its name, and not only needed.
    is_asked: bool,
    imports: BTreeSet<String>,
    requires: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requires_python: Option<String>,
}

impl Manifest {
    /// Describes these wheels, of which those with these names were asked for.
    pub(crate) fn of(
        wheels: &[Arc<Wheel>],
        asked: &BTreeSet<String>,
        sets: Vec<BTreeSet<String>>,
    ) -> Self {
        let packages = wheels.iter().map(|wheel| BundledWheel {
            file_name: wheel.file_name().to_owned(),
            sha256: wheel.digest().to_string(),
            bytes: wheel.bytes().len() as u64,
            is_asked: asked.contains(wheel.name()),
            imports: wheel.imports().clone(),
            requires: wheel.metadata().requires.clone(),
            requires_python: wheel.metadata().requires_python.clone(),
        });
        Self {
            form: FORM,
            python: PYTHON.to_owned(),
            abi: ABI_VERSION.to_owned(),
            packages: packages.collect(),
            sets,
        }
    }
}

/// A directory of packages that belong together: what `isolet-science` installs, or what
/// [`Sandbox::bundle_packages`](crate::Sandbox::bundle_packages) has written.
///
/// Sandboxes of an engine that has one ([`EngineBuilder::bundle`](crate::EngineBuilder::bundle))
/// import its packages without further permission.
#[derive(Clone)]
pub struct Bundle(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    digest: Digest,
    packages: BTreeMap<String, Arc<Candidate>>,
    asked: BTreeSet<String>,
    sets: Vec<BTreeSet<String>>,
}

/// A package of a [`Bundle`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundledPackage {
    /// The normalised name of the distribution.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The names of its modules.
    pub modules: Vec<String>,
    /// Whether the bundle was made to have it, and not because another one needs it.
    pub is_asked: bool,
}

impl Bundle {
    /// Opens the bundle in a directory. Reads no wheel: each is read, and compared with its digest,
    /// when it is loaded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Packages`] if there is no `bundle.json`, or it is for another interpreter.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let directory = directory.into();
        let path = directory.join(MANIFEST);
        let refused = |reason: String| {
            let message = format!("`{}` cannot be used as a bundle: {reason}", directory.display());
            Error::new(ErrorKind::Packages, message).with_hint(
                "install the isolet-science of this isolet's version, or make the bundle anew with \
                 `isolet packages bundle`",
            )
        };
        let bytes = files::read(&path, MAX_MANIFEST_BYTES)
            .map_err(|error| refused(format!("its `{MANIFEST}` cannot be read: {error}")))?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
        let Manifest { form, python, abi, packages, sets } = manifest;
        if form != FORM {
            return Err(refused(format!("its format is {form}, expected {FORM}")));
        }
        if (python.as_str(), abi.as_str()) != (PYTHON, ABI_VERSION) {
            return Err(refused(format!(
                "it is for Python {python} with ABI {abi}, expected Python {PYTHON} with ABI \
                 {ABI_VERSION}"
            )));
        }
        if packages.len() > MAX_PACKAGES || sets.len() > MAX_SETS {
            return Err(refused(format!(
                "limit {MAX_PACKAGES} packages and {MAX_SETS} sets, has {} and {}",
                packages.len(),
                sets.len()
            )));
        }
        let (mut found, mut asked) = (BTreeMap::new(), BTreeSet::new());
        for wheel in packages {
            let is_asked = wheel.is_asked;
            let candidate =
                wheel.candidate(&directory).map_err(|error| refused(error.to_string()))?;
            asked.extend(is_asked.then(|| candidate.name.clone()));
            found.insert(candidate.name.clone(), Arc::new(candidate));
        }
        if let Some(unknown) = sets.iter().flatten().find(|name| !found.contains_key(*name)) {
            return Err(refused(format!("it has a set with `{unknown}`, and no such package")));
        }
        let digest = Digest::of(&bytes);
        Ok(Self(Arc::new(Inner { directory, digest, packages: found, asked, sets })))
    }

    /// Returns its directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Returns its packages, sorted by name.
    pub fn packages(&self) -> impl Iterator<Item = BundledPackage> {
        self.0.packages.values().map(|candidate| BundledPackage {
            name: candidate.name.clone(),
            version: candidate.version.to_string(),
            modules: candidate.imports.iter().cloned().collect(),
            is_asked: self.0.asked.contains(&candidate.name),
        })
    }

    /// Returns the names of the packages that it was made to have, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.asked.iter().map(String::as_str)
    }

    /// Returns `true` if it has a package of this name, in any spelling.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.packages.contains_key(&normalised(name))
    }

    /// Returns the sets of packages that are often imported together, the smallest first.
    pub fn sets(&self) -> impl Iterator<Item = &BTreeSet<String>> {
        self.0.sets.iter()
    }

    pub(crate) fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Returns the wheels, sorted by name.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Arc<Candidate>> {
        self.0.packages.values()
    }

    /// Returns the wheel with this digest.
    pub(crate) fn candidate(&self, digest: Digest) -> Option<&Arc<Candidate>> {
        self.0.packages.values().find(|candidate| candidate.digest == digest)
    }

    /// Returns the package that has the module of this dotted name.
    pub(crate) fn package_of(&self, module: &str) -> Option<Requirement> {
        let top = module.split('.').next().unwrap_or_default();
        let mut all = self.0.packages.values();
        all.find(|candidate| candidate.imports.contains(top))?.name.parse().ok()
    }

    /// Returns which set has what these packages need, as far as one has: the first that has all of
    /// those that are in any, or else the last that has one.
    pub(crate) fn set_for(&self, names: &BTreeSet<String>) -> Option<usize> {
        let sets = &self.0.sets;
        let heavy: BTreeSet<&String> =
            names.iter().filter(|name| sets.iter().any(|set| set.contains(*name))).collect();
        if heavy.is_empty() {
            return None;
        }
        let has_all = |set: &BTreeSet<String>| heavy.iter().all(|name| set.contains(*name));
        let has_any = |set: &BTreeSet<String>| heavy.iter().any(|name| set.contains(*name));
        sets.iter().position(has_all).or_else(|| sets.iter().rposition(has_any))
    }

    /// Returns the set with this number.
    pub(crate) fn set(&self, number: usize) -> Option<&BTreeSet<String>> {
        self.0.sets.get(number)
    }
}

impl BundledWheel {
    fn candidate(self, directory: &Path) -> Result<Candidate, PackageError> {
        let WheelName { name, version, rank } = self.file_name.parse()?;
        let unusable = |reason: String| PackageError::wheel(&self.file_name, reason);
        let rank = rank.ok_or_else(|| unusable("it is for another interpreter".to_owned()))?;
        let digest = self.sha256.parse().map_err(unusable)?;
        let metadata = Metadata {
            name: name.clone(),
            version: version.to_string(),
            requires: self.requires,
            requires_python: self.requires_python,
        };
        Ok(Candidate {
            path: directory.join(&self.file_name),
            file_name: self.file_name,
            name,
            version,
            digest,
            imports: self.imports,
            metadata,
            depends: BTreeSet::new(),
            rank,
            is_bundled: true,
        })
    }
}

impl Source for Bundle {
    fn best(
        &self,
        name: &str,
        allowed: &dyn Fn(&Version) -> bool,
    ) -> Result<Option<Arc<Candidate>>, PackageError> {
        let found = self.0.packages.get(name).filter(|candidate| allowed(&candidate.version));
        Ok(found.cloned())
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packages = self.0.packages.len();
        f.debug_struct("Bundle")
            .field("directory", &self.0.directory)
            .field("packages", &packages)
            .finish_non_exhaustive()
    }
}
