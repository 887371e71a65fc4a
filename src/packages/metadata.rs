//! The `METADATA` file of a wheel.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use super::interpreter::PYTHON;

/// The most bytes of the headers that are read, and the most dependencies.
const MAX_HEADER_BYTES: usize = 1 << 20;
const MAX_DEPENDENCIES: usize = 5000;

/// What a distribution says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its requirements as they are written: they are read only if they are needed.
    pub(crate) requires: Vec<String>,
    pub(crate) requires_python: Option<String>,
}

impl Metadata {
    /// Reads the headers, which end at the first empty line.
    ///
    /// # Errors
    ///
    /// They are too long or too many, or not UTF-8.
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

    /// Returns whether it is for the guest's Python, as far as it says.
    pub(crate) fn fits_python(&self) -> bool {
        let Some(wanted) = &self.requires_python else {
            return true;
        };
        let specifiers = VersionSpecifiers::from_str(wanted);
        let python = Version::from_str(PYTHON);
        matches!((specifiers, python), (Ok(specifiers), Ok(python)) if specifiers.contains(&python))
    }
}
