//! Resolves requirements for which no resolution is stored.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use isolet_pyodide_assets::{Digest, DownloadError, Help, Lock, Wanted, lock};
use pep440_rs::Version;

use super::directory::Candidate;
use super::error::{NAME_AUTHORITY, PackageError};
use super::files;
use super::local::{self, Local, Source};
use super::lock::LockedPackage;
use super::pip::Extra;
use super::prefer;
use super::pure;
use super::report::Pin;
use super::requirement::Requirement;
use super::store::Inner;
use super::stubs::Stubs;
use super::wheel::{MAX_WHEEL_BYTES, Wheel};
use super::wheel_name::WheelName;

/// How often names are added to those that only the directories have.
const MAX_ROUNDS: usize = 3;

const GIVE_PYODIDE: &str = "give it in a directory of wheels (`Permissions::wheels`), or the \
     files of Pyodide's distribution (`Permissions::pyodide_packages`)";
const NAME_PROXY: &str = "if this network needs a proxy, name it with the variable `HTTPS_PROXY`; \
     or name another source: a directory of wheels (`Permissions::wheels`), a mirror of Pyodide's \
     distribution (`Permissions::pyodide_packages`), or Pyodide's own package index in the \
     variable `PIP_EXTRA_INDEX_URL`";
const NAME_SOURCE: &str = "name another source: a directory of wheels (`Permissions::wheels`), a \
     mirror of Pyodide's distribution (`Permissions::pyodide_packages`), or Pyodide's own package \
     index in the variable `PIP_EXTRA_INDEX_URL`";
const GIVE_WHEELS: &str =
    "resolve it once while online, or give a directory with its wheels (`Permissions::wheels`)";

impl Inner {
    /// Tries the owner's directories alone, then all sources.
    pub(super) fn resolve_afresh(
        &self,
        requirements: &[Requirement],
    ) -> Result<Vec<Arc<Wheel>>, PackageError> {
        let source = AtHand { inner: self, directories: self.directories()? };
        match local::resolve(requirements, &source)? {
            Local::Complete(chosen) => chosen.iter().map(|one| self.keep_candidate(one)).collect(),
            Local::Missing { wanted, by } if self.options.offline => {
                let needed = by.map(|by| format!(", which {by} needs")).unwrap_or_default();
                Err(PackageError::Unavailable {
                    name: wanted.name().to_owned(),
                    reason: format!(
                        "found no wheel for `{wanted}`{needed}{}, and \
                         `Permissions::offline_packages` forbids downloads",
                        source.others(&wanted)
                    ),
                    hint: GIVE_WHEELS,
                })
            }
            Local::Missing { .. } => self.resolve_by_pip(requirements, source.directories),
        }
    }

