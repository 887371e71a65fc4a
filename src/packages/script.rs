//! Reads the packages that a script declares in its own metadata block (PEP 723).

use std::collections::BTreeSet;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;

use super::error::{PackageError, shown};
use super::interpreter::PYTHON;
use super::requirement::{Dependency, Requirement};
use crate::data::error::Error;

/// The maximum number of packages that a script can declare.
const MAX_DEPENDENCIES: usize = 1000;
/// The maximum size of the block, in bytes.
const MAX_BLOCK_BYTES: usize = 256 << 10;

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(rename = "requires-python")]
    requires_python: Option<String>,
}

/// Returns the packages that a script declares in a `# /// script` block, as specified by [PEP
/// 723](https://peps.python.org/pep-0723/).
/// [`Session::load_packages`](crate::Session::load_packages) accepts them. An untrusted script can
/// declare anything; the caller decides whether to load it.
///
/// # Errors
///
/// [`ErrorKind::Packages`](crate::ErrorKind::Packages) if the block is invalid or requires another
/// Python.
pub fn script_packages(source: &str) -> Result<Vec<String>, Error> {
    Ok(script_requirements(source)?.iter().map(ToString::to_string).collect())
}

/// Reads the `dependencies` of a script's `# /// script` block; empty if there is no block. Omits
/// dependencies whose marker does not hold for the guest.
///
/// # Errors
///
/// Fails if there are two blocks, the block is not TOML of the right form, a dependency is refused,
/// or `requires-python` excludes the guest's Python.
pub(crate) fn script_requirements(source: &str) -> Result<Vec<Requirement>, PackageError> {
    let Some(block) = block(source)? else {
        return Ok(Vec::new());
    };
    let metadata: Metadata =
        toml::from_str(&block).map_err(|error| PackageError::Script(shown(error.message())))?;
    if let Some(wanted) = &metadata.requires_python {
        check_python(wanted)?;
    }
    if metadata.dependencies.len() > MAX_DEPENDENCIES {
        let has = metadata.dependencies.len();
        let reason = format!("limit {MAX_DEPENDENCIES} dependencies, has {has}");
        return Err(PackageError::Script(reason));
    }
    let mut requirements = Vec::new();
    for text in &metadata.dependencies {
        let dependency: Dependency = text.parse()?;
        if dependency.applies(&BTreeSet::new())? {
            requirements.push(dependency.requirement);
        }
    }
    Ok(requirements)
}

fn check_python(wanted: &str) -> Result<(), PackageError> {
    let specifiers = VersionSpecifiers::from_str(wanted).map_err(|_| {
        PackageError::Script(format!("`requires-python` is `{}`, no version", shown(wanted)))
    })?;
    let has = Version::from_str(PYTHON).is_ok_and(|python| specifiers.contains(&python));
    if has {
        return Ok(());
    }
    Err(PackageError::Script(format!("it requires Python {}, this is {PYTHON}", shown(wanted))))
}

/// Finds the content of the script block as the PEP's regular expression does: from its first line
/// to the last `# ///` in the same run of comment lines.
fn block(source: &str) -> Result<Option<String>, PackageError> {
    let mut lines = source.lines();
    let mut found = None;
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("# /// ").filter(|kind| is_kind(kind)) else {
            continue;
        };
        let run = lines.clone().take_while(|line| *line == "#" || line.starts_with("# "));
        // The first line is content, whatever it is.
        let (length, end) = run.enumerate().fold((0, None), |(_, end), (at, line)| {
            (at + 1, if at > 0 && line == "# ///" { Some(at) } else { end })
        });
        if let Some(end) = end.filter(|_| kind == "script") {
            let content = lines.clone().take(end).map(|line| line.get(2..).unwrap_or_default());
            let bytes: usize = content.clone().map(|line| line.len() + 1).sum();
            if bytes > MAX_BLOCK_BYTES {
                let reason = format!("limit {MAX_BLOCK_BYTES} bytes, has {bytes}");
                return Err(PackageError::Script(reason));
            }
            let content: Vec<&str> = content.collect();
            if found.replace(content.join("\n")).is_some() {
                return Err(PackageError::Script("there are two of them".to_owned()));
            }
        }
        // Without an end, no line of the run begins a block that has one.
        let last = end.map_or(length, |end| end + 1).checked_sub(1);
        last.and_then(|last| lines.nth(last));
    }
    Ok(found)
}

fn is_kind(kind: &str) -> bool {
    !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
