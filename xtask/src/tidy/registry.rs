//! The rules for what knows the version apart from cargo: `server.json`, by which the MCP registry
//! knows isolet, and the installer.

use serde_json::Value;

use super::SourceFile;
use crate::manifest;

const ENTRY: &str = "server.json";
const INSTALLER: &str = "install.sh";

/// The description of the Python package, in which the registry looks for the entry's name.
const DESCRIPTION: &str = "python/README.md";

/// The most characters of a description that the registry accepts.
const MAX_CHARACTERS: usize = 100;

/// Requires that the entry has the version of the packages, and a name that the Python package
/// confirms.
pub(super) fn the_registry_entry_is_right(files: &[SourceFile]) -> Vec<String> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let Some(entry) = find(ENTRY) else { return Vec::new() };
    let text = |path| find(path).map_or("", |file| file.text.as_str());
    let Ok(entry) = serde_json::from_str::<Value>(&entry.text) else {
        return vec![format!("{ENTRY}: is no JSON")];
    };
    let mut complaints = Vec::new();
    let version = manifest::version(text("Cargo.toml")).unwrap_or_default();
    let packages = entry["packages"].as_array().into_iter().flatten();
    for (place, said) in std::iter::once(("it", &entry["version"]))
        .chain(packages.map(|package| ("a package of it", &package["version"])))
    {
        if said != version {
            complaints.push(format!("{ENTRY}: {place} has the version {said}, not `{version}`"));
        }
    }
    let name = entry["name"].as_str().unwrap_or_default();
    let mark = format!("<!-- mcp-name: {name} -->");
    if !text(DESCRIPTION).contains(&mark) {
        complaints.push(format!("{DESCRIPTION}: has no `{mark}`, which {ENTRY} needs"));
    }
    let description = entry["description"].as_str().unwrap_or_default();
    let characters = description.chars().count();
    if !(1..=MAX_CHARACTERS).contains(&characters) {
        complaints.push(format!(
            "{ENTRY}: its description has {characters} characters (1 to {MAX_CHARACTERS})"
        ));
    }
    complaints
}

/// Requires that the installer of a release installs that release.
pub(super) fn the_installer_is_of_this_version(files: &[SourceFile]) -> Vec<String> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let (Some(installer), Some(manifest)) = (find(INSTALLER), find("Cargo.toml")) else {
        return Vec::new();
    };
    let version = manifest::version(&manifest.text).unwrap_or_default();
    let said = installer.text.lines().find_map(|line| line.strip_prefix("VERSION="));
    if said == Some(version) {
        return Vec::new();
    }
    let said = said.unwrap_or("no version");
    vec![format!("{INSTALLER}: has `VERSION={said}`, not `{version}`")]
}
