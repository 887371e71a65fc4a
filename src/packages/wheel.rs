//! A verified, open wheel.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use isolet_pyodide_assets::Digest;
use pep440_rs::Version;

use super::archive::{Archive, ArchiveFile, check_parents, check_path};
use super::error::PackageError;
use super::inflate_cache::InflateCache;
use super::metadata::Metadata;
use super::patch::{FileChange, WheelPatch};
use super::requirement::normalised;
use super::wheel_name::WheelName;

/// The maximum size of a wheel, in bytes. Wheels in use are held in memory.
pub(crate) const MAX_WHEEL_BYTES: u64 = 256 << 20;

/// The maximum size of `METADATA`, in bytes. It has the package's description, too.
const MAX_METADATA_BYTES: u64 = 16 << 20;

/// The maximum size of a file that isolet changes, in bytes.
const MAX_PATCHED_BYTES: u64 = 64 << 20;

/// A wheel that the guest's interpreter can load. Its bytes are in memory, so that the bytes that
/// were hashed are those that are read.
pub(crate) struct Wheel {
    name: String,
    version: Version,
    file_name: String,
    digest: Digest,
    imports: BTreeSet<String>,
    metadata: Metadata,
    files: Vec<WheelFile>,
    bytes: Arc<[u8]>,
    archive: Archive,
    inflated: Mutex<InflateCache>,
    modules: OnceLock<Vec<(usize, Digest)>>,
    patch: Option<Arc<WheelPatch>>,
}

/// A file of a wheel, as it appears in `site-packages`.
#[derive(Debug)]
pub(crate) struct WheelFile {
    /// Its path in `site-packages`.
    pub(crate) path: String,
    file: ArchiveFile,
    /// What changes it: a patch, and which of its files this one is.
    patch: Option<(Arc<WheelPatch>, usize)>,
}

impl WheelFile {
    /// Returns its size, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.change().map_or(self.file.size, FileChange::size)
    }

    fn change(&self) -> Option<&FileChange> {
        let (patch, file) = self.patch.as_ref()?;
        patch.change(*file)
    }
}

impl Wheel {
    /// Opens a wheel with this file name.
    ///
    /// # Errors
    ///
    /// Fails if the wheel is for another interpreter, its archive is invalid, or its contents do
    /// not match its name.
    pub(crate) fn open(file_name: &str, bytes: Arc<[u8]>) -> Result<Self, PackageError> {
        let digest = Digest::of(&bytes);
        Self::of_digest(file_name, bytes, digest)
    }

