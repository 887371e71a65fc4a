//! Tests of what `cargo package` would publish.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use isolet_test_support::root;

/// The registry's limit is 10 MB, compressed.
const MAX_BYTES: u64 = 10_000_000;

/// Returns the files of a package, by path in the package. `folder` is its place in the checkout.
fn files(package: &str, folder: &Path) -> BTreeSet<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--list", "--allow-dirty", "--offline", "--package", package]);
    let listed = cargo.current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    // Cargo makes the others while it packs.
    listed.lines().map(PathBuf::from).filter(|path| folder.join(path).is_file()).collect()
}

/// Resolves `..` in a path in the package.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => {
                assert!(plain.pop(), "`{}` leads out of the package", path.display());
            }
            part => plain.push(part),
        }
        plain
    })
}

/// Returns the files that a source file includes, by path in the package. If the name is
/// concatenated, these are all in the directory that it begins with.
fn included(folder: &Path, source: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read_to_string(folder.join(source)).unwrap();
    let here = source.parent().unwrap();
    let mut found = BTreeSet::new();
    for call in ["include_str!(", "include_bytes!("] {
        for (_, arguments) in text.match_indices(call).map(|(at, _)| text.split_at(at + call.len()))
        {
            let (concatenated, rest) = match arguments.strip_prefix("concat!(") {
                Some(rest) => (true, rest),
                None => (false, arguments),
            };
            if rest.starts_with("env!(\"OUT_DIR\")") {
                found.extend(unpacked(folder));
                continue;
            }
            let name = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let Some((name, _)) = name else {
                panic!("`{}`: {}", source.display(), &rest[..rest.len().min(60)])
            };
            let path = plain(&here.join(name));
            if concatenated {
                found.extend(beneath(folder, &path));
            } else {
                found.insert(path);
            }
        }
    }
    found
}

/// Returns the build script, and what it unpacks.
fn unpacked(folder: &Path) -> [PathBuf; 2] {
    let script = fs::read_to_string(folder.join("build.rs")).unwrap();
    let (_, packed) = script.split_once("const PACKED: &str = \"").unwrap();
    [PathBuf::from("build.rs"), PathBuf::from(packed.split('"').next().unwrap())]
}

fn beneath(folder: &Path, directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(directory)).unwrap();
    let paths = entries.map(|entry| directory.join(entry.unwrap().file_name()));
    let nested = paths
        .map(|path| if folder.join(&path).is_dir() { beneath(folder, &path) } else { vec![path] });
    nested.flatten().collect()
}

#[test]
fn a_package_has_all_that_its_build_includes_and_is_below_the_registrys_limit() {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut packages: Vec<_> =
        crates.map(|name| (name.clone(), Path::new("crates").join(name))).collect();
    packages.push(("isolet".to_owned(), PathBuf::new()));
    packages.push(("isolet-pyodide-assets".to_owned(), "pyodide-assets".into()));
    let mut all_needed = BTreeSet::new();
    for (package, folder) in packages {
        let folder = root().join(folder);
        let files = files(&package, &folder);
        let sources = files.iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let mut needed: BTreeSet<PathBuf> = BTreeSet::new();
        sources.for_each(|source| needed.extend(included(&folder, source)));
        let missing: Vec<_> = needed.difference(&files).collect();
        assert!(missing.is_empty(), "`include` of {package} lacks {missing:?}");
        let size: u64 = files.iter().map(|path| folder.join(path).metadata().unwrap().len()).sum();
        assert!(size <= MAX_BYTES, "{package} has {size} bytes, the limit is {MAX_BYTES}");
        all_needed.extend(needed);
    }
    assert!(all_needed.len() > 50, "{all_needed:?}");
}
