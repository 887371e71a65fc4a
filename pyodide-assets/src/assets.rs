//! Opens a directory of assets. All returned bytes were checked against the lock, in memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::lock::{Lock, LockedFile, lock};
use crate::{Digest, Error};

const WASM: &str = "pyodide.asm.wasm";

/// The files that [`Assets`] holds, in the order of its fields. A lock must name all of them.
pub(crate) const NAMES: [&str; 4] =
    [WASM, "pyodide.asm.mjs", "python_stdlib.zip", "pyodide-lock.json"];

/// The verified files of one Pyodide release, in memory.
///
/// Each file is read once. The accessors return exactly the bytes whose size and sha256 matched the
/// lock, so later changes on disk have no effect. Cheap to clone. A file's memory is freed when its
/// last clone is dropped, so a holder can keep one file and drop the rest.
#[derive(Clone)]
pub struct Assets {
    files: [Arc<[u8]>; NAMES.len()],
    digest: Digest,
}

impl Assets {
    /// Reads and checks every locked file in `dir`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], [`Error::Read`], [`Error::Size`] or [`Error::Digest`] for the first file
    /// that does not match the lock.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_locked(lock()?, dir)
    }

    /// Reads and checks only `pyodide-lock.json` in `dir`.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_lock_json(dir: &Path) -> Result<Arc<[u8]>, Error> {
        let [.., name] = NAMES;
        let file = lock()?.files().iter().find(|file| file.name() == name);
        read(dir, file.ok_or_else(|| Error::lock(format!("`{name}` is not in it")))?)
    }

    pub(crate) fn open_locked(lock: &Lock, dir: &Path) -> Result<Self, Error> {
        let find = |name: &str| {
            let file = lock.files().iter().find(|file| file.name() == name);
            file.ok_or_else(|| Error::lock(format!("`{name}` is not in it")))
        };
        // One file contains two thirds of the bytes, so it is hashed in parallel to the others.
        let [_, asm_mjs, stdlib_zip, lock_json] = NAMES;
        thread::scope(|scope| {
            let wasm = find(WASM)?;
            let wasm = scope.spawn(move || read(dir, wasm));
            let rest = [asm_mjs, stdlib_zip, lock_json];
            let rest = rest.map(|name| read(dir, find(name)?));
            let wasm = wasm.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let [asm_mjs, stdlib_zip, lock_json] = rest;
            let files = [wasm, asm_mjs?, stdlib_zip?, lock_json?];
            Ok(Self { files, digest: lock.digest() })
        })
    }

    /// Returns `pyodide.asm.wasm`: CPython compiled to WebAssembly.
    #[must_use]
    pub fn asm_wasm(&self) -> &Arc<[u8]> {
        &self.files[0]
    }

    /// Returns `pyodide.asm.mjs`: the Emscripten module that instantiates it.
    #[must_use]
    pub fn asm_mjs(&self) -> &Arc<[u8]> {
        &self.files[1]
    }

    /// Returns `python_stdlib.zip`: the standard library.
    #[must_use]
    pub fn stdlib_zip(&self) -> &Arc<[u8]> {
        &self.files[2]
    }

    /// Returns `pyodide-lock.json`: the packages built for this release.
    #[must_use]
    pub fn lock_json(&self) -> &Arc<[u8]> {
        &self.files[3]
    }

    /// Returns the digest that identifies the content of all files together; see [`Lock::digest`].
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl fmt::Debug for Assets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assets").field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Reads `file` in `dir` and checks the bytes that it returns.
pub(crate) fn read(dir: &Path, file: &LockedFile) -> Result<Arc<[u8]>, Error> {
    let path = dir.join(file.name());
    let unreadable = |cause| Error::read(&path, cause);
    let mut source = File::open(&path).map_err(unreadable)?;
    let metadata = source.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    if metadata.len() != file.size() {
        return Err(Error::size(&path, file, metadata.len()));
    }
    let length = usize::try_from(file.size()).map_err(|error| Error::lock(error.to_string()))?;
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    if let Some(buffer) = Arc::get_mut(&mut bytes) {
        source.read_exact(buffer).map_err(unreadable)?;
    }
    let got = Digest::of(&bytes);
    if got != file.sha256() {
        return Err(Error::Digest { path, expected: file.sha256(), got });
    }
    Ok(bytes)
}