    /// Opens a wheel with this file name, whose bytes were found to have this digest.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub(crate) fn of_digest(
        file_name: &str,
        bytes: Arc<[u8]>,
        digest: Digest,
    ) -> Result<Self, PackageError> {
        let mut wheel = Self::unchanged(file_name, bytes, digest)?;
        wheel.change();
        Ok(wheel)
    }

    /// Opens a wheel with this file name, whose bytes were found to have this digest, and whose
    /// files are as isolet needs them.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub(crate) fn unchanged(
        file_name: &str,
        bytes: Arc<[u8]>,
        digest: Digest,
    ) -> Result<Self, PackageError> {
        let refused = |reason: String| PackageError::wheel(file_name, reason);
        let WheelName { name, version, rank } = file_name.parse()?;
        if rank.is_none() {
            return Err(refused("it is for another interpreter or platform".to_owned()));
        }
        let archive = Archive::open(Arc::clone(&bytes)).map_err(refused)?;
        let metadata = metadata(&archive, &name).map_err(refused)?;
        let is_same = Version::from_str(&metadata.version).is_ok_and(|said| said == version);
        if normalised(&metadata.name) != name || !is_same {
            let says = format!("{} {}", metadata.name, metadata.version);
            return Err(refused(format!("its METADATA says `{says}`, its name {name} {version}")));
        }
        let files = files(&archive, &name).map_err(refused)?;
        let imports = imports(&files);
        Ok(Self {
            name,
            version,
            file_name: file_name.to_owned(),
            digest,
            imports,
            metadata,
            files,
            bytes,
            archive,
            inflated: Mutex::default(),
            modules: OnceLock::new(),
            patch: None,
        })
    }

    /// Has its files changed as the patch of the package says, if there is one.
    fn change(&mut self) {
        let read = |path: &str| {
            let file = self.files.iter().find(|file| file.path == path)?;
            if file.file.size > MAX_PATCHED_BYTES {
                return None;
            }
            Some(self.archive.read(&file.file).ok()?.to_vec())
        };
        let patch = WheelPatch::of(self.digest, &self.name, &self.version, read).map(Arc::new);
        if let Some(patch) = &patch {
            for file in &mut self.files {
                file.patch = patch.file(&file.path).map(|which| (Arc::clone(patch), which));
            }
        }
        self.patch = patch;
    }

    /// Returns the normalised name of the distribution.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the distribution's version.
    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// Returns the wheel's file name.
    pub(crate) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the digest of the wheel.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns what identifies the changes that isolet makes to its files.
    pub(crate) fn patch_key(&self) -> impl Iterator<Item = &str> {
        self.patch.iter().flat_map(|patch| patch.key())
    }

    /// Returns the names of its top-level modules.
    pub(crate) fn imports(&self) -> &BTreeSet<String> {
        &self.imports
    }

    /// Returns the wheel's metadata.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the wheel's files.
    pub(crate) fn files(&self) -> &[WheelFile] {
        &self.files
    }

    /// Returns the bytes of the file with this index in [`Self::files`], with isolet's changes.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or its bytes are damaged.
    pub(crate) fn read(&self, index: usize) -> io::Result<Arc<[u8]>> {
        let lock = || self.inflated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = lock().get(index) {
            return Ok(bytes);
        }
        let file = self.files.get(index).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = self.archive.read(&file.file)?;
        if let Some(change) = file.change() {
            bytes = change.apply(&bytes)?.into();
        }
        lock().put(index, &bytes);
        Ok(bytes)
    }

    /// Returns the wheel's native modules: the index of each in [`Self::files`], and its digest.
    ///
    /// # Errors
    ///
    /// Fails if the bytes of one are damaged.
    pub(crate) fn modules(&self) -> io::Result<&[(usize, Digest)]> {
        if let Some(modules) = self.modules.get() {
            return Ok(modules);
        }
        let natives = self.files.iter().enumerate().filter(|(_, file)| is_native(&file.path));
        let digests = natives.map(|(index, _)| Ok((index, Digest::of(&self.read(index)?))));
        let digests = digests.collect::<io::Result<Vec<(usize, Digest)>>>()?;
        Ok(self.modules.get_or_init(|| digests))
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("file_name", &self.file_name)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Reads `METADATA` in the only `.dist-info` directory that matches the distribution's name.
fn metadata(archive: &Archive, name: &str) -> Result<Metadata, String> {
    let mut found = archive.files().iter().filter(|file| {
        file.path.strip_suffix("/METADATA").is_some_and(|dir| belongs(dir, ".dist-info", name))
    });
    let (Some(file), None) = (found.next(), found.next()) else {
        return Err(format!("it does not have one `.dist-info/METADATA` of {name}"));
    };
    if file.size > MAX_METADATA_BYTES {
        let size = file.size;
        return Err(format!("limit {MAX_METADATA_BYTES} bytes of METADATA, needed {size}"));
    }
    let bytes = archive.read(file).map_err(|error| error.to_string())?;
    Metadata::parse(&bytes)
}

/// Returns `true` if the directory is `name-version` with this ending, in any spelling.
fn belongs(directory: &str, ending: &str, name: &str) -> bool {
    let stem = directory.strip_suffix(ending).and_then(|stem| stem.rsplit_once('-'));
    stem.is_some_and(|(stem, _)| normalised(stem) == name)
}

/// Returns where the files of the wheel go: to the same path, except that files in `.data` go where
/// an installer puts them, if that is in `site-packages`.
fn files(archive: &Archive, name: &str) -> Result<Vec<WheelFile>, String> {
    let mut files = Vec::with_capacity(archive.files().len());
    let mut seen = HashSet::new();
    for file in archive.files() {
        let path = match file.path.split_once('/') {
            Some((top, rest)) if belongs(top, ".data", name) => match rest.split_once('/') {
                Some(("purelib" | "platlib", path)) => {
                    // A path that is plain behind these directories need not be plain without them.
                    check_path(path)?;
                    path
                }
                _ => continue,
            },
            _ => file.path.as_str(),
        };
        if !seen.insert(path.to_lowercase()) {
            return Err(format!("two of its files go to `{path}`"));
        }
        files.push(WheelFile { path: path.to_owned(), file: file.clone(), patch: None });
    }
    check_parents(files.iter().map(|file| file.path.as_str()))?;
    Ok(files)
}

fn imports(files: &[WheelFile]) -> BTreeSet<String> {
    let mut imports = BTreeSet::new();
    for file in files {
        let is_module = file.path.rsplit('.').next() == Some("py") || is_native(&file.path);
        let stem = match file.path.split_once('/') {
            Some((top, _)) => top,
            None => file.path.split('.').next().unwrap_or_default(),
        };
        if is_module && is_identifier(stem) {
            imports.insert(stem.to_owned());
        }
    }
    imports
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_numeric())
        && !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns `true` if the name is that of a native module or library: `.so`, or `.so` and a version.
pub(super) fn is_native(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').skip(1).any(|part| part == "so")
}
