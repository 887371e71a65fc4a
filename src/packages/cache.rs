//! Wheels and resolutions kept on disk: `wheels/<sha256>/<file name>`, `resolutions/<key>.json`.
//!
//! Every file is written beside, synced and renamed, so that any number of processes may use one
//! cache. What is read from it is checked like anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolet_pyodide_assets::Digest;
use serde::{Deserialize, Serialize};

use super::error::PackageError;
use super::files::{self, WorkDirectory};
use super::wheel::{MAX_WHEEL_BYTES, Wheel};
use super::wheel_name::WheelName;

/// The version of the form of the records; part of their keys.
pub(crate) const FORM: u32 = 1;
/// The largest record, in bytes, and the most of them that are read for their imports.
const MAX_RECORD_BYTES: u64 = 4 << 20;
const MAX_RECORDS: usize = 1000;

/// A directory with wheels and resolutions.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// A resolution as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    form: u32,
    pub(crate) wheels: Vec<RecordedWheel>,
}

/// A wheel of a resolution.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedWheel {
    pub(crate) file_name: String,
    sha256: String,
    /// The names of its modules.
    pub(crate) imports: BTreeSet<String>,
}

impl RecordedWheel {
    fn of(wheel: &Wheel) -> Self {
        Self {
            file_name: wheel.file_name().to_owned(),
            sha256: wheel.digest().to_string(),
            imports: wheel.imports().clone(),
        }
    }

    /// Returns its digest and the normalised name of its distribution, if both are sound.
    pub(crate) fn checked(&self) -> Option<(Digest, String)> {
        let name: WheelName = self.file_name.parse().ok()?;
        Some((self.sha256.parse().ok()?, name.name))
    }
}

impl Cache {
    /// Uses this directory, which need not be there yet.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Makes a directory to work in, on the same file system.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(crate) fn work_directory(&self) -> Result<WorkDirectory, PackageError> {
        WorkDirectory::new(&self.root.join("work"))
    }

    /// Returns the bytes of a wheel, if it is here.
    ///
    /// # Errors
    ///
    /// It cannot be read, or it has another digest; then it is removed.
    pub(crate) fn wheel(
        &self,
        file_name: &str,
        digest: Digest,
    ) -> Result<Option<Arc<[u8]>>, PackageError> {
        let path = self.wheel_path(file_name, digest)?;
        let bytes = match files::read(&path, MAX_WHEEL_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(PackageError::io(path)(error)),
        };
        let found = Digest::of(&bytes);
        if found == digest {
            return Ok(Some(bytes));
        }
        std::fs::remove_file(&path).map_err(PackageError::io(&path))?;
        let file = path.display().to_string();
        Err(PackageError::Digest { file, expected: digest, found })
    }

    /// Keeps the bytes of a wheel with this digest.
    ///
    /// # Errors
    ///
    /// They have another digest, or cannot be written.
    pub(crate) fn put_wheel(
        &self,
        file_name: &str,
        digest: Digest,
        bytes: &[u8],
    ) -> Result<(), PackageError> {
        let found = Digest::of(bytes);
        if found != digest {
            let file = file_name.to_owned();
            return Err(PackageError::Digest { file, expected: digest, found });
        }
        self.put(&self.wheel_path(file_name, digest)?, bytes)
    }

    /// Returns the name of a wheel with this digest, if one is here.
    pub(crate) fn file_name(&self, digest: Digest) -> Option<String> {
        let entries = self.root.join("wheels").join(digest.to_string()).read_dir().ok()?;
        let mut names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.find(|name| name.parse::<WheelName>().is_ok())
    }

    /// Returns the resolution that was kept under this key, if its form is known.
    pub(crate) fn record(&self, key: Digest) -> Option<Record> {
        read_record(&self.record_path(key))
    }

    /// Keeps a resolution.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn put_record(
        &self,
        key: Digest,
        wheels: &[Arc<Wheel>],
    ) -> Result<(), PackageError> {
        let wheels = wheels.iter().map(|wheel| RecordedWheel::of(wheel)).collect();
        let path = self.record_path(key);
        let bytes = serde_json::to_vec_pretty(&Record { form: FORM, wheels })
            .map_err(|error| PackageError::io(&path)(error.into()))?;
        self.put(&path, &bytes)
    }

    /// Returns the names of modules and, for each, of the recorded distributions that have it.
    pub(crate) fn imports(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let Ok(entries) = self.root.join("resolutions").read_dir() else {
            return imports;
        };
        let records = entries.flatten().take(MAX_RECORDS);
        let wheels = records.filter_map(|entry| read_record(&entry.path()));
        for wheel in wheels.flat_map(|record| record.wheels) {
            let Some((_, name)) = wheel.checked() else {
                continue;
            };
            for module in wheel.imports {
                imports.entry(module).or_default().insert(name.clone());
            }
        }
        imports
    }

    /// Returns where a wheel is or would be.
    ///
    /// # Errors
    ///
    /// The name is not that of a wheel.
    pub(crate) fn wheel_path(
        &self,
        file_name: &str,
        digest: Digest,
    ) -> Result<PathBuf, PackageError> {
        // Refuses a name that would lead elsewhere.
        let _: WheelName = file_name.parse()?;
        Ok(self.root.join("wheels").join(digest.to_string()).join(file_name))
    }

    fn record_path(&self, key: Digest) -> PathBuf {
        self.root.join("resolutions").join(format!("{key}.json"))
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
        let work = self.work_directory()?;
        let beside = work.path().join("new");
        files::write_new(&beside, bytes).map_err(PackageError::io(&beside))?;
        if let Some(parent) = path.parent() {
            files::make_directory(parent).map_err(PackageError::io(parent))?;
        }
        std::fs::rename(&beside, path).map_err(PackageError::io(path))
    }
}

fn read_record(path: &Path) -> Option<Record> {
    let bytes = files::read(path, MAX_RECORD_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok().filter(|record: &Record| record.form == FORM)
}
