//! The owner's directories of wheels.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolet_pyodide_assets::Digest;
use pep440_rs::Version;

use super::cache::{Cache, ListedWheel, Stamp};
use super::error::PackageError;
use super::files;
use super::metadata::Metadata;
use super::requirement::{Dependency, Requirement};
use super::wheel::{MAX_WHEEL_BYTES, Wheel};
use super::wheel_name::WheelName;

/// The maximum number of wheels in all directories together.
const MAX_WHEELS: usize = 10_000;

/// A usable wheel. Its bytes are read again, and compared, when it is used.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) file_name: String,
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) digest: Digest,
    pub(crate) imports: BTreeSet<String>,
    pub(crate) metadata: Metadata,
    /// Dependencies in addition to those in its metadata, as normalised names.
    pub(crate) depends: BTreeSet<String>,
    pub(super) rank: u32,
    /// Set if it is in a bundle: it is read there, and was changed when the bundle was made.
    pub(crate) is_bundled: bool,
}

impl Candidate {
    /// Describes the wheel at this path.
    pub(crate) fn of(wheel: &Wheel, path: PathBuf, rank: u32) -> Self {
        Self {
            path,
            file_name: wheel.file_name().to_owned(),
            name: wheel.name().to_owned(),
            version: wheel.version().clone(),
            digest: wheel.digest(),
            imports: wheel.imports().clone(),
            metadata: wheel.metadata().clone(),
            depends: BTreeSet::new(),
            rank,
            is_bundled: false,
        }
    }

    /// Returns what the wheel needs with these extras.
    ///
    /// # Errors
    ///
    /// Fails if its metadata cannot be read.
    pub(crate) fn needs_with(
        &self,
        extras: &BTreeSet<String>,
    ) -> Result<Vec<Requirement>, PackageError> {
        let mut needs = Vec::new();
        let about = |e: PackageError| PackageError::wheel(&self.file_name, e.to_string());
        for text in &self.metadata.requires {
            let dependency: Dependency = text.parse().map_err(about)?;
            if dependency.applies(extras).map_err(about)? {
                needs.push(dependency.requirement);
            }
        }
        for name in &self.depends {
            needs.push(name.parse()?);
        }
        Ok(needs)
    }

    /// Returns what the wheel needs without extras, as far as its metadata can be read.
    pub(crate) fn needs(&self) -> Vec<Requirement> {
        self.needs_with(&BTreeSet::new()).unwrap_or_default()
    }

    /// Reads the wheel's bytes.
    ///
    /// # Errors
    ///
    /// Fails if the wheel cannot be read or has changed.
    pub(crate) fn bytes(&self) -> Result<Arc<[u8]>, PackageError> {
        // A guest that imports a package of the bundle is told, and not of the host's directories.
        let shown = if self.is_bundled { Path::new(&self.file_name) } else { &self.path };
        let bytes = files::read(&self.path, MAX_WHEEL_BYTES).map_err(PackageError::io(shown))?;
        let found = Digest::of(&bytes);
        if found == self.digest {
            return Ok(bytes);
        }
        let file = shown.display().to_string();
        Err(PackageError::Digest { file, expected: self.digest, found })
    }
}

/// Opens every wheel in the directories that the guest's interpreter can load. The best comes
/// first: the highest version, then the closest match to the interpreter, then the first directory.
///
/// # Errors
///
/// Fails if a directory cannot be read, contains too many wheels, or contains an invalid one.
pub(crate) fn scan(directories: &[PathBuf]) -> Result<Vec<Candidate>, PackageError> {
    let mut candidates = Vec::new();
    for directory in directories {
        for path in wheel_paths(directory)? {
            let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(rank) = file_name.parse::<WheelName>()?.rank else {
                continue;
            };
            if candidates.len() == MAX_WHEELS {
                let reason =
                    format!("limit {MAX_WHEELS} wheels, `{}` has more", directory.display());
                return Err(PackageError::wheel(&file_name, reason));
            }
            let wheel = Wheel::open(&file_name, read(&path)?)?;
            candidates.push(Candidate::of(&wheel, path, rank));
        }
    }
    // The sort is stable: wheels of an earlier directory stay before those of a later one.
    candidates.sort_by(|a, b| (&b.version, b.rank).cmp(&(&a.version, a.rank)));
    Ok(candidates)
}

/// Returns the names and digests of the wheels in the directories that the guest's interpreter can
/// load, in the order of the directories. A file that was listed before, and has not changed since,
/// is not read again.
///
/// # Errors
///
/// Fails if a directory or a wheel cannot be read.
pub(crate) fn list(
    directories: &[PathBuf],
    cache: &Cache,
) -> Result<Vec<(String, Digest)>, PackageError> {
    if directories.is_empty() {
        return Ok(Vec::new());
    }
    let mut known = cache.listed();
    let mut has_changed = false;
    let mut listed = Vec::new();
    for directory in directories {
        for path in wheel_paths(directory)? {
            let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if file_name.parse::<WheelName>()?.rank.is_none() {
                continue;
            }
            let stamp = Stamp::of(&path);
            let key = path.to_string_lossy().into_owned();
            let digest = known.get(&key).filter(|one| stamp.as_ref() == Some(&one.stamp));
            if let Some(digest) = digest.and_then(|one| one.sha256.parse().ok()) {
                listed.push((file_name, digest));
                continue;
            }
            let digest = Digest::of(&read(&path)?);
            if let Some(stamp) = stamp {
                has_changed = true;
                known.insert(key, ListedWheel { stamp, sha256: digest.to_string() });
            }
            listed.push((file_name, digest));
        }
    }
    if has_changed {
        cache.put_listed(&known);
    }
    Ok(listed)
}

/// Returns the paths of the wheels, absolute and sorted by name.
fn wheel_paths(directory: &Path) -> Result<Vec<PathBuf>, PackageError> {
    let directory = directory.canonicalize().map_err(PackageError::io(directory))?;
    let mut paths = Vec::new();
    for entry in directory.read_dir().map_err(PackageError::io(&directory))? {
        let path = entry.map_err(PackageError::io(&directory))?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Arc<[u8]>, PackageError> {
    files::read(path, MAX_WHEEL_BYTES).map_err(PackageError::io(path))
}
