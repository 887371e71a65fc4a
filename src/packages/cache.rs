//! The cache of wheels and resolutions on disk: `wheels/<sha256>/<file name>`,
//! `resolutions/<key>.json`.
//!
//! Every file is written under another name, synced and renamed, so that any number of processes
//! can share a cache. Files read from it are checked like any other input.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isolet_pyodide_assets::Digest;
use serde::{Deserialize, Serialize};

use super::error::PackageError;
use super::files::{self, WorkDirectory};
use super::wheel::{MAX_WHEEL_BYTES, Wheel};
use super::wheel_name::WheelName;

/// The file with the wheels of the owner's directories.
const LISTED: &str = "directories.json";
/// The version of the record format, which is part of the records' keys.
pub(crate) const FORM: u32 = 1;
/// The maximum size of a record, in bytes, and the maximum number of records that are read for
/// their imports.
const MAX_RECORD_BYTES: u64 = 4 << 20;
const MAX_RECORDS: usize = 1000;

/// The maximum size of the list of known files, in bytes.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// How old a file must be for its time to tell whether it has changed: a file system may give two
/// writes the same time.
const SETTLED: Duration = Duration::from_secs(2);

/// A wheel in one of the owner's directories, and what its file was like when it was read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListedWheel {
    pub(crate) stamp: Stamp,
    pub(crate) sha256: String,
}

/// What changes when a file is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    bytes: u64,
    modified_ns: u128,
    #[cfg(unix)]
    inode: u64,
    #[cfg(unix)]
    changed_ns: i128,
}

impl Stamp {
    /// Returns the stamp of a file, unless it was written just now.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;

        let metadata = std::fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?;
        if modified.elapsed().is_ok_and(|age| age < SETTLED) {
            return None;
        }
        Some(Self {
            bytes: metadata.len(),
            modified_ns: modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos(),
            #[cfg(unix)]
            inode: metadata.ino(),
            #[cfg(unix)]
            changed_ns: i128::from(metadata.ctime()) * 1_000_000_000
                + i128::from(metadata.ctime_nsec()),
        })
    }
}

/// A directory with wheels and resolutions.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// A resolution in stored form.
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

    /// Returns the digest and the normalised name of the distribution, if both are valid.
    pub(crate) fn checked(&self) -> Option<(Digest, String)> {
        let name: WheelName = self.file_name.parse().ok()?;
        Some((self.sha256.parse().ok()?, name.name))
    }
}

impl Cache {
    /// Uses this directory, which need not exist yet.
    pub(crate) fn new(root: PathBuf) -> Self {
        // pip runs in another directory.
        let root = std::path::absolute(&root).unwrap_or(root);
        Self { root }
    }

    /// Creates a working directory on the same file system.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub(crate) fn work_directory(&self) -> Result<WorkDirectory, PackageError> {
        WorkDirectory::new(&self.root.join("work"))
    }

    /// Returns the directory for files that are being downloaded. What is left there is resumed
    /// within a day, and removed later like an abandoned working directory.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.root.join("work").join("downloads")
    }

    /// Returns the bytes of a wheel, if the cache has it.
    ///
    /// # Errors
    ///
    /// Fails if the wheel cannot be read or has another digest. In the latter case it is removed.
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

    /// Stores the bytes of a wheel with this digest.
    ///
    /// # Errors
    ///
    /// Fails if the bytes have another digest or cannot be written.
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

    /// Returns the file name of a wheel with this digest, if the cache has one.
    pub(crate) fn file_name(&self, digest: Digest) -> Option<String> {
        let entries = self.root.join("wheels").join(digest.to_string()).read_dir().ok()?;
        let mut names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.find(|name| name.parse::<WheelName>().is_ok())
    }

    /// Returns the resolution stored under this key, if its format is known.
    pub(crate) fn record(&self, key: Digest) -> Option<Record> {
        read_record(&self.record_path(key))
    }

    /// Stores a resolution.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
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

    /// Returns the names of modules, each with the recorded distributions that contain it.
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

    /// Returns the wheels of the owner's directories that were read before, by path.
    pub(crate) fn listed(&self) -> BTreeMap<String, ListedWheel> {
        let bytes = files::read(&self.root.join(LISTED), MAX_LIST_BYTES);
        bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Stores that list. Without it, the wheels are read again.
    pub(crate) fn put_listed(&self, listed: &BTreeMap<String, ListedWheel>) {
        if let Ok(bytes) = serde_json::to_vec(listed) {
            let _ = self.put(&self.root.join(LISTED), &bytes);
        }
    }

    /// Returns the path of a wheel, whether it exists or not.
    ///
    /// # Errors
    ///
    /// Fails if the name is not that of a wheel.
    pub(crate) fn wheel_path(
        &self,
        file_name: &str,
        digest: Digest,
    ) -> Result<PathBuf, PackageError> {
        // Rejects a name that would lead to another directory.
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
