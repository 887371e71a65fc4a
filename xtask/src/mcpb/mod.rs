//! `cargo xtask mcpb`: builds the bundle that Claude Desktop installs with one click: the command
//! as a server of MCP, and Pyodide's files.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use isolet_pyodide_assets::Digest;
use serde_json::{Value, json};

use crate::dist::{self, Build};
use crate::platform::Platform;
use crate::{assets, licenses, manifest, process, wheel};

/// The command in the bundle. It finds `share/isolet/assets` beside its directory.
const PROGRAM: &str = "server/bin/isolet";
const ASSETS: &str = "server/share/isolet/assets";

const PACK: &str = include_str!("pack.py");

/// Makes `target/mcpb/isolet-VERSION-PLATFORM.mcpb`.
pub(crate) fn run(build: Build) -> Result<PathBuf> {
    licenses::check()?;
    let command = dist::program(build)?;
    assets::prepare(&command)?;
    let path = process::root().join("Cargo.toml");
    let cargo = fs::read_to_string(&path).context("cannot read `Cargo.toml`")?;
    let platform = Platform::of(consts::OS, consts::ARCH);
    let manifest = bundle_manifest(&cargo, &platform)?;
    let version = manifest::version(&cargo).context("`Cargo.toml` has no version")?;

    let dir = process::target_dir()?.join("mcpb");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty `{}`", dir.display()))?;
    }
    let content = dir.join("content");
    let program = content.join(PROGRAM).with_extension(consts::EXE_EXTENSION);
    let bin = program.parent().context("the command has no directory")?;
    fs::create_dir_all(bin).with_context(|| format!("cannot make `{}`", bin.display()))?;
    dist::copy(&command, &program)?;
    wheel::stage(&content.join(ASSETS))?;
    dist::copy_files(&content)?;
    write(&content.join("manifest.json"), &manifest)?;

    let bundle = dir.join(format!("isolet-{version}-{}.mcpb", platform.name()));
    pack(&content, &bundle)?;
    let bytes = fs::read(&bundle).context("cannot read what was built")?;
    eprintln!("made `{}`, {} bytes, sha256 {}", bundle.display(), bytes.len(), Digest::of(&bytes));
    Ok(bundle)
}

/// Returns the manifest of the bundle, which says what `Cargo.toml` says.
fn bundle_manifest(cargo: &str, platform: &Platform) -> Result<Value> {
    let text = |section, key: &str| {
        let text = manifest::text(cargo, section, key);
        text.with_context(|| format!("`Cargo.toml` has no `{key}` in `{section}`"))
    };
    let repository = text("workspace.package", "repository")?;
    let suffix = platform.suffix();
    Ok(json!({
        "manifest_version": "0.3",
        "name": text("package", "name")?,
        "display_name": "isolet: Python in a sandbox",
        "version": text("workspace.package", "version")?,
        "description": text("package", "description")?,
        "author": {"name": "the isolet authors", "url": repository},
        "repository": {"type": "git", "url": repository},
        "documentation": format!("{repository}/blob/main/docs/reference/mcp.md"),
        "license": text("workspace.package", "license")?,
        "keywords": ["python", "sandbox", "code", "numpy", "pandas"],
        "server": {
            "type": "binary",
            "entry_point": format!("{PROGRAM}{suffix}"),
            "mcp_config": {
                "command": format!("${{__dirname}}/{PROGRAM}{suffix}"),
                "args": ["mcp"],
                "env": {},
            },
        },
        "tools": [
            {"name": "run_python", "description": "Runs Python in a sandbox, in a session that \
                                                   keeps its variables"},
            {"name": "close_session", "description": "Ends a session"},
        ],
        "compatibility": {"platforms": [platform.system]},
    }))
}

fn write(path: &Path, value: &Value) -> Result<()> {
    let text = format!("{value:#}\n");
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Packs a directory with the modes of its files: the command has to be executable when it is
/// unpacked.
fn pack(content: &Path, bundle: &Path) -> Result<()> {
    let mut python = Command::new("python3");
    process::check(python.args(["-c", PACK]).arg(bundle).current_dir(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_says_what_cargo_says() {
        let cargo = fs::read_to_string(process::root().join("Cargo.toml")).unwrap();
        let manifest = bundle_manifest(&cargo, &Platform::of("linux", "x86_64")).unwrap();
        for (key, section) in [
            ("name", "package"),
            ("description", "package"),
            ("version", "workspace.package"),
            ("license", "workspace.package"),
        ] {
            assert_eq!(manifest[key].as_str(), manifest::text(&cargo, section, key), "{key}");
        }
        assert_eq!(manifest["compatibility"]["platforms"], json!(["linux"]));
        let server = &manifest["server"];
        let command = server["mcp_config"]["command"].as_str().unwrap();
        assert_eq!(command, format!("${{__dirname}}/{}", server["entry_point"].as_str().unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn a_bundle_has_files_with_their_modes_and_no_directories() {
        use std::os::unix::fs::PermissionsExt;
        let dir = process::target_dir().unwrap().join(format!("mcpb-test-{}", std::process::id()));
        let content = dir.join("content");
        fs::create_dir_all(content.join("server/bin")).unwrap();
        let program = content.join(PROGRAM);
        fs::write(&program, "x").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        write(&content.join("manifest.json"), &json!({})).unwrap();
        let bundle = dir.join("a.mcpb");
        pack(&content, &bundle).unwrap();
        let list = "import sys, zipfile\nfor entry in zipfile.ZipFile(sys.argv[1]).infolist():\n    \
                    print(entry.filename, oct(entry.external_attr >> 16))";
        let output = Command::new("python3").args(["-c", list]).arg(&bundle).output().unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, ["manifest.json", PROGRAM]);
        assert!(listed.ends_with("/isolet 0o100755\n"), "{listed}");
    }

    #[test]
    fn a_program_of_windows_has_its_suffix() {
        let windows = bundle_manifest(
            "[package]\nname = \"n\"\ndescription = \"d\"\n[workspace.package]\nversion = \"1\"\n\
             license = \"l\"\nrepository = \"r\"\n",
            &Platform::of("windows", "x86_64"),
        );
        assert_eq!(windows.unwrap()["server"]["entry_point"], "server/bin/isolet.exe");
    }
}
