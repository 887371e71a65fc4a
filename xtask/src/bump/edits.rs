//! The changes that a move makes by itself, and the check that no work of a person is lost by them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::registry::{self, Answer};
use crate::{licenses, process};

/// How long cargo may take to resolve, with downloads.
const LIMIT: Duration = Duration::from_mins(5);

/// One change of the repository.
#[derive(Debug, PartialEq)]
pub(super) enum Edit {
    /// Another text in the place of each occurrence of one, which there has to be.
    Replace { path: String, find: String, with: String },
    /// A file or directory gets another name.
    Move { from: String, to: String },
    /// `Cargo.lock`, which cargo writes.
    Lock,
    /// A crate of `fuzz/Cargo.lock`, whose versions are those of `Cargo.lock`.
    FuzzLock { name: String, from: String, to: String },
    /// The notices of all parts.
    Notices,
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replace { path, find, with } => {
                let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
                match find.lines().count() {
                    1 => write!(f, "{path}: `{}` becomes `{}`", find.trim(), with.trim()),
                    _ => write!(f, "{path}: the lines after `{}`", first(find)),
                }
            }
            Self::Move { from, to } => write!(f, "{from}: becomes {to}"),
            Self::Lock => f.write_str("Cargo.lock: by cargo, from the pins"),
            Self::FuzzLock { name, from, to } => {
                write!(f, "fuzz/Cargo.lock: {name} {from} becomes {to}")
            }
            Self::Notices => f.write_str("third_party/licenses/THIRD-PARTY.txt: is written anew"),
        }
    }
}

impl Edit {
    /// Returns the path that it changes.
    fn path(&self) -> &str {
        match self {
            Self::Replace { path, .. } => path,
            Self::Move { from, .. } => from,
            Self::Lock => "Cargo.lock",
            Self::FuzzLock { .. } => "fuzz/Cargo.lock",
            Self::Notices => "third_party/licenses/THIRD-PARTY.txt",
        }
    }

    /// Makes a change that is no new text of a file.
    fn make(&self) -> Result<()> {
        match self {
            Self::Replace { .. } => Ok(()),
            Self::Move { from, to } => {
                let mut git = Command::new("git");
                git.args(["mv", from, to]).current_dir(process::root());
                process::check(&mut git)
            }
            Self::Lock => cargo(&["metadata", "--format-version", "1"]),
            Self::FuzzLock { name, from, to } => {
                let package = format!("{name}@{from}");
                let manifest = ["--manifest-path", "fuzz/Cargo.toml"];
                let chosen = ["update", "--package", &package, "--precise", to];
                cargo(&[&chosen[..], &manifest].concat())
            }
            Self::Notices => licenses::write(),
        }
    }
}

fn cargo(args: &[&str]) -> Result<()> {
    let mut cargo = process::cargo();
    match registry::asked(cargo.args(args), LIMIT)? {
        Answer::Said(_) => Ok(()),
        Answer::Refused(error) => bail!("`cargo {}` failed: {}", args.join(" "), error.trim()),
    }
}

/// Returns the new texts of all files, by their paths. It is an error if a text that is to be
/// replaced is not there, which a dry run finds too.
pub(super) fn texts(edits: &[Edit]) -> Result<BTreeMap<&str, String>> {
    let mut texts = BTreeMap::new();
    for edit in edits {
        let Edit::Replace { path, find, with } = edit else { continue };
        let text = match texts.remove(&**path) {
            Some(text) => text,
            None => fs::read_to_string(process::root().join(path))
                .with_context(|| format!("cannot read `{path}`"))?,
        };
        texts.insert(&**path, replaced(path, &text, find, with)?);
    }
    Ok(texts)
}

fn replaced(path: &str, text: &str, find: &str, with: &str) -> Result<String> {
    let line = find.lines().next().unwrap_or_default();
    ensure!(text.contains(find), "`{path}` has no `{line}`, which would have to be replaced");
    Ok(text.replace(find, with))
}

/// Makes the changes, if no file that they change has work of a person.
pub(super) fn make(edits: &[Edit]) -> Result<()> {
    let mut paths: Vec<&str> = edits.iter().map(Edit::path).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--"]).args(&paths).current_dir(process::root());
    let output = git.output().context("cannot run `git status`")?;
    ensure!(output.status.success(), "`git status` ended with {}", output.status);
    require_committed(&String::from_utf8_lossy(&output.stdout))?;
    for (path, text) in texts(edits)? {
        let written = fs::write(process::root().join(path), text);
        written.with_context(|| format!("cannot write `{path}`"))?;
    }
    let undo = "the move is half done; `git stash` takes it back";
    edits.iter().try_for_each(Edit::make).context(undo)
}

/// Requires that `git status --porcelain` names no file.
fn require_committed(status: &str) -> Result<()> {
    let changed: Vec<&str> = status.lines().filter_map(|line| line.get(3..)).collect();
    ensure!(
        changed.is_empty(),
        "changes of `{}` are not committed, and this command would edit the same files; commit or \
         stash them",
        changed.join("`, `")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_a_person_is_not_overwritten() {
        assert!(require_committed("").is_ok());
        assert_eq!(
            require_committed(" M Cargo.toml\nM  Cargo.lock\n").unwrap_err().to_string(),
            "changes of `Cargo.toml`, `Cargo.lock` are not committed, and this command would edit \
             the same files; commit or stash them"
        );
    }

    #[test]
    fn a_text_that_is_not_there_is_an_error() {
        assert_eq!(replaced("a", "x 1 1", "1", "2").unwrap(), "x 2 2");
        assert_eq!(
            replaced("a.toml", "x", "y = 1\nz = 2", "").unwrap_err().to_string(),
            "`a.toml` has no `y = 1`, which would have to be replaced"
        );
    }
}
