//! Reads the `METADATA` file of a wheel.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use super::interpreter::PYTHON;

/// The maximum size of the headers that are read, in bytes, and the maximum number of dependencies.
const MAX_HEADER_BYTES: usize = 1 << 20;
const MAX_DEPENDENCIES: usize = 5000;

/// The metadata of a distribution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its requirements as text. They are parsed only when needed.
    pub(crate) requires: Vec<String>,
    pub(crate) requires_python: Option<String>,
}

impl Metadata {
    /// Parses the headers, which end at the first empty line.
    ///
    /// # Errors
    ///
    /// Fails if the headers are too long, too many or not UTF-8.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut metadata = Self::default();
        let mut read = 0;
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                break;
            }
            read += line.len() + 1;
            if read > MAX_HEADER_BYTES {
                return Err(format!("limit {MAX_HEADER_BYTES} bytes of metadata, needed {read}"));
            }
            let line = std::str::from_utf8(line).map_err(|_| "its METADATA is not UTF-8")?;
            let Some((header, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match header.to_ascii_lowercase().as_str() {
                "name" => value.clone_into(&mut metadata.name),
                "version" => value.clone_into(&mut metadata.version),
                "requires-python" => metadata.requires_python = Some(value.to_owned()),
                "requires-dist" => metadata.requires.push(value.to_owned()),
                _ => {}
            }
            if metadata.requires.len() > MAX_DEPENDENCIES {
                return Err(format!("limit {MAX_DEPENDENCIES} dependencies, has more"));
            }
        }
        Ok(metadata)
    }

    /// Returns `true` unless the metadata excludes the guest's Python.
    pub(crate) fn fits_python(&self) -> bool {
        let Some(wanted) = &self.requires_python else {
            return true;
        };
        let specifiers = VersionSpecifiers::from_str(wanted);
        let python = Version::from_str(PYTHON);
        matches!((specifiers, python), (Ok(specifiers), Ok(python)) if specifiers.contains(&python))
    }
}
