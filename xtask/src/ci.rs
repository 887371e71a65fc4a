//! `cargo xtask ci`: everything that must pass before a change is merged, cheapest first.

use std::ffi::OsStr;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Result, bail};

use crate::process::Profile;
use crate::steps::{Step, Times};
use crate::{bump, deny, fuzz, hosts, junit, licenses, lint, process, test, tidy, vendored_v8};

const BEFORE: [Step; 5] = [
    ("fmt", fmt),
    ("tidy", || tidy::run().and_then(|()| licenses::check()).map(|()| ExitCode::SUCCESS)),
    ("lint", lint::run),
    ("deny", deny::run),
    ("clippy", clippy),
];

/// The build, and downloads for the tests of the Python package.
const PREPARATION: [Step; 1] = [("set-up", || beside(test::environments, test::prepare))];

const AFTER: [Step; 6] = [
    // The crates and Pyodide's files are there, so it needs no network.
    ("bump", bump::check),
    ("hosts", || hosts::run(&[])),
    ("science", || test::science(&[])),
    // The one waits a lot, and the other computes.
    ("python, and the build of the fuzz targets", || {
        beside(fuzz::build_beside, || test::python_package(&[]))
    }),
    ("fuzz", || fuzz::run(&[])),
    ("doc", doc),
];

/// Runs the steps in order and stops at the first failure. Prints how long each took, and the
/// slowest tests.
pub(crate) fn run() -> Result<ExitCode> {
    junit::clear()?;
    let steps: Vec<Step> =
        [&BEFORE[..], &PREPARATION, &test::ALL, &AFTER].into_iter().flatten().copied().collect();
    let mut times = Times::default();
    let code = times.run(&steps)?;
    eprintln!("{}\n{}", times.table(), junit::slowest()?);
    Ok(code)
}

/// Does `other` beside `step`. Fails if either does.
fn beside(other: fn() -> Result<()>, step: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    let other = thread::spawn(other);
    let code = step();
    other.join().unwrap_or_else(|_| bail!("a thread panicked"))?;
    code
}

/// The fuzz targets are a separate workspace.
const FUZZ: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

fn fmt() -> Result<ExitCode> {
    let code = cargo(["fmt", "--all", "--check"])?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    cargo(["fmt"].iter().chain(&FUZZ).chain(&["--check"]))
}

fn clippy() -> Result<ExitCode> {
    vendored_v8::ensure()?;
    let profile = Profile::FastBuild.name();
    let lint = ["--all-targets", "--profile", profile, "--", "-D", "warnings"];
    let code = cargo(["clippy", "--workspace"].iter().chain(&lint))?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    // What users of the libraries get without the features that the command asks for.
    let bare = ["clippy", "--package", "isolet-pyodide-assets", "--no-default-features"];
    let code = cargo(bare.iter().chain(&lint))?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let bare = ["clippy", "--package", "isolet", "--package", "isolet-mcp"];
    let bare = bare.iter().chain(&["--no-default-features", "--lib", "--tests"]);
    // The fuzz targets are linted when they are built.
    cargo(bare.chain(&lint[1..]))
}

fn doc() -> Result<ExitCode> {
    vendored_v8::ensure()?;
    let mut command = process::cargo();
    command.args(["doc", "--workspace", "--no-deps", "--profile", Profile::FastBuild.name()]);
    finish(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn cargo(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<ExitCode> {
    finish(process::cargo().args(args))
}

fn finish(command: &mut Command) -> Result<ExitCode> {
    process::status(command).map(process::exit_code)
}
