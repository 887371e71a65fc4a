//! Writes wheels into a directory, from which alone the same requirements can then be resolved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pep440_rs::Version;

use super::directory::Candidate;
use super::error::PackageError;
use super::local::{self, Local, Source};
use super::requirement::Requirement;
use super::store::PackageStore;
use super::wheel::Wheel;
use super::{LoadedPackage, Resolution};

/// How often something that is missing is resolved too.
const MAX_ROUNDS: usize = 20;

impl PackageStore {
    /// Resolves the requirements with all dependencies, and writes the wheels into a directory,
    /// which is made if it does not exist. A file of the same name is replaced.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve), or if the directory cannot be written.
    pub(crate) fn export(
        &self,
        requirements: &[Requirement],
        into: &Path,
    ) -> Result<Vec<LoadedPackage>, PackageError> {
        let resolution = self.resolve_complete(requirements)?;
        std::fs::create_dir_all(into).map_err(PackageError::io(into))?;
        for wheel in resolution.wheels() {
            write(into, wheel)?;
        }
        Ok(resolution.wheels().iter().map(|wheel| LoadedPackage::of(wheel)).collect())
    }

    /// Resolves the requirements to wheels that meet them by their own metadata, too. Pyodide's
    /// lock, which speaks for wheels that are not at hand, may name less.
    pub(super) fn resolve_complete(
        &self,
        requirements: &[Requirement],
    ) -> Result<Resolution, PackageError> {
        let mut wanted: BTreeSet<String> = requirements.iter().map(ToString::to_string).collect();
        for _ in 0..MAX_ROUNDS {
            let parsed = wanted.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>()?;
            let resolution = self.resolve(&parsed)?;
            match local::resolve(requirements, &Only::new(&resolution))? {
                Local::Complete(_) => return Ok(resolution),
                Local::Missing { wanted: missing, .. } if wanted.insert(missing.to_string()) => {}
                Local::Missing { wanted: missing, by } => {
                    let by = by.map(|by| format!(", which {by} needs")).unwrap_or_default();
                    return Err(PackageError::Unresolved {
                        wanted: missing.to_string(),
                        reason: format!("what was chosen does not meet `{missing}`{by}"),
                    });
                }
            }
        }
        let reason = format!("limit {MAX_ROUNDS} missing packages, needed more");
        let wanted: Vec<String> = requirements.iter().map(ToString::to_string).collect();
        Err(PackageError::Unresolved { wanted: wanted.join(" "), reason })
    }
}

/// The wheels of a resolution as the only source.
struct Only(Vec<Arc<Candidate>>);

impl Only {
    fn new(resolution: &Resolution) -> Self {
        let wheels = resolution.wheels().iter();
        Self(wheels.map(|wheel| Arc::new(Candidate::of(wheel, PathBuf::new(), 0))).collect())
    }
}

impl Source for Only {
    fn best(
        &self,
        name: &str,
        allowed: &dyn Fn(&Version) -> bool,
    ) -> Result<Option<Arc<Candidate>>, PackageError> {
        let found = self.0.iter().find(|one| one.name == name && allowed(&one.version));
        Ok(found.cloned())
    }
}

/// Writes a wheel under another name and renames it, so that nobody sees a part of it.
fn write(into: &Path, wheel: &Wheel) -> Result<(), PackageError> {
    let path = into.join(wheel.file_name());
    let beside = into.join(format!(".{}.part", wheel.file_name()));
    let written = std::fs::write(&beside, wheel.bytes());
    written.and_then(|()| std::fs::rename(&beside, &path)).map_err(|error| {
        // What is left is no wheel to anybody.
        let _ = std::fs::remove_file(&beside);
        PackageError::io(path)(error)
    })
}
