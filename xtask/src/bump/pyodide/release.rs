//! A release of Pyodide: what the files of its npm package contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isolet_pyodide_assets::{Digest, lock};
use serde_json::Value;

use super::formats;
use crate::bump::registry::Package;

/// The file that boots Pyodide elsewhere; `js/pyodide.js` does it here.
const LOADER: &str = "pyodide.mjs";

/// A file that isolet uses.
#[derive(Debug, PartialEq)]
pub(super) struct File {
    pub(super) sha256: Digest,
    pub(super) size: usize,
}

/// The archive of npm.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) sha256: Digest,
    pub(super) size: usize,
}

/// A package that was built for the release.
#[derive(Debug, PartialEq)]
pub(super) struct Wheel {
    pub(super) version: String,
    pub(super) sha256: String,
}

/// A release.
pub(super) struct Release {
    pub(super) version: String,
    /// Where its files are.
    pub(super) directory: PathBuf,
    /// `None` if the files are those that the repository has.
    pub(super) archive: Option<Archive>,
    /// The files that isolet uses, but for those that it has no more.
    pub(super) files: BTreeMap<String, File>,
    /// The versions that the release names: Python, ABI, platform.
    pub(super) info: BTreeMap<String, String>,
    pub(super) wheels: BTreeMap<String, Wheel>,
    /// The text of `pyodide.asm.mjs`.
    pub(super) module: String,
    /// What `pyodide.asm.wasm` exports.
    pub(super) exports: BTreeSet<String>,
    /// The files of Python's standard library, with their checksums.
    pub(super) library: BTreeMap<String, u32>,
    pub(super) loader: Option<Digest>,
}

impl Release {
    /// Reads the files of a package.
    pub(super) fn of_package(version: &str, package: Package) -> Result<Self> {
        let archive = Archive { sha256: package.sha256, size: package.size };
        Self::read(version, package.files, Some(archive))
    }

    /// Reads the files of a directory.
    pub(super) fn read(
        version: &str,
        directory: PathBuf,
        archive: Option<Archive>,
    ) -> Result<Self> {
        let file = |name: &str| read(&directory, name);
        let mut files = BTreeMap::new();
        for name in lock()?.files().iter().map(isolet_pyodide_assets::LockedFile::name) {
            if let Some(bytes) = file(name)? {
                let file = File { sha256: Digest::of(&bytes), size: bytes.len() };
                files.insert(name.to_owned(), file);
            }
        }
        let listed = file("pyodide-lock.json")?.unwrap_or_default();
        let listed: Value = serde_json::from_slice(&listed)
            .with_context(|| format!("`pyodide-lock.json` of Pyodide {version} is no JSON"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = |key: &str| listed[key].as_object().into_iter().flatten();
        let wheels = entries("packages").map(|(name, package)| {
            let (version, sha256) = (text(&package["version"]), text(&package["sha256"]));
            (name.clone(), Wheel { version, sha256 })
        });
        let wasm = file("pyodide.asm.wasm")?.unwrap_or_default();
        let exports = formats::exports(&wasm);
        let library = formats::members(&file("python_stdlib.zip")?.unwrap_or_default());
        Ok(Self {
            version: version.to_owned(),
            info: entries("info").map(|(key, value)| (key.clone(), text(value))).collect(),
            wheels: wheels.collect(),
            module: String::from_utf8_lossy(&file("pyodide.asm.mjs")?.unwrap_or_default()).into(),
            exports: exports.context("`pyodide.asm.wasm` is no WebAssembly module")?,
            library: library.context("`python_stdlib.zip` is no zip archive")?,
            loader: file(LOADER)?.map(|bytes| Digest::of(&bytes)),
            files,
            archive,
            directory,
        })
    }

    pub(super) fn loader_path(&self) -> PathBuf {
        self.directory.join(LOADER)
    }
}

/// Reads a file, if there is one.
fn read(directory: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    match fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => bail!("cannot read `{name}`: {error}"),
    }
}
