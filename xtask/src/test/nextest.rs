//! Runs tests by cargo-nextest: each in a process of its own, with a time limit and a report of how
//! long it took. `.config/nextest.toml` has its profiles.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process::{self, Profile};
use crate::side_by_side;

/// The version that is installed if there is none.
const VERSION: &str = "0.9.143";

/// The oldest that understands our configuration: its number after `0.9.`.
const OLDEST: u32 = 118;

/// Tests at a time for each processor. Most of them wait for most of their time.
const TESTS_PER_CORE: usize = 2;

/// Returns a call of `cargo nextest run` with a profile of the configuration.
pub(super) fn run(profile: &str) -> Result<Command> {
    let mut command = process::cargo();
    if let Some(dir) = ensure()? {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([dir].into_iter().chain(std::env::split_paths(&path)))
            .context("the directory of cargo-nextest cannot be on PATH")?;
        command.env("PATH", path);
    }
    let threads = TESTS_PER_CORE * side_by_side::processors();
    command.args(["nextest", "run", "--cargo-profile", Profile::FastBuild.name()]);
    command.args(["--profile", profile, "--test-threads", &threads.to_string()]);
    Ok(command)
}

/// Makes sure that there is a cargo-nextest. Returns the directory of the one that was installed
/// here, unless the machine has its own.
fn ensure() -> Result<Option<PathBuf>> {
    let said = process::cargo().args(["nextest", "--version"]).stderr(Stdio::null()).output();
    if said.is_ok_and(|said| is_new_enough(&String::from_utf8_lossy(&said.stdout))) {
        return Ok(None);
    }
    let dir = process::target_dir()?.join("cargo-nextest");
    let bin = dir.join("bin");
    let program = bin.join("cargo-nextest").with_extension(std::env::consts::EXE_EXTENSION);
    if !program.exists() {
        eprintln!("installing cargo-nextest {VERSION} with cargo, which takes minutes");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        let mut cargo = process::cargo();
        cargo.args(["install", "cargo-nextest", "--version", VERSION, "--locked", "--debug"]);
        process::check(cargo.args(["--quiet", "--force", "--root"]).arg(&dir))?;
        ensure!(program.exists(), "cargo did not bring cargo-nextest {VERSION}");
    }
    Ok(Some(bin))
}

/// Reads what `cargo nextest --version` prints.
fn is_new_enough(said: &str) -> bool {
    let version = said.split_whitespace().nth(1).and_then(|version| version.strip_prefix("0.9."));
    version.and_then(|patch| patch.parse::<u32>().ok()).is_some_and(|patch| patch >= OLDEST)
}

/// Splits what a person has typed after `cargo xtask test` from what each run needs.
pub(super) fn with_args(command: &mut Command, args: &[OsString]) {
    command.args(args);
    if !args.is_empty() {
        // A name may be of a test that only the other isolation runs.
        command.args(["--no-tests", "warn"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_new_enough_or_another_is_installed() {
        assert!(is_new_enough("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143\n"));
        assert!(!is_new_enough("cargo-nextest 0.9.70\n"));
        assert!(!is_new_enough(""));
    }
}
