//! Empty wheels that describe the packages of Pyodide's lock to pip.
//!
//! pip can resolve with them even if the real files are not available. The resolution then shows
//! which file is missing; pip alone would fall back to old versions with fewer dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use isolet_pyodide_assets::Digest;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::error::PackageError;
use super::files;
use super::interpreter::PLATFORM;
use super::lock::{Lock, LockedPackage};

/// The tag that matches the guest's interpreter worst: pip takes a stub only if it finds no real
/// wheel of the same version.
const TAG: &str = "py30-none-any";

/// What packages need according to their own metadata, and not according to the lock: Pyodide takes
/// the time zones of its page.
const ALSO_NEEDED: [(&str, &str); 1] = [("pandas", "tzdata")];

/// A directory of stubs.
#[derive(Debug)]
pub(crate) struct Stubs {
    directory: PathBuf,
    names: BTreeMap<Digest, String>,
}

impl Stubs {
    /// Writes a stub for each native package of the lock except those in `but`. The package index
    /// has the pure Python ones.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be written.
    pub(crate) fn write(
        lock: &Lock,
        but: &BTreeSet<&str>,
        directory: PathBuf,
    ) -> Result<Self, PackageError> {
        files::make_directory(&directory).map_err(PackageError::io(&directory))?;
        let mut names = BTreeMap::new();
        for (name, package) in lock.iter() {
            if !package.file_name.ends_with(&format!("{PLATFORM}.whl")) || but.contains(name) {
                continue;
            }
            let stem = format!("{}-{}", name.replace('-', "_"), package.file.version);
            let path = directory.join(format!("{stem}-{TAG}.whl"));
            let bytes =
                stub(name, &stem, package).map_err(|e| PackageError::io(&path)(e.into()))?;
            std::fs::write(&path, &bytes).map_err(PackageError::io(&path))?;
            names.insert(Digest::of(&bytes), name.to_owned());
        }
        Ok(Self { directory, names })
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the name of the package whose stub has this digest.
    pub(crate) fn name(&self, digest: Digest) -> Option<&str> {
        self.names.get(&digest).map(String::as_str)
    }
}

fn stub(name: &str, stem: &str, package: &LockedPackage) -> ZipResult<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    zip.start_file(format!("{stem}.dist-info/METADATA"), options)?;
    writeln!(zip, "Metadata-Version: 2.1\nName: {name}\nVersion: {}", package.file.version)?;
    let more = ALSO_NEEDED.iter().filter(|(of, _)| *of == name).map(|(_, needed)| *needed);
    for needed in package.depends.iter().map(String::as_str).chain(more) {
        writeln!(zip, "Requires-Dist: {needed}")?;
    }
    zip.start_file(format!("{stem}.dist-info/WHEEL"), options)?;
    writeln!(zip, "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {TAG}")?;
    zip.start_file(format!("{stem}.dist-info/RECORD"), options)?;
    Ok(zip.finish()?.into_inner())
}