    fn resolve_by_pip(
        &self,
        requirements: &[Requirement],
        directories: &[Arc<Candidate>],
    ) -> Result<Vec<Arc<Wheel>>, PackageError> {
        let work = self.cache.work_directory()?;
        let mut only = prefer::only(requirements, directories);
        let names: BTreeSet<&str> = only.iter().map(|one| one.name.as_str()).collect();
        let stubs = Stubs::write(&self.lock, &names, work.path().join("links"))?;
        let resolve = |only: &[&Candidate]| {
            let extra = Extra { only, preferred: directories, links: stubs.directory() };
            self.pip.resolve(work.path(), requirements, &extra)
        };
        let mut pins = resolve(&only)?;
        for _ in 0..MAX_ROUNDS {
            let mut replaced = prefer::replaced(&pins, requirements, directories);
            replaced.retain(|one| only.iter().all(|other| other.name != one.name));
            if replaced.is_empty() {
                break;
            }
            only.extend(replaced);
            match resolve(&only) {
                Ok(others) => pins = others,
                // They do not fit after all, by their own requirements.
                Err(PackageError::Unresolved { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        self.obtain(work.path(), &pins, &stubs)
    }

    /// Opens the wheels that pip chose from wherever they are, and downloads the rest.
    fn obtain(
        &self,
        work: &Path,
        pins: &[Pin],
        stubs: &Stubs,
    ) -> Result<Vec<Arc<Wheel>>, PackageError> {
        let mut wheels = Vec::new();
        let mut locked = Vec::new();
        let mut lacking = Vec::new();
        for pin in pins {
            let package = stubs.name(pin.digest).and_then(|name| self.lock.get(name));
            if let Some(package) = package {
                match self.locked_wheel(package)? {
                    Some(wheel) => wheels.push(wheel),
                    None => locked.push(package),
                }
            } else if let Some(wheel) = self.at_hand(pin)? {
                wheels.push(checked(wheel, pin)?);
            } else {
                lacking.push(pin);
            }
        }
        wheels.extend(self.fetch_or_strip(work, &locked)?);
        if lacking.is_empty() {
            return Ok(wheels);
        }
        let downloaded = self.pip.download(work, &lacking)?;
        for pin in lacking {
            let Some((file_name, bytes)) = downloaded.get(&pin.digest) else {
                let what = format!("{} {} with sha256 {}", pin.name, pin.version, pin.digest);
                return Err(PackageError::Pip(format!("it did not download {what}")));
            };
            wheels.push(checked(self.keep(file_name, pin.digest, bytes)?, pin)?);
        }
        Ok(wheels)
    }

    fn at_hand(&self, pin: &Pin) -> Result<Option<Arc<Wheel>>, PackageError> {
        if let Some(given) = self.directories()?.iter().find(|one| one.digest == pin.digest) {
            return self.keep_candidate(given).map(Some);
        }
        match self.cache.file_name(pin.digest) {
            Some(file_name) => self.open_cached(&file_name, pin.digest),
            None => Ok(None),
        }
    }

    fn keep_candidate(&self, candidate: &Candidate) -> Result<Arc<Wheel>, PackageError> {
        if candidate.is_bundled {
            return self.open_bundled(candidate);
        }
        match self.open_cached(&candidate.file_name, candidate.digest)? {
            Some(wheel) => Ok(wheel),
            None => self.keep(&candidate.file_name, candidate.digest, &candidate.bytes()?),
        }
    }

    /// Opens a wheel of Pyodide's distribution, if the cache or the directory has it.
    fn locked_wheel(&self, package: &LockedPackage) -> Result<Option<Arc<Wheel>>, PackageError> {
        let file_name = package.file_name.as_str();
        if let Some(wheel) = self.open_cached(file_name, package.digest)? {
            return Ok(Some(wheel));
        }
        match self.file_of_pyodide(file_name)? {
            Some(bytes) => match self.keep(file_name, package.digest, &bytes) {
                Err(PackageError::Digest { file, expected, found }) => {
                    let version = lock().map(Lock::version);
                    let version = version.unwrap_or("this release");
                    Err(PackageError::Release { file, version, expected, found })
                }
                kept => kept.map(Some),
            },
            None => Ok(None),
        }
    }

    /// Fetches wheels of Pyodide's distribution. A package that works without its compiled part
    /// falls back to that, if its wheel cannot be fetched.
    fn fetch_or_strip(
        &self,
        work: &Path,
        packages: &[&LockedPackage],
    ) -> Result<Vec<Arc<Wheel>>, PackageError> {
        let (accelerated, native): (Vec<&LockedPackage>, Vec<_>) =
            packages.iter().partition(|one| pure::works_without_accelerator(&one.file.name));
        let mut wheels = self.fetch(&native)?;
        match self.fetch(&accelerated) {
            Ok(fetched) => wheels.extend(fetched),
            Err(error) => {
                for package in accelerated {
                    // The first error says what is wrong; the other would be about the index.
                    match self.strip(work, package) {
                        Ok(wheel) => wheels.push(wheel),
                        Err(_) => return Err(error),
                    }
                }
            }
        }
        Ok(wheels)
    }

    /// Makes a wheel without compiled parts of the package index's wheel for another platform.
    fn strip(&self, work: &Path, package: &LockedPackage) -> Result<Arc<Wheel>, PackageError> {
        let WheelName { name, version, .. } = &package.file;
        let (file_name, bytes) = self.pip.download_for_desktops(work, name, version)?;
        let (file_name, bytes) = pure::without_accelerator(&file_name, bytes)?;
        self.keep(&file_name, Digest::of(&bytes), &bytes.into())
    }

    /// Fetches wheels of Pyodide's distribution.
    fn fetch(&self, packages: &[&LockedPackage]) -> Result<Vec<Arc<Wheel>>, PackageError> {
        let Some(first) = packages.first() else { return Ok(Vec::new()) };
        let fetch = self.options.fetch.as_ref().filter(|_| !self.options.offline);
        let fetch = fetch.ok_or_else(|| not_at_hand(first))?;
        let into = self.cache.downloads();
        files::make_directory(&into).map_err(PackageError::io(&into))?;
        let wanted: Vec<Wanted> = packages
            .iter()
            .map(|one| Wanted::new(&one.file_name, one.digest, MAX_WHEEL_BYTES))
            .collect();
        fetch(&wanted, &into).map_err(|error| not_fetched(error, packages))?;
        let mut wheels = Vec::new();
        for package in packages {
            let path = into.join(&package.file_name);
            let bytes = files::read(&path, MAX_WHEEL_BYTES).map_err(PackageError::io(&path))?;
            wheels.push(self.keep(&package.file_name, package.digest, &bytes)?);
            // What is left there is removed later.
            let _ = std::fs::remove_file(path);
        }
        Ok(wheels)
    }

    fn file_of_pyodide(&self, file_name: &str) -> Result<Option<Arc<[u8]>>, PackageError> {
        let Some(directory) = &self.options.pyodide_packages else {
            return Ok(None);
        };
        let path = directory.join(file_name);
        match files::read(&path, MAX_WHEEL_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PackageError::io(path)(error)),
        }
    }
}

/// The owner's directories and, if offline, Pyodide's packages, because nothing newer is available
/// then.
struct AtHand<'a> {
    inner: &'a Inner,
    directories: &'a [Arc<Candidate>],
}

impl AtHand<'_> {
    /// Returns the versions of a package that are at hand and do not meet a requirement of it, as
    /// part of a sentence.
    fn others(&self, wanted: &Requirement) -> String {
        let of_name = self.directories.iter().filter(|one| one.name == wanted.name());
        let mut versions: Vec<String> = of_name.map(|one| one.version.to_string()).collect();
        let locked = self.inner.lock.get(wanted.name());
        let locked = locked.filter(|one| matches!(self.inner.locked_wheel(one), Ok(Some(_))));
        versions.extend(locked.map(|package| package.file.version.to_string()));
        if versions.is_empty() {
            return String::new();
        }
        format!(" (only {} {})", wanted.name(), versions.join(", "))
    }
}

impl Source for AtHand<'_> {
    fn best(
        &self,
        name: &str,
        allowed: &dyn Fn(&Version) -> bool,
    ) -> Result<Option<Arc<Candidate>>, PackageError> {
        let fits = |one: &&Arc<Candidate>| {
            one.name == name && allowed(&one.version) && one.metadata.fits_python()
        };
        if let Some(found) = self.directories.iter().find(fits) {
            return Ok(Some(Arc::clone(found)));
        }
        let locked = self.inner.lock.get(name).filter(|package| allowed(&package.file.version));
        let Some(package) = locked.filter(|_| self.inner.options.offline) else {
            return Ok(None);
        };
        let wheel = self.inner.locked_wheel(package)?.ok_or_else(|| not_at_hand(package))?;
        let path = self.inner.cache.wheel_path(&package.file_name, package.digest)?;
        let mut candidate = Candidate::of(&wheel, path, 0);
        candidate.depends.clone_from(&package.depends);
        Ok(Some(Arc::new(candidate)))
    }
}

