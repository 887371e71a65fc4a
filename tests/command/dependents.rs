//! What pages say of depending on the library, with cargo: a crate outside of the checkout resolves
//! with their lines, and gets the features that they promise.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use isolet_test_support::root;
use serde_json::Value;

/// Returns the blocks of a page that are part of a `Cargo.toml`.
fn manifests(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.starts_with("[dependencies]")).map(str::to_owned).collect()
}

/// Returns the features of the packages that a crate with these dependencies is built of.
fn features(dependencies: &str) -> BTreeMap<String, Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let path = root().display().to_string();
    assert!(dependencies.contains("\"../isolet\""), "{dependencies}");
    let manifest = format!(
        "[package]\nname = \"agent\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{}",
        dependencies.replace("../isolet", &path)
    );
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    // The versions that this machine has.
    fs::copy(root().join("Cargo.lock"), dir.path().join("Cargo.lock")).unwrap();
    resolved(dir.path())
}

fn resolved(dir: &Path) -> BTreeMap<String, Vec<String>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--offline", "--format-version", "1"]);
    // What other platforms need is not on this machine.
    cargo.args(["--filter-platform", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)]);
    let ran = cargo.current_dir(dir).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let metadata: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let names: BTreeMap<&str, &str> = items(&metadata["packages"])
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let nodes = items(&metadata["resolve"]["nodes"]).map(|node| {
        let features = items(&node["features"]).map(|name| name.as_str().unwrap().to_owned());
        (names[node["id"].as_str().unwrap()].to_owned(), features.collect())
    });
    nodes.collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().unwrap().iter()
}

#[test]
fn a_crate_of_ones_own_has_what_the_pages_say_with_their_lines() {
    let of_readme = manifests("README.md");
    let of_guide = manifests("docs/guides/rust.md");
    let [with_tools, engine, none, with_tokio] = &of_guide[..] else { panic!("{of_guide:?}") };
    let [readme] = &of_readme[..] else { panic!("{of_readme:?}") };
    for (block, own, has_v8) in [
        (readme, &["default", "engine", "fetch"][..], true),
        (with_tools, &["default", "engine", "fetch"], true),
        (with_tokio, &["default", "engine", "fetch"], true),
        (engine, &["engine"], true),
        (none, &[], false),
    ] {
        let features = features(block);
        assert_eq!(features["isolet"], own, "{block}");
        // What V8 is confined with.
        assert_eq!(features.contains_key("seccompiler"), has_v8, "{block}");
        assert_eq!(features["isolet-pyodide-assets"].contains(&"fetch".to_owned()), own.len() == 3);
        // Servers and the command are no part of a dependent.
        for name in ["axum", "clap", "utoipa", "opentelemetry", "prometheus-client"] {
            assert!(!features.contains_key(name), "{name}: {block}");
        }
    }
    for block in [with_tools, with_tokio] {
        let features = features(block);
        assert!(features["serde"].contains(&"derive".to_owned()) || !block.contains("serde"));
        assert!(features.contains_key("schemars") && features.contains_key("tokio"));
    }
}
