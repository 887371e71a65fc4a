//! `cargo xtask licenses`: collects the notices of everything that the `isolet` command contains
//! from the packages' licence files, and writes them to one file that is part of the command.

mod crates;
mod parts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::process;
use parts::PARTS;

/// The file that is written; `isolet licenses` prints it.
const NOTICES: &str = "third_party/licenses/THIRD-PARTY.txt";
/// The directory of licence texts, and of texts for parts that are not Rust crates.
const TEXTS: &str = "third_party/licenses";
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// A part that the command contains.
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its licence, as its authors write it.
    pub(crate) license: String,
    pub(crate) origin: Origin,
    /// The copyright holder, if no text names one.
    note: String,
    texts: Vec<String>,
}

/// What a part comes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    /// It is a Rust crate of the registry.
    Crate,
    /// It is built with V8.
    V8,
    /// It is in Pyodide's files.
    Pyodide,
    /// It is in the guest's Python.
    Guest,
}

impl Origin {
    /// Returns it in one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Crate => "cargo",
            Self::V8 => "v8",
            Self::Pyodide => "pyodide",
            Self::Guest => "guest",
        }
    }
}

/// Writes the notices.
pub(crate) fn write() -> Result<()> {
    let path = path();
    fs::write(&path, notices()?).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Fails if the notices do not match `Cargo.lock`.
pub(crate) fn check() -> Result<()> {
    let found = fs::read_to_string(path()).unwrap_or_default();
    ensure!(
        found == notices()?,
        "`{NOTICES}` is not what the dependencies ask for; `cargo xtask licenses` writes it anew"
    );
    Ok(())
}

fn path() -> PathBuf {
    process::root().join(NOTICES)
}

/// Reads a text from `third_party/licenses`.
fn text(name: &str) -> Result<String> {
    let path = process::root().join(TEXTS).join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn notices() -> Result<String> {
    Ok(rendered(&components()?))
}

/// Returns all parts: those that are no crates, then the crates.
pub(crate) fn components() -> Result<Vec<Component>> {
    let mut components = Vec::new();
    for part in PARTS {
        components.push(part.component()?);
    }
    components.extend(crates::components()?);
    Ok(components)
}

/// Returns the list of components, and each text once.
fn rendered(components: &[Component]) -> String {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut list = String::new();
    for component in components {
        let mut used = Vec::new();
        for text in &component.texts {
            // Texts that differ only in line breaks and indentation are the same.
            let words: Vec<&str> = text.split_whitespace().collect();
            let number = *numbers.entry(words.join(" ")).or_insert_with(|| {
                texts.push(text);
                texts.len()
            });
            used.push(format!("[{number}]"));
        }
        let Component { name, version, license, note, .. } = component;
        // Writing to a `String` cannot fail.
        let _ = write!(list, "{name} {version}: {license} {}", used.join(" "));
        let _ = if note.is_empty() { writeln!(list) } else { writeln!(list, "; {note}") };
    }
    let mut all = format!(
        "The isolet command contains the following software, and fetches Pyodide, which contains\n\
         CPython and the libraries named with it. Each is under the licence named, whose text has the\n\
         number in brackets. isolet itself is under MIT or Apache-2.0.\n\n{list}"
    );
    for (text, number) in texts.iter().zip(1..) {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let _ = write!(all, "\n{RULE}\n[{number}]\n\n{}\n", lines.join("\n").trim_matches('\n'));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_several_components_share_is_written_once() {
        let component = |name: &str, texts: &[&str]| Component {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            license: "MIT".to_owned(),
            origin: Origin::Crate,
            note: String::new(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let all =
            rendered(&[component("a", &["one\ntwo"]), component("b", &["three", "one  two\n"])]);
        assert!(all.contains("a 1.0: MIT [1]\nb 1.0: MIT [2] [1]\n"), "{all}");
        assert_eq!(all.matches("one").count(), 1, "{all}");
        assert!(all.ends_with("[2]\n\nthree\n"), "{all}");
    }

    #[test]
    fn the_parts_that_are_no_crates_have_their_texts() {
        for part in PARTS {
            let component = part.component().unwrap();
            assert!(!component.version.is_empty(), "{}", component.name);
            assert!(component.texts.iter().all(|text| text.len() > 100), "{}", component.name);
        }
    }
}