fn checked(wheel: Arc<Wheel>, pin: &Pin) -> Result<Arc<Wheel>, PackageError> {
    if wheel.name() == pin.name && *wheel.version() == pin.version {
        return Ok(wheel);
    }
    let reason = format!("wanted {} {}", pin.name, pin.version);
    Err(PackageError::wheel(wheel.file_name(), reason))
}

fn not_fetched(error: DownloadError, packages: &[&LockedPackage]) -> PackageError {
    match error {
        DownloadError::Remote { file, reason, help, .. } => {
            let of = packages.iter().find(|package| package.file_name == file);
            PackageError::Unavailable {
                name: of.map(|package| package.file.name.clone()).unwrap_or_default(),
                reason: format!("`{file}` cannot be fetched: {reason}"),
                hint: match help {
                    Some(Help::Authority) => NAME_AUTHORITY,
                    Some(Help::Proxy) => NAME_PROXY,
                    _ => NAME_SOURCE,
                },
            }
        }
        error => PackageError::Download(error),
    }
}

fn not_at_hand(package: &LockedPackage) -> PackageError {
    let version = &package.file.version;
    PackageError::Unavailable {
        name: package.file.name.clone(),
        reason: format!(
            "it would be version {version} of Pyodide's distribution, but `{}` is not at hand",
            package.file_name
        ),
        hint: GIVE_PYODIDE,
    }
}
