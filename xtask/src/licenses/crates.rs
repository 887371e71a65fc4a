//! Lists the Rust crates that the command and the shell of guests link, with the licence files of
//! each package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{Component, Origin, text};
use crate::process;

/// What is linked: a package with its manifest, for a platform.
struct Linked {
    manifest: &'static str,
    package: &'static str,
    platform: &'static str,
}

const LINKED: [Linked; 2] = [
    // The platform on which isolet is developed. Others need a few more crates.
    Linked {
        manifest: "Cargo.toml",
        package: process::COMMAND,
        platform: "x86_64-unknown-linux-gnu",
    },
    Linked {
        manifest: "shell/upstream/Cargo.toml",
        package: "isolet-shell-upstream",
        platform: "wasm32-unknown-unknown",
    },
];
/// The prefixes of the names of licence files, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];
/// Texts for packages without a licence file, by a part of their licence expression.
const STANDARD: [(&str, &str); 3] =
    [("MIT", "mit.txt"), ("Apache-2.0", "apache-2.0.txt"), ("MPL-2.0", "mpl-2.0.txt")];

/// Returns all dependencies, sorted by name, without those of tests and build scripts.
pub(super) fn components() -> Result<Vec<Component>> {
    let mut found = BTreeMap::new();
    for linked in LINKED {
        for package in linked.packages()? {
            found.insert((string(&package, "name"), string(&package, "version")), package);
        }
    }
    found.values().map(component).collect()
}

impl Linked {
    /// The dependencies that are not our own.
    fn packages(&self) -> Result<Vec<Value>> {
        let mut cargo = process::cargo();
        cargo.args(["metadata", "--format-version", "1", "--locked"]);
        cargo.args(["--filter-platform", self.platform, "--manifest-path", self.manifest]);
        let output = cargo.output().context("cannot run `cargo metadata`")?;
        ensure!(
            output.status.success(),
            "`cargo metadata` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])
            .filter_map(|package| Some((package["id"].as_str()?, package)))
            .collect();
        let linked = self.reached(&metadata, &packages)?;
        let found = linked.iter().filter_map(|id| packages.get(id)).copied();
        // Our own packages have no source.
        Ok(found.filter(|package| !package["source"].is_null()).cloned().collect())
    }

    /// Returns the packages that the package reaches through ordinary dependencies.
    fn reached<'a>(
        &self,
        metadata: &'a Value,
        packages: &BTreeMap<&'a str, &Value>,
    ) -> Result<BTreeSet<&'a str>> {
        let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
            .filter_map(|node| Some((node["id"].as_str()?, node)))
            .collect();
        let is_root = |id: &&&str| packages.get(**id).is_some_and(|p| p["name"] == self.package);
        let root = nodes.keys().find(is_root);
        let mut next =
            vec![*root.with_context(|| format!("there is no package `{}`", self.package))?];
        let mut linked = BTreeSet::new();
        while let Some(id) = next.pop() {
            if !linked.insert(id) {
                continue;
            }
            let node = nodes.get(id).with_context(|| format!("`{id}` is not resolved"))?;
            let ordinary = list(&node["deps"]).filter(|dependency| {
                list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
            });
            next.extend(ordinary.filter_map(|dependency| dependency["pkg"].as_str()));
        }
        Ok(linked)
    }
}

fn component(package: &Value) -> Result<Component> {
    let (name, version) = (string(package, "name"), string(package, "version"));
    let license = string(package, "license").replace('/', " OR ");
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let directory = manifest.parent().with_context(|| format!("`{name}` has no directory"))?;
    let mut texts = texts(directory, &license)?;
    let mut note = String::new();
    if texts.is_empty() {
        let standard = STANDARD.iter().filter(|(part, _)| license.contains(part));
        // If there is a choice of licences, one is enough.
        let Some((_, file)) = standard.into_iter().next() else {
            bail!("`{name} {version}` has no licence file, and its licence is `{license}`");
        };
        texts.push(text(file)?);
        let authors: Vec<&str> = list(&package["authors"]).filter_map(Value::as_str).collect();
        note = match &authors[..] {
            [] => format!("Copyright the authors of {name}"),
            named => format!("Copyright {}", named.join(", ")),
        };
    }
    Ok(Component { name, version, license, origin: Origin::Crate, note, texts })
}

/// Returns the licence files at the top of a package, sorted by name.
fn texts(directory: &Path, license: &str) -> Result<Vec<String>> {
    let unreadable = || format!("cannot read `{}`", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let path = entry.path();
        let is_source = path.extension().is_some_and(|end| end == "rs" || end == "toml");
        if NAMES.iter().any(|start| name.starts_with(start)) && !is_source && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    // If there is a choice of licences, the shorter one is taken.
    let is_apache = |path: &PathBuf| path.to_string_lossy().to_uppercase().contains("APACHE");
    if license.contains(" OR ") && !paths.iter().all(is_apache) {
        paths.retain(|path| !is_apache(path));
    }
    let read = paths.iter().map(|path| {
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    read.collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(package: &Value, field: &str) -> String {
    package[field].as_str().unwrap_or_default().to_owned()
}
