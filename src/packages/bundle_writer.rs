//! Writes a bundle: wheels as they are loaded, with their bytecode.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use isolet_pyodide_assets::Digest;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::LoadedPackage;
use super::bundle::{MANIFEST, Manifest};
use super::error::PackageError;
use super::requirement::Requirement;
use super::store::PackageStore;
use super::wheel::Wheel;

/// How CPython names the file with a module's bytecode.
const CACHE: &str = "__pycache__";
const BYTECODE: &str = "cpython-314.pyc";

/// The directory of a package's own tests, which nobody imports: Pyodide leaves them out as well.
const TESTS: &str = "tests";

/// How much time is spent to make wheels smaller: the most.
const LEVEL: i64 = 9;

/// A source file, by its path in `site-packages`.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: Arc<[u8]>,
}

/// Wheels that become a bundle.
pub(crate) struct BundleWriter {
    /// The normalised names of those that were asked for.
    asked: BTreeSet<String>,
    wheels: Vec<Arc<Wheel>>,
    written: Vec<Arc<Wheel>>,
}

impl BundleWriter {
    /// Resolves the requirements to wheels that meet them, and all that they need.
    pub(crate) fn resolve(
        store: &PackageStore,
        requirements: &[Requirement],
    ) -> Result<Self, PackageError> {
        let wheels = store.resolve_complete(requirements)?.wheels().to_vec();
        let asked = requirements.iter().map(|one| one.name().to_owned()).collect();
        Ok(Self { asked, wheels, written: Vec::new() })
    }

    /// Returns the wheels.
    pub(crate) fn wheels(&self) -> Vec<Arc<Wheel>> {
        self.wheels.clone()
    }

    /// Returns the sources of a wheel's modules.
    pub(crate) fn sources(wheel: &Wheel) -> Result<Vec<Source>, PackageError> {
        let files = wheel.files().iter().enumerate();
        let modules = files.filter(|(_, file)| is_source(&file.path) && !is_of_tests(&file.path));
        let source = |(index, path): (usize, &str)| {
            let text = wheel.read(index).map_err(|error| unreadable(wheel, &error))?;
            Ok(Source { path: path.to_owned(), text })
        };
        modules.map(|(index, file)| source((index, &file.path))).collect()
    }

    /// Writes a wheel with the bytecode of its modules, each by the path of its source.
    pub(crate) fn write(
        &mut self,
        into: &Path,
        wheel: &Wheel,
        bytecode: &[(String, Vec<u8>)],
    ) -> Result<(), PackageError> {
        let files = wheel.files().iter().enumerate();
        let files = files.filter(|(_, file)| !is_of_tests(&file.path));
        let mut contents: Vec<(String, Arc<[u8]>)> = files
            .map(|(index, file)| Ok((file.path.clone(), wheel.read(index)?)))
            .collect::<std::io::Result<_>>()
            .map_err(|error| unreadable(wheel, &error))?;
        contents.extend(bytecode.iter().map(|(source, code)| {
            let (directory, file) = source.rsplit_once('/').unwrap_or(("", source));
            let stem = file.strip_suffix(".py").unwrap_or(file);
            let directory = if directory.is_empty() { "" } else { &source[..=directory.len()] };
            (format!("{directory}{CACHE}/{stem}.{BYTECODE}"), code.as_slice().into())
        }));
        let path = into.join(wheel.file_name());
        let bytes: Arc<[u8]> =
            archive(&contents).map_err(|error| PackageError::io(&path)(error.into()))?.into();
        std::fs::write(&path, &bytes).map_err(PackageError::io(&path))?;
        let written = Wheel::unchanged(wheel.file_name(), Arc::clone(&bytes), Digest::of(&bytes))?;
        self.written.push(Arc::new(written));
        Ok(())
    }

    /// Writes the description of the wheels that were written, and returns them.
    pub(crate) fn finish(
        self,
        into: &Path,
        sets: Vec<BTreeSet<String>>,
    ) -> Result<Vec<LoadedPackage>, PackageError> {
        let path = into.join(MANIFEST);
        let mut text = serde_json::to_vec_pretty(&Manifest::of(&self.written, &self.asked, sets))
            .map_err(|error| PackageError::io(&path)(error.into()))?;
        text.push(b'\n');
        std::fs::write(&path, text).map_err(PackageError::io(&path))?;
        Ok(self.written.iter().map(|wheel| LoadedPackage::of(wheel)).collect())
    }
}

/// Makes a wheel of these files, with a new `RECORD`.
fn archive(contents: &[(String, Arc<[u8]>)]) -> ZipResult<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    // The same files make the same wheel: the options have no time of day.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(LEVEL));
    let is_record = |path: &str| path.ends_with(".dist-info/RECORD");
    let mut record = String::new();
    let mut record_path = None;
    for (path, bytes) in contents {
        if is_record(path) {
            record_path = Some(path);
            continue;
        }
        zip.start_file(path.as_str(), options)?;
        zip.write_all(bytes)?;
        let digest = URL_SAFE_NO_PAD.encode(Digest::of(bytes).as_bytes());
        let quoted = if path.contains([',', '"']) {
            format!("\"{}\"", path.replace('"', "\"\""))
        } else {
            path.clone()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(record, "{quoted},sha256={digest},{}", bytes.len());
    }
    if let Some(path) = record_path {
        let _ = writeln!(record, "{path},,");
        zip.start_file(path.as_str(), options)?;
        zip.write_all(record.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

fn is_source(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "py")
}

fn is_of_tests(path: &str) -> bool {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    directory.split('/').skip(1).any(|name| name == TESTS)
}

fn unreadable(wheel: &Wheel, error: &std::io::Error) -> PackageError {
    PackageError::wheel(wheel.file_name(), error.to_string())
}
