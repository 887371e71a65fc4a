//! The patches: what isolet changes in the text of the pinned release before it runs it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::Error;

/// The patches of `pyodide.asm.mjs`. Their directory is named after the release that they fit.
const PATCHES: &str = include_str!("../patches/314.0.7/pyodide.asm.mjs.toml");

/// One change of a text: what it has exactly once, and what comes in the place of that.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    name: String,
    why: String,
    find: String,
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchFile {
    #[serde(rename = "patch")]
    patches: Vec<Patch>,
}

/// Returns the patches of `pyodide.asm.mjs` in the order to apply them, parsing them at the first
/// call.
///
/// # Errors
///
/// [`Error::Patches`] when the embedded file is not valid, which a test of this crate rules out.
pub fn patches() -> Result<&'static [Patch], Error> {
    static PARSED: OnceLock<Vec<Patch>> = OnceLock::new();
    if let Some(patches) = PARSED.get() {
        return Ok(patches);
    }
    let patches = parse(PATCHES)?;
    Ok(PARSED.get_or_init(|| patches))
}

fn parse(text: &str) -> Result<Vec<Patch>, Error> {
    let wrong = |reason: String| Error::Patches { reason };
    let PatchFile { patches } =
        toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    let mut names = BTreeSet::new();
    for Patch { name, why, find, .. } in &patches {
        for (field, value) in [("name", name), ("why", why), ("find", find)] {
            if value.is_empty() {
                return Err(wrong(format!("`{field}` of patch `{name}` is empty")));
            }
        }
        if !names.insert(name) {
            return Err(wrong(format!("patch `{name}` is in it twice")));
        }
    }
    Ok(patches)
}

impl Patch {
    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why it is there, in one line.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The text to replace.
    #[must_use]
    pub fn find(&self) -> &str {
        &self.find
    }

    /// The text to replace it by.
    #[must_use]
    pub fn replace(&self) -> &str {
        &self.replace
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::lock;

    fn names_in(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_directory_is_of_the_pinned_release_and_every_file_in_it_is_used() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("patches");
        let version = lock().unwrap().version();
        assert_eq!(names_in(&dir), [version]);
        let dir = dir.join(version);
        assert_eq!(names_in(&dir), ["pyodide.asm.mjs.toml"]);
        let file = fs::read_to_string(dir.join("pyodide.asm.mjs.toml")).unwrap();
        assert_eq!(PATCHES, file);
        assert_eq!(patches().unwrap(), parse(&file).unwrap());
    }

    #[test]
    fn mistakes_in_a_file_of_patches_are_named() {
        let refused = |from: &str, to: &str| {
            let patch = "[[patch]]\nname = 'a'\nwhy = 'b'\nfind = 'c'\nreplace = ''\n";
            assert!(patch.contains(from), "{from}");
            let text = format!("{patch}{}", patch.replace(from, to));
            parse(&text).unwrap_err().to_string()
        };
        assert_eq!(refused("'a'", "'a'"), "the patches are not valid: patch `a` is in it twice");
        assert_eq!(refused("'c'", "''"), "the patches are not valid: `find` of patch `a` is empty");
        assert!(refused("why", "because").contains("unknown field `because`"));
    }
}
