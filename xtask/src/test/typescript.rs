//! `cargo xtask test --typescript`: the types of the TypeScript package, and its tests with the
//! built command.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process::{self, Profile};

/// The longest time of a test, in milliseconds.
const TEST_MILLISECONDS: u32 = 120_000;

/// What was installed, which is the lock file of then.
const INSTALLED: &str = "node_modules/installed.json";

/// Installs what the tests need, unless it is there.
pub(crate) fn environment() -> Result<()> {
    let read = |name: &str| fs::read(directory().join(name));
    let lock = read("package-lock.json").context("cannot read `typescript/package-lock.json`")?;
    if read(INSTALLED).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    eprintln!("installing what the tests of the TypeScript package need with npm");
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]);
    process::check(npm.current_dir(directory()))?;
    fs::write(directory().join(INSTALLED), lock).context("cannot write to `node_modules`")
}

/// Compiles the package.
pub(crate) fn build() -> Result<()> {
    environment()?;
    let mut tsc = Command::new(directory().join("node_modules/.bin/tsc"));
    process::check(tsc.args(["--project", "."]).current_dir(directory()))
}

/// Compiles the package with its tests and runs those, or the files that `args` names.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    environment()?;
    let mut tsc = Command::new(directory().join("node_modules/.bin/tsc"));
    let status = process::status(tsc.args(["--project", "tests"]).current_dir(directory()))?;
    if !status.success() {
        return Ok(process::exit_code(status));
    }
    let mut node = Command::new("node");
    node.arg("--test").arg(format!("--test-timeout={TEST_MILLISECONDS}"));
    if args.is_empty() {
        node.args(files()?);
    }
    node.args(args).current_dir(directory());
    node.env("ISOLET_BIN", Profile::FastBuild.built("isolet")?);
    process::status(process::with_assets(&mut node)).map(process::exit_code)
}

/// Returns the compiled files of tests. Which directories `node --test` takes depends on its
/// version.
fn files() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory().join("tests")).context("cannot read the tests")?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.context("cannot read the tests")?.file_name();
        let test = name.to_string_lossy().strip_suffix(".test.ts").map(str::to_owned);
        files.extend(test.map(|test| PathBuf::from(format!("build/tests/{test}.test.js"))));
    }
    files.sort();
    Ok(files)
}

/// Returns the directory of the package.
pub(crate) fn directory() -> PathBuf {
    process::root().join("typescript")
}
