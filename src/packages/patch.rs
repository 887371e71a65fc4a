//! Patches of wheels: files that isolet changes before a session sees them. They are data in
//! `patches/`, each for some versions of a package, which say how to find what they change.
//!
//! A wheel is changed in all places or, if one is not found exactly once, not at all. What becomes
//! of the builds that isolet was tested with is known, and checked.

use std::io;
use std::str::FromStr;
use std::sync::OnceLock;

use isolet_pyodide_assets::Digest;
use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;

use super::signature::{Change, Numbers, Signature, Written};
use super::wasm::Module;
use super::wheel::is_native;

const PATCHES: [&str; 2] =
    [include_str!("patches/numpy.toml"), include_str!("patches/pandas.toml")];

/// The changes of some versions of a package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    package: String,
    versions: String,
    #[serde(rename = "build")]
    builds: Vec<Build>,
    #[serde(rename = "file")]
    files: Vec<FilePatch>,
}

/// A build of which is known what the changes make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    /// The digest of the wheel.
    wheel: String,
    /// In the order of the patch's files.
    files: Vec<Changed>,
}

/// A file after the changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    size: u64,
    sha256: String,
}

/// How to change one file of a wheel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePatch {
    path: String,
    #[serde(rename = "edit")]
    edits: Vec<Edit>,
}

/// A place in a file: what is there, and what is to be there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    why: String,
    find: String,
    /// What comes for the part of `find` in parentheses. Without, the place only tells numbers.
    replace: Option<String>,
    /// A name for the number of the function in which the place is.
    function: Option<String>,
}

/// The changes of one wheel.
#[derive(Debug)]
pub(super) struct WheelPatch {
    files: Vec<FileChange>,
}

/// The changes of one file of a wheel.
#[derive(Debug)]
pub(super) struct FileChange {
    patch: &'static FilePatch,
    changed: Changed,
}

impl WheelPatch {
    /// Returns the changes of a wheel, if it has all places of a patch. `read` returns the file of
    /// a path. It is asked only if the build is not a known one.
    pub(super) fn of(
        wheel: Digest,
        package: &str,
        version: &Version,
        read: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let patch = all().iter().find(|patch| patch.is_for(package, version))?;
        let wheel = wheel.to_string();
        let known = patch.builds.iter().find(|build| build.wheel == wheel);
        let changed = match known {
            Some(build) => build.files.clone(),
            None => patch.try_out(read)?,
        };
        let files = patch.files.iter().zip(changed);
        Some(Self { files: files.map(|(patch, changed)| FileChange { patch, changed }).collect() })
    }

    /// Returns the changes of the file with this path in the wheel.
    pub(super) fn file(&self, path: &str) -> Option<usize> {
        self.files.iter().position(|file| file.patch.path == path)
    }

    /// Returns those of the file with this number.
    pub(super) fn change(&self, file: usize) -> Option<&FileChange> {
        self.files.get(file)
    }

    /// Returns what identifies the changes.
    pub(super) fn key(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.changed.sha256.as_str())
    }
}

impl FileChange {
    /// Returns the size of the changed file, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.changed.size
    }

    /// Changes the file.
    ///
    /// # Errors
    ///
    /// Fails if a place or the outcome is not the expected one.
    pub(super) fn apply(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let refused = |reason: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("`{}`: {reason}", self.patch.path))
        };
        let changed = self.patch.apply(bytes).map_err(refused)?;
        if Digest::of(&changed).to_string() != self.changed.sha256 {
            return Err(refused("the patch does not make the file that it should".to_owned()));
        }
        Ok(changed)
    }
}

impl Patch {
    fn is_for(&self, package: &str, version: &Version) -> bool {
        let versions = VersionSpecifiers::from_str(&self.versions);
        self.package == package && versions.is_ok_and(|versions| versions.contains(version))
    }

    /// Makes all changes, to see whether they can be made.
    fn try_out(&self, read: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Vec<Changed>> {
        let change = |file: &FilePatch| {
            let changed = file.apply(&read(&file.path)?).ok()?;
            let sha256 = Digest::of(&changed).to_string();
            Some(Changed { size: changed.len() as u64, sha256 })
        };
        self.files.iter().map(change).collect()
    }
}

impl FilePatch {
    fn apply(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if is_native(&self.path) { self.apply_native(bytes) } else { self.apply_text(bytes) }
    }

    /// Changes a text.
    fn apply_text(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut text = String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())?;
        for edit in &self.edits {
            if text.matches(&edit.find).count() != 1 {
                return Err(edit.is_not_there());
            }
            text = text.replacen(&edit.find, edit.replace.as_deref().unwrap_or_default(), 1);
        }
        Ok(text.into_bytes())
    }

