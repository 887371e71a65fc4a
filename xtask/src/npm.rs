//! `cargo xtask npm`: packs the TypeScript package, and the package with the command and Pyodide's
//! files for this platform, which it depends on if that is its platform.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use isolet_pyodide_assets::Digest;
use serde_json::{Map, Value, json};

use crate::dist::{self, Build};
use crate::platform::Platform;
use crate::{assets, licenses, manifest, process, test, wheel};

/// The platforms that have a package.
const PLATFORMS: [&str; 1] = ["linux-x64"];

/// Makes the packages in `target/npm`.
pub(crate) fn run(build: Build) -> Result<PathBuf> {
    let platform = Platform::of(consts::OS, consts::ARCH);
    let name = platform.name();
    ensure!(PLATFORMS.contains(&name.as_str()), "there is no package for {name}");
    licenses::check()?;
    let command = dist::program(build)?;
    assets::prepare(&command)?;
    test::build_typescript()?;
    let path = process::root().join("Cargo.toml");
    let cargo = fs::read_to_string(&path).context("cannot read `Cargo.toml`")?;
    let version = manifest::version(&cargo).context("`Cargo.toml` has no version")?;

    let dir = process::target_dir()?.join("npm");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty `{}`", dir.display()))?;
    }
    let content = dir.join("content").join(&name);
    let bin = content.join("bin");
    make(&bin)?;
    dist::copy(&command, &bin.join("isolet").with_extension(consts::EXE_EXTENSION))?;
    wheel::stage(&content.join("share/isolet/assets"))?;
    dist::copy_files(&content)?;
    write(&content.join("package.json"), &of_platform(&platform, version))?;
    pack(&content, &dir)?;

    let source = test::typescript_directory();
    let content = dir.join("content/isolet");
    make(&content.join("dist"))?;
    copy_tree(&source.join("dist"), &content.join("dist"))?;
    dist::copy(&source.join("README.md"), &content.join("README.md"))?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        dist::copy(&process::root().join(name), &content.join(name))?;
    }
    let own = fs::read_to_string(source.join("package.json"));
    let own = own.context("cannot read `typescript/package.json`")?;
    write(&content.join("package.json"), &published(&own, version)?)?;
    pack(&content, &dir)?;
    Ok(dir)
}

/// Returns the manifest of the package with the command for a platform.
fn of_platform(platform: &Platform, version: &str) -> Value {
    json!({
        "name": format!("@isolet/{}", platform.name()),
        "version": version,
        "description": format!("The command of isolet and Pyodide, for {}", platform.name()),
        "license": "MIT OR Apache-2.0",
        "os": [platform.system],
        "cpu": [platform.processor],
        "preferUnplugged": true,
    })
}

/// Returns the manifest of the TypeScript package as it is published: without what only a clone
/// needs, and with the packages of the platforms.
fn published(own: &str, version: &str) -> Result<Value> {
    let mut own: Map<String, Value> =
        serde_json::from_str(own).context("`typescript/package.json` is no JSON")?;
    ensure!(
        own.get("version").and_then(Value::as_str) == Some(version),
        "`typescript/package.json` has another version than `Cargo.toml`, which has {version}"
    );
    own.remove("devDependencies");
    own.remove("scripts");
    let platforms = PLATFORMS.map(|name| (format!("@isolet/{name}"), json!(version)));
    own.insert("optionalDependencies".to_owned(), Value::Object(platforms.into_iter().collect()));
    Ok(Value::Object(own))
}

fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make `{}`", dir.display()))
}

fn write(path: &Path, value: &Value) -> Result<()> {
    let text = format!("{value:#}\n");
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    make(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read `{}`", from.display()))? {
        let entry = entry.with_context(|| format!("cannot read `{}`", from.display()))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            dist::copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Packs a package into `dir`.
fn pack(content: &Path, dir: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--ignore-scripts", "--json", "--pack-destination"]).arg(dir);
    let output = npm.current_dir(content).output().context("cannot run `npm`")?;
    ensure!(output.status.success(), "`npm pack` ended with {}", output.status);
    let packed: Value =
        serde_json::from_slice(&output.stdout).context("`npm pack` printed no JSON")?;
    let name = packed.pointer("/0/filename").and_then(Value::as_str);
    let archive = dir.join(name.context("`npm pack` names no file")?.replace('/', "-"));
    let bytes = fs::read(&archive)
        .with_context(|| format!("cannot read `{}`, which was packed", archive.display()))?;
    eprintln!("made `{}`, {} bytes, sha256 {}", archive.display(), bytes.len(), Digest::of(&bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_package_brings_the_command_and_nothing_for_development() {
        let own = fs::read_to_string(test::typescript_directory().join("package.json")).unwrap();
        let cargo = fs::read_to_string(process::root().join("Cargo.toml")).unwrap();
        let version = manifest::version(&cargo).unwrap();
        let made = published(&own, version).unwrap();
        assert_eq!(made["optionalDependencies"], json!({"@isolet/linux-x64": version}));
        assert!(made.get("devDependencies").is_none() && made.get("dependencies").is_none());
        assert!(published(&own, "999").unwrap_err().to_string().contains("another version"));
        let platform = of_platform(&Platform::of("linux", "x86_64"), version);
        assert_eq!((&platform["os"], &platform["cpu"]), (&json!(["linux"]), &json!(["x64"])));
    }
}
