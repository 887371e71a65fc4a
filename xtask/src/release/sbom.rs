//! The bill of materials of an archive, in the JSON of `CycloneDX`: the crates that the command
//! links, V8 and what is built with it, Pyodide's files and what is in them, and files of the
//! guest's Python.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::licenses::{self, Component, Origin};
use crate::{dist, platform, process};

/// Writes it.
pub(crate) fn write(to: &Path, version: &str) -> Result<()> {
    let text = format!("{:#}\n", bill(version)?);
    let unwritable = || format!("cannot write `{}`", to.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(unwritable)?;
    fs::write(to, text).with_context(unwritable)
}

fn bill(version: &str) -> Result<Value> {
    let root = format!("isolet@{version}");
    let mut components = Vec::new();
    for component in licenses::components()? {
        components.push(of_component(&component));
    }
    components.extend(files_of_pyodide()?);
    components.extend(files_of_guests()?);
    let mut metadata = json!({
        "tools": {"components": [{"type": "application", "name": "isolet-xtask"}]},
        "component": {
            "type": "application",
            "bom-ref": root,
            "name": "isolet",
            "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "properties": [{"name": "isolet:target", "value": platform::triple()}],
        },
    });
    if let Some(seconds) = dist::epoch().and_then(|seconds| seconds.parse().ok()) {
        metadata["timestamp"] = timestamp(seconds).into();
    }
    let references: Vec<Value> =
        components.iter().map(|component| component["bom-ref"].clone()).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": references}],
    }))
}

fn of_component(component: &Component) -> Value {
    let Component { name, version, license, origin, .. } = component;
    let mut made = json!({
        "type": "library",
        "bom-ref": format!("{}:{name}@{version}", origin.word()),
        "name": name,
        "version": version,
        "licenses": [{"license": {"name": license}}],
    });
    match origin {
        Origin::Crate => made["purl"] = format!("pkg:cargo/{name}@{version}").into(),
        // The version is that of what contains it.
        Origin::V8 | Origin::Pyodide | Origin::Guest => {}
    }
    made
}

/// Pyodide's files as they are installed, after isolet's patches.
fn files_of_pyodide() -> Result<Vec<Value>> {
    let lock = isolet_pyodide_assets::lock()?;
    let files = lock.files().iter();
    Ok(files
        .map(|file| {
            json!({
                "type": "file",
                "bom-ref": format!("file:share/isolet/assets/{}", file.name()),
                "name": format!("share/isolet/assets/{}", file.name()),
                "version": lock.version(),
                "purl": format!("pkg:npm/pyodide@{}", lock.version()),
                "licenses": [{"license": {"name": file.license()}}],
                "hashes": [{"alg": "SHA-256", "content": file.sha256().to_string()}],
            })
        })
        .collect())
}

/// Files that the command contains for the guest's Python, and the shell of guests.
fn files_of_guests() -> Result<Vec<Value>> {
    let root = process::root();
    let mut found = Vec::new();
    for directory in ["third_party/python", "third_party/shell"] {
        let mut directories = vec![root.join(directory)];
        while let Some(directory) = directories.pop() {
            let unreadable = || format!("cannot read `{}`", directory.display());
            for entry in fs::read_dir(&directory).with_context(unreadable)? {
                let path = entry.with_context(unreadable)?.path();
                let is_content = path.extension().is_some_and(|end| end != "md");
                if path.is_dir() {
                    directories.push(path);
                } else if is_content {
                    let bytes = fs::read(&path).with_context(unreadable)?;
                    let name = path.strip_prefix(&root)?.to_string_lossy().into_owned();
                    let digest = isolet_pyodide_assets::Digest::of(&bytes).to_string();
                    found.push((name, digest));
                }
            }
        }
    }
    found.sort();
    let files = found.into_iter().map(|(name, digest)| {
        json!({
            "type": "file",
            "bom-ref": format!("file:{name}"),
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": digest}],
        })
    });
    Ok(files.collect())
}

/// Returns seconds since 1970 as a date and time of UTC.
fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the day of a leap year is the last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_names_crates_v8_pyodide_and_what_guests_have() {
        let bill = bill("1.2.3").unwrap();
        let components = bill["components"].as_array().unwrap();
        let find = |name: &str| components.iter().find(|component| component["name"] == name);
        for name in ["V8", "ICU", "deno_core", "CPython", "tzdata", "bashkit"] {
            assert!(find(name).is_some(), "{name}");
        }
        let wasm = find("share/isolet/assets/pyodide.asm.wasm").unwrap();
        assert_eq!(wasm["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert!(find("third_party/shell/isolet_shell.wasm.gz").is_some());
        let mut references: Vec<_> =
            components.iter().map(|component| component["bom-ref"].to_string()).collect();
        let all = references.len();
        references.sort();
        references.dedup();
        assert_eq!(references.len(), all, "references are unique");
        assert!(all > 200, "{all}");
    }

    #[test]
    fn a_time_is_written_as_a_date() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_796_083_199), "2026-11-30T23:59:59Z");
    }
}
