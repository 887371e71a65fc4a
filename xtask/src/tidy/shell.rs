//! Compares the prebuilt shell and its sources with the digests that its build has written.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use isolet_pyodide_assets::Digest;

const SUMS: &str = "third_party/shell/SHA256SUMS";
const SOURCES: [&str; 6] = [
    "shell/Cargo.lock",
    "shell/Cargo.toml",
    "shell/build.sh",
    "shell/patches",
    "shell/src",
    "shell/upstream",
];

/// Requires that the shell in `third_party` is a build of the sources in `shell`.
pub(super) fn the_shell_is_built_of_its_sources(root: &Path) -> Result<Vec<String>> {
    let sums =
        fs::read_to_string(root.join(SUMS)).with_context(|| format!("cannot read `{SUMS}`"))?;
    let listed: Vec<(&str, &str)> = sums
        .lines()
        .filter_map(|line| line.split_once("  ").map(|(sum, path)| (path, sum)))
        .collect();
    let mut complaints = Vec::new();
    for (path, sum) in &listed {
        let found = fs::read(root.join(path)).map(|bytes| Digest::of(&bytes).to_string());
        if !found.is_ok_and(|found| found == *sum) {
            complaints.push(format!(
                "{path}: is not what the shell in `third_party/shell` was built of; \
                 `shell/build.sh` builds it anew"
            ));
        }
    }
    let mut sources = Vec::new();
    for path in SOURCES {
        files_in(root, path, &mut sources)?;
    }
    sources.retain(|source| !listed.iter().any(|(path, _)| path == source));
    complaints.extend(sources.iter().map(|path| {
        format!(
            "{path}: is new to the shell in `third_party/shell`; `shell/build.sh` builds it anew"
        )
    }));
    Ok(complaints)
}

/// Lists a file, or the files beneath a directory.
fn files_in(root: &Path, path: &str, into: &mut Vec<String>) -> Result<()> {
    let full = root.join(path);
    if !full.is_dir() {
        into.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(&full).with_context(|| format!("cannot list `{path}`"))? {
        let name = entry.with_context(|| format!("cannot list `{path}`"))?.file_name();
        files_in(root, &format!("{path}/{}", name.to_string_lossy()), into)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_missing_and_new_sources_are_found() {
        let root = std::env::temp_dir().join(format!("isolet-xtask-shell-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mut sums = Vec::new();
        for path in SOURCES {
            let path = if path.contains('.') { path.to_owned() } else { format!("{path}/file") };
            write(&path, &path);
            sums.push(format!("{}  {path}", Digest::of(path.as_bytes())));
        }
        write(SUMS, &sums.join("\n"));
        assert_eq!(the_shell_is_built_of_its_sources(&root).unwrap(), [""; 0]);

        write("shell/src/file", "changed");
        write("shell/src/deeper/new", "");
        fs::remove_file(root.join("shell/patches/file")).unwrap();
        let complaints = the_shell_is_built_of_its_sources(&root).unwrap();
        let paths: Vec<_> = complaints.iter().map(|text| text.split(':').next().unwrap()).collect();
        assert_eq!(paths, ["shell/patches/file", "shell/src/file", "shell/src/deeper/new"]);
        fs::remove_dir_all(root).unwrap();
    }
}