    /// Changes a native module.
    fn apply_native(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let module = Module::parse(bytes)
            .map_err(|error| format!("it is no WebAssembly module: {error}"))?;
        let mut numbers = Numbers::of(&module);
        let mut places = Vec::new();
        for edit in &self.edits {
            let signature = Signature::from_str(&edit.find)?;
            let place = signature.find(bytes, &mut numbers).ok_or_else(|| edit.is_not_there())?;
            if let Some(name) = &edit.function {
                let function = module.function_at(place.start);
                numbers.insert(name, function.ok_or_else(|| edit.is_not_there())?);
            }
            places.push(place);
        }
        let mut changes = Vec::new();
        for (edit, place) in self.edits.iter().zip(places) {
            if let Some(replace) = &edit.replace {
                let bytes = Written::from_str(replace)?.bytes(&numbers);
                changes.push(Change { place, bytes: bytes.ok_or_else(|| edit.is_not_there())? });
            }
        }
        module.with(changes)
    }
}

impl Edit {
    fn is_not_there(&self) -> String {
        format!("the patch does not find exactly one place of: {}", self.why)
    }
}

/// Returns all patches. A test rules out that one is not valid.
fn all() -> &'static [Patch] {
    static PARSED: OnceLock<Vec<Patch>> = OnceLock::new();
    PARSED.get_or_init(|| PATCHES.iter().filter_map(|text| toml::from_str(text).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"one two three";

    fn patch(path: &'static str, edits: &[(&str, &str)]) -> &'static FilePatch {
        let edits = edits.iter().map(|&(find, replace)| Edit {
            why: "a change".to_owned(),
            find: find.to_owned(),
            replace: Some(replace.to_owned()),
            function: None,
        });
        Box::leak(Box::new(FilePatch { path: path.to_owned(), edits: edits.collect() }))
    }

    #[test]
    fn every_file_of_patches_is_valid() {
        assert_eq!(all().len(), PATCHES.len());
        for patch in all() {
            VersionSpecifiers::from_str(&patch.versions).unwrap();
            for build in &patch.builds {
                build.wheel.parse::<Digest>().unwrap();
                assert_eq!(build.files.len(), patch.files.len());
                for file in &build.files {
                    file.sha256.parse::<Digest>().unwrap();
                }
            }
            for file in &patch.files {
                for edit in file.edits.iter().filter(|_| is_native(&file.path)) {
                    let signature = Signature::from_str(&edit.find).unwrap();
                    assert_eq!(signature.has_span(), edit.replace.is_some(), "{}", edit.why);
                    if let Some(replace) = &edit.replace {
                        Written::from_str(replace).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_changes_where_it_is_told_and_only_if_each_place_is_there_once() {
        let patched = patch("a.py", &[("one", "1"), ("three", "three four")]).apply(TEXT).unwrap();
        assert_eq!(patched, b"1 two three four");
        for find in ["four", "e"] {
            let error = patch("a.py", &[("one", "1"), (find, "2")]).apply(TEXT).unwrap_err();
            assert_eq!(error, "the patch does not find exactly one place of: a change");
        }
    }

    #[test]
    fn a_file_that_does_not_become_what_it_should_is_refused() {
        let changed = Changed { size: 1, sha256: Digest::of(b"other").to_string() };
        let change = FileChange { patch: patch("a.py", &[("one", "1")]), changed };
        let error = change.apply(TEXT).unwrap_err();
        assert_eq!(error.to_string(), "`a.py`: the patch does not make the file that it should");
        let error = patch("a.so", &[("00", "01")]).apply(TEXT).unwrap_err();
        assert!(error.starts_with("it is no WebAssembly module: "), "{error}");
    }

    #[test]
    fn a_wheel_is_changed_in_all_its_files_or_in_none() {
        let patch = Patch {
            package: "apples".to_owned(),
            versions: ">=1, <2".to_owned(),
            builds: Vec::new(),
            files: ["a.py", "b.py"]
                .map(|path| FilePatch {
                    path: path.to_owned(),
                    edits: vec![Edit {
                        why: "a change".to_owned(),
                        find: "one".to_owned(),
                        replace: Some("1".to_owned()),
                        function: None,
                    }],
                })
                .into(),
        };
        assert!(patch.is_for("apples", &"1.5".parse().unwrap()));
        assert!(!patch.is_for("apples", &"2.0".parse().unwrap()));
        assert!(!patch.is_for("pears", &"1.5".parse().unwrap()));
        let both = patch.try_out(|_| Some(TEXT.to_vec())).unwrap();
        assert_eq!(both[1].sha256, Digest::of(b"1 two three").to_string());
        assert!(patch.try_out(|path| (path == "a.py").then(|| TEXT.to_vec())).is_none());
        assert!(patch.try_out(|path| Some(path.as_bytes().to_vec())).is_none());
    }
}
