//! The lock: the release, its files with their digests, and the sources.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};

use crate::{Digest, Error, assets};

/// The maximum size of a file, in bytes. A typing error in the lock must not fill a disk.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The release of Pyodide that isolet runs, file by file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: String,
    sources: Vec<String>,
    tarball: Tarball,
    #[serde(rename = "file")]
    files: Vec<LockedFile>,
}

/// One file of the release.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedFile {
    name: String,
    #[serde(deserialize_with = "digest")]
    sha256: Digest,
    size: u64,
    license: String,
}

/// The npm package that contains the files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tarball {
    package: String,
    name: String,
    #[serde(deserialize_with = "digest")]
    sha256: Digest,
    size: u64,
}

/// Returns the lock that this crate was built with. Parses it on the first call.
///
/// # Errors
///
/// [`Error::Lock`] if the embedded file is not a valid lock, which a test of this crate rules out.
pub fn lock() -> Result<&'static Lock, Error> {
    static LOCK: OnceLock<Lock> = OnceLock::new();
    if let Some(lock) = LOCK.get() {
        return Ok(lock);
    }
    let lock = Lock::parse(include_str!("../lock.toml"))?;
    Ok(LOCK.get_or_init(|| lock))
}

impl Lock {
    /// Returns the version of Pyodide, such as `314.0.7`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the URLs to download a file from, in the order in which they are tried. `{file}`
    /// stands for the file's name.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// Returns the npm package that contains the files.
    #[must_use]
    pub fn tarball(&self) -> &Tarball {
        &self.tarball
    }

    /// Returns every file that isolet uses.
    #[must_use]
    pub fn files(&self) -> &[LockedFile] {
        &self.files
    }

    /// Returns the sha256 over the names and digests of all files. Two locks with equal digests
    /// name the same bytes, so it can be part of the key of anything built from them.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        for file in &self.files {
            hasher.update(format!("{} {}\n", file.sha256, file.name));
        }
        Digest::finish(hasher)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let lock: Self =
            toml::from_str(text).map_err(|error| Error::lock(error.to_string().trim_end()))?;
        lock.check()?;
        Ok(lock)
    }

    fn check(&self) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        let archive = (&self.tarball.name, self.tarball.size);
        for (name, size) in self.files.iter().map(|file| (&file.name, file.size)).chain([archive]) {
            if name.starts_with('.') || name.contains(['/', '\\', ':']) || name.is_empty() {
                return Err(Error::lock(format!("`{name}` is not a plain file name")));
            }
            if size > MAX_FILE_BYTES {
                return Err(Error::lock(format!(
                    "`{name}` is too large ({size} bytes, at most {MAX_FILE_BYTES})"
                )));
            }
            if !names.insert(name.as_str()) {
                return Err(Error::lock(format!("`{name}` is in it twice")));
            }
        }
        if let Some(name) = assets::NAMES.iter().find(|name| !names.contains(*name)) {
            return Err(Error::lock(format!("`{name}` is not in it")));
        }
        for source in &self.sources {
            if !source.starts_with("https://") || !source.contains("{file}") {
                return Err(Error::lock(format!(
                    "source `{source}` is not an HTTPS address with `{{file}}` in it"
                )));
            }
        }
        Ok(())
    }
}

impl LockedFile {
    /// Returns the file's name, without a directory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sha256 of its content.
    #[must_use]
    pub fn sha256(&self) -> Digest {
        self.sha256
    }

    /// Returns its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns its licences, as an SPDX expression.
    #[must_use]
    pub fn license(&self) -> &str {
        &self.license
    }
}

impl Tarball {
    /// Returns the package's name in the npm registry.
    #[must_use]
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Returns the name of the archive that `npm pack` writes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sha256 of that archive.
    #[must_use]
    pub fn sha256(&self) -> Digest {
        self.sha256
    }

    /// Returns the size of that archive, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMBEDDED: &str = include_str!("../lock.toml");

    #[test]
    fn embedded_lock_is_valid_and_of_one_version() {
        let lock = lock().unwrap();
        assert_eq!(lock.files().len(), assets::NAMES.len());
        assert!(lock.sources().iter().all(|source| source.contains(lock.version())));
        let tarball = lock.tarball();
        assert_eq!(tarball.name(), format!("{}-{}.tgz", tarball.package(), lock.version()));
        assert!(lock.files().iter().all(|file| !file.license().is_empty()));
    }

    #[test]
    fn digest_changes_with_any_file() {
        let (first, other) = (first().sha256().to_string(), Digest::of(b"other").to_string());
        let changed = EMBEDDED.replace(&first, &other);
        assert_ne!(Lock::parse(&changed).unwrap().digest(), lock().unwrap().digest());
    }

    fn first() -> &'static LockedFile {
        &lock().unwrap().files()[0]
    }

    #[track_caller]
    fn refused(from: &str, to: &str) -> String {
        assert!(EMBEDDED.contains(from), "{from}");
        Lock::parse(&EMBEDDED.replace(from, to)).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_in_a_lock_are_named() {
        assert_eq!(
            refused("\"pyodide-lock.json\"", "\"../pyodide-lock.json\""),
            "the asset lock is not valid: `../pyodide-lock.json` is not a plain file name"
        );
        assert_eq!(
            refused("\"pyodide-lock.json\"", "\"pyodide.js\""),
            "the asset lock is not valid: `pyodide-lock.json` is not in it"
        );
        assert_eq!(
            refused("\"pyodide-lock.json\"", "\"pyodide.asm.mjs\""),
            "the asset lock is not valid: `pyodide.asm.mjs` is in it twice"
        );
        assert_eq!(
            refused(&format!("size = {}\n", first().size()), "size = 959821800\n"),
            "the asset lock is not valid: `pyodide.asm.wasm` is too large \
             (959821800 bytes, at most 268435456)"
        );
        assert_eq!(
            refused("https://cdn.jsdelivr.net/npm", "http://cdn.jsdelivr.net/npm"),
            format!(
                "the asset lock is not valid: source \
                 `http://cdn.jsdelivr.net/npm/pyodide@{}/{{file}}` is not an HTTPS address with \
                 `{{file}}` in it",
                lock().unwrap().version()
            )
        );
        let cut = refused(&first().sha256().to_string(), "cc36");
        assert!(cut.contains("is not a sha256 of 64 hexadecimal digits"));
    }
}
