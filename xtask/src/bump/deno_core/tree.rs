//! What cargo resolves: the crates of the workspace as they are pinned, or would be with other
//! pins. For that, cargo gets a copy of all manifests, in which the sources are empty.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bump::edits::Edit;
use crate::bump::registry::{self, Answer};
use crate::process;

/// How long cargo may take, with downloads.
const LIMIT: Duration = Duration::from_mins(5);

/// The platform whose crates are looked at.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// What cargo says about the crates, and writes into the lock file.
pub(super) struct Tree {
    packages: Vec<Package>,
    pub(super) lock: String,
}

/// A crate.
pub(super) struct Package {
    name: String,
    pub(super) version: String,
    /// Where its sources are.
    pub(super) directory: PathBuf,
    /// The versions that it asks for, by names of crates.
    pub(super) asks: BTreeMap<String, String>,
    /// The versions that it gets, by names in its code.
    pub(super) uses: BTreeMap<String, String>,
    /// What is in the feature `default`.
    pub(super) default: Vec<String>,
}

impl Tree {
    /// Returns the crates as the repository has them.
    pub(super) fn pinned() -> Result<Self> {
        Self::resolve(&process::root(), &["--locked"])
    }

    /// Returns the crates as they would be after some edits.
    pub(super) fn with(edits: &[Edit], dir: &Path) -> Result<Self> {
        copy_manifests(dir)?;
        for edit in edits {
            let Edit::Replace { path, find, with } = edit else { continue };
            let path = dir.join(path);
            let text = fs::read_to_string(&path).context("cannot read a copied manifest")?;
            ensure!(text.contains(find), "`Cargo.toml` has no `{find}`");
            fs::write(&path, text.replace(find, with)).context("cannot write a manifest")?;
        }
        Self::resolve(dir, &[])
    }

    fn resolve(dir: &Path, options: &[&str]) -> Result<Self> {
        let mut cargo = process::cargo();
        cargo.args(["metadata", "--format-version", "1", "--filter-platform", PLATFORM]);
        cargo.args(options).current_dir(dir);
        let said = match registry::asked(&mut cargo, LIMIT)? {
            Answer::Said(said) => said,
            Answer::Refused(error) => bail!("cargo cannot resolve the crates: {}", error.trim()),
        };
        let metadata = serde_json::from_str(&said).context("`cargo metadata` wrote no JSON")?;
        let lock = fs::read_to_string(dir.join("Cargo.lock"));
        Self::parse(&metadata, lock.context("cannot read `Cargo.lock`")?)
    }

    /// Reads what `cargo metadata` has said.
    pub(super) fn parse(metadata: &Value, lock: String) -> Result<Self> {
        let packages = list(&metadata["packages"]);
        let versions: BTreeMap<&str, &str> = packages
            .clone()
            .filter_map(|package| Some((package["id"].as_str()?, package["version"].as_str()?)))
            .collect();
        let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
            .filter_map(|node| Some((node["id"].as_str()?, node)))
            .collect();
        let package = |package: &Value| {
            let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
            let ours = |value: &Value| value.as_str().map(str::to_owned);
            let asks = list(&package["dependencies"])
                .filter_map(|asked| Some((ours(&asked["name"])?, ours(&asked["req"])?)));
            let node = nodes.get(&*text("id")).copied().unwrap_or(&Value::Null);
            let uses = list(&node["deps"]).filter_map(|used| {
                let version = *versions.get(used["pkg"].as_str()?)?;
                Some((ours(&used["name"])?, version.to_owned()))
            });
            Some(Package {
                name: text("name"),
                version: text("version"),
                directory: Path::new(&text("manifest_path")).parent()?.to_owned(),
                asks: asks.collect(),
                uses: uses.collect(),
                default: list(&package["features"]["default"]).filter_map(ours).collect(),
            })
        };
        let packages: Option<Vec<Package>> = packages.map(package).collect();
        let packages = packages.context("`cargo metadata` lists crates in an unknown form")?;
        Ok(Self { packages, lock })
    }

    /// Returns the crate of this name; of several, the newest.
    pub(super) fn package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().rfind(|package| package.name == name);
        found.with_context(|| format!("cargo resolves no `{name}`"))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

/// Copies what cargo resolves by: manifests, the lock file, and which sources there are.
fn copy_manifests(to: &Path) -> Result<()> {
    let unwritable = || format!("cannot write `{}`", to.display());
    if to.exists() {
        fs::remove_dir_all(to).with_context(unwritable)?;
    }
    let root = process::root();
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]);
    git.args(["*.toml", "*.rs", "Cargo.lock"]).current_dir(&root);
    let output = git.output().context("cannot run `git ls-files`")?;
    ensure!(output.status.success(), "`git ls-files` ended with {}", output.status);
    for path in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
        let copy = to.join(path);
        fs::create_dir_all(copy.parent().unwrap_or(to)).with_context(unwritable)?;
        if copy.extension().is_some_and(|extension| extension == "rs") {
            fs::write(&copy, "").with_context(unwritable)?;
        } else if let Ok(text) = fs::read(root.join(path)) {
            fs::write(&copy, text).with_context(unwritable)?;
        }
    }
    Ok(())
}
