//! Patches of wheels: files that isolet changes before a session sees them. They are data in
//! `patches/`, each for one build of a package.
//!
//! A wheel of another digest is never changed.

use std::io;
use std::sync::OnceLock;

use isolet_pyodide_assets::Digest;
use serde::Deserialize;

use super::wheel::is_native;

const PATCHES: [&str; 1] = [include_str!("patches/numpy-2.4.3.toml")];

/// The changes of one wheel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WheelPatch {
    wheel: PatchedWheel,
    #[serde(rename = "file")]
    files: Vec<FilePatch>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchedWheel {
    sha256: String,
}

/// The changes of one file of a wheel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePatch {
    path: String,
    /// The digest of the file in the wheel.
    sha256: String,
    /// The size and the digest of the changed file.
    size: u64,
    patched: String,
    #[serde(rename = "edit")]
    edits: Vec<Edit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    why: String,
    at: usize,
    find: String,
    replace: String,
}

impl WheelPatch {
    /// Returns the patch of the wheel with this digest, if there is one.
    pub(super) fn of(wheel: Digest) -> Option<&'static Self> {
        let wheel = wheel.to_string();
        all().iter().find(|patch| patch.wheel.sha256 == wheel)
    }

    /// Returns the changes of the file with this path in the wheel.
    pub(super) fn file(&self, path: &str) -> Option<&FilePatch> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns what identifies the changes.
    pub(super) fn key(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.patched.as_str())
    }
}

impl FilePatch {
    /// Returns the size of the changed file, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Changes the file.
    ///
    /// # Errors
    ///
    /// Fails if the file or the outcome is not the expected one.
    pub(super) fn apply(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let refused = |reason: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("`{}`: {reason}", self.path))
        };
        if Digest::of(bytes).to_string() != self.sha256 {
            return Err(refused("it is not the file that the patch is for"));
        }
        let changed = self.changed(bytes).map_err(|edit| refused(&misfit(edit)))?;
        if Digest::of(&changed).to_string() != self.patched {
            return Err(refused("the patch does not make the file that it should"));
        }
        Ok(changed)
    }

    /// Makes all edits. The error is the one that does not fit.
    fn changed(&self, bytes: &[u8]) -> Result<Vec<u8>, &Edit> {
        let is_native = is_native(&self.path);
        let mut changed = Vec::new();
        let mut done = 0;
        for edit in &self.edits {
            done = edit.make(bytes, done, is_native, &mut changed).ok_or(edit)?;
        }
        changed.extend_from_slice(bytes.get(done..).unwrap_or_default());
        Ok(changed)
    }
}

impl Edit {
    /// Copies what is before it, and the change; returns where what follows begins.
    fn make(
        &self,
        bytes: &[u8],
        done: usize,
        is_native: bool,
        changed: &mut Vec<u8>,
    ) -> Option<usize> {
        let found = written(&self.find, is_native)?;
        let end = self.at.checked_add(found.len())?;
        if bytes.get(self.at..end)? != found {
            return None;
        }
        changed.extend_from_slice(bytes.get(done..self.at)?);
        changed.extend(written(&self.replace, is_native)?);
        Some(end)
    }
}

fn misfit(edit: &Edit) -> String {
    format!("the patch does not find what it changes at {}: {}", edit.at, edit.why)
}

fn written(text: &str, is_native: bool) -> Option<Vec<u8>> {
    if !is_native {
        return Some(text.as_bytes().to_vec());
    }
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

/// Returns all patches. A test rules out that one is not valid.
fn all() -> &'static [WheelPatch] {
    static PARSED: OnceLock<Vec<WheelPatch>> = OnceLock::new();
    PARSED.get_or_init(|| PATCHES.iter().filter_map(|text| toml::from_str(text).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &[u8] = b"one two three";

    fn patch(path: &str, edits: &[(usize, &str, &str)], patched: &[u8]) -> FilePatch {
        FilePatch {
            path: path.to_owned(),
            sha256: Digest::of(ORIGINAL).to_string(),
            size: patched.len() as u64,
            patched: Digest::of(patched).to_string(),
            edits: edits
                .iter()
                .map(|&(at, find, replace)| Edit {
                    why: "a change".to_owned(),
                    at,
                    find: find.to_owned(),
                    replace: replace.to_owned(),
                })
                .collect(),
        }
    }

    #[test]
    fn every_file_of_patches_is_valid_and_its_edits_follow_one_another() {
        assert_eq!(all().len(), PATCHES.len());
        for wheel in all() {
            wheel.wheel.sha256.parse::<Digest>().unwrap();
            for file in &wheel.files {
                file.patched.parse::<Digest>().unwrap();
                file.sha256.parse::<Digest>().unwrap();
                let mut done = 0;
                for edit in &file.edits {
                    assert!(edit.at >= done && !edit.why.is_empty(), "{edit:?}");
                    let length = |text| written(text, is_native(&file.path)).map(|it| it.len());
                    assert!(length(&edit.find) > Some(0) && length(&edit.replace).is_some());
                    done = edit.at + length(&edit.find).unwrap();
                }
            }
        }
    }

    #[test]
    fn edits_change_a_file_and_its_length() {
        let text =
            patch("a.py", &[(0, "one", "1"), (8, "three", "three four")], b"1 two three four");
        assert_eq!(text.apply(ORIGINAL).unwrap(), b"1 two three four");
        let native = patch("a.so", &[(4, "74 77\n6f", "32")], b"one 2 three");
        assert_eq!(native.apply(ORIGINAL).unwrap(), b"one 2 three");
    }

    #[test]
    fn a_file_that_is_not_as_expected_before_or_after_is_refused() {
        let error = patch("a.py", &[], b"2").apply(b"other").unwrap_err();
        assert_eq!(error.to_string(), "`a.py`: it is not the file that the patch is for");
        for (at, find) in [(0, "two"), (11, "ee?"), (99, "")] {
            let error = patch("a.py", &[(at, find, "2")], b"2").apply(ORIGINAL).unwrap_err();
            let told = format!("the patch does not find what it changes at {at}: a change");
            assert_eq!(error.to_string(), format!("`a.py`: {told}"));
        }
        let error = patch("a.py", &[(0, "one", "1")], b"other").apply(ORIGINAL).unwrap_err();
        assert_eq!(error.to_string(), "`a.py`: the patch does not make the file that it should");
    }
}
