//! The rule that a crate is compiled with the same features whichever part of the workspace is
//! built, so that it is compiled once.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::process;

/// A part of the workspace that is built besides the whole of it.
struct Part {
    /// The arguments that choose it.
    chosen: &'static [&'static str],
    /// The own crates that have other features in it, on purpose.
    others: &'static [&'static str],
    /// Where features are added for it.
    remedy: &'static str,
}

/// The parts that `cargo xtask ci` builds.
const PARTS: [Part; 2] = [
    // The command, which is built before its tests.
    Part {
        chosen: &["--package", process::COMMAND, "--edges", "normal,no-proc-macro"],
        others: &[],
        remedy: "crates/isolet-cli/Cargo.toml",
    },
    Part {
        chosen: &[
            "--package",
            "isolet",
            "--no-default-features",
            "--edges",
            "normal,dev,no-proc-macro",
        ],
        others: &["isolet", "isolet-pyodide-assets"],
        remedy: "tests/support/Cargo.toml",
    },
];

/// Returns a complaint for each crate that a part compiles with other features than the workspace.
pub(super) fn crates_are_compiled_once() -> Result<Vec<String>> {
    let whole = tree(&["--workspace", "--edges", "normal,dev,no-proc-macro"])?;
    let mut complaints = Vec::new();
    for Part { chosen, others, remedy } in PARTS {
        let part = tree(chosen)?;
        complaints.extend(differences(&whole, &part, others).map(|(name, features, whole)| {
            format!(
                "{remedy}: `{name}` has the features {features:?}, and {whole:?} in a build of \
                 the workspace, so it is compiled twice; ask for the same ones"
            )
        }));
    }
    Ok(complaints)
}

/// Returns the crates of a part whose features the whole does not have, with both lists.
fn differences<'a>(
    whole: &'a BTreeSet<String>,
    part: &'a BTreeSet<String>,
    others: &'a [&str],
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let is_other = |id: &str| others.iter().any(|other| id.split(' ').next() == Some(other));
    part.difference(whole).filter_map(|line| line.split_once('|')).filter_map(move |(id, has)| {
        let there = whole.iter().filter_map(|line| line.split_once('|')).find(|(of, _)| *of == id);
        (!is_other(id)).then_some((id, has, there.map_or("", |(_, features)| features)))
    })
}

/// Returns lines of a crate with its version, `|` and its features.
fn tree(chosen: &[&str]) -> Result<BTreeSet<String>> {
    let mut cargo = process::cargo();
    cargo.args(["tree", "--locked", "--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"]);
    let output = cargo.args(chosen).output().context("cannot run `cargo tree`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo tree` ended with {}: {said}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_other_features_is_found_unless_it_has_them_on_purpose() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let whole: BTreeSet<String> = lines(&["a v1|x", "b v1|x,y", "own v1 (/here)|engine"]);
        let part: BTreeSet<String> = lines(&["a v1|x", "b v1|x", "own v1 (/here)|"]);
        let found: Vec<_> = differences(&whole, &part, &["own"]).collect();
        assert_eq!(found, [("b v1", "x", "x,y")]);
    }
}
