//! `cargo xtask ci`: everything that must pass before a change is merged, cheapest first.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::process::Profile;
use crate::steps::{Step, Times};
use crate::{
    bump, compiler, deny, fuzz, hosts, junit, licenses, lint, platforms, process, test, tidy,
    vendored_v8,
};

const BEFORE: [Step; 4] = [
    ("fmt", fmt),
    ("tidy", || tidy::run().and_then(|()| licenses::check()).map(|()| ExitCode::SUCCESS)),
    ("platforms", || platforms::run(&[])),
    // Both install programs: the one waits for downloads, the other compiles.
    ("lint, deny", || beside(|| lint::run().and_then(passed), deny::run)),
];

/// Downloads for the tests of the Python package are beside the build.
const PREPARATION: [Step; 2] =
    [("build, by Clippy and rustdoc", || beside(environments, build)), ("set-up", test::prepare)];

const AFTER: [Step; 5] = [
    // The crates and Pyodide's files are there, so it needs no network.
    ("bump", bump::check),
    ("hosts, typescript", || beside(|| test::typescript(&[]).and_then(passed), || hosts::run(&[]))),
    ("science", || test::science(&[])),
    // The one waits a lot, and the other computes.
    ("python, and the build of the fuzz targets", || {
        beside(fuzz::build_beside, || test::python_package(&[]))
    }),
    ("fuzz", || fuzz::run(&[])),
];

/// Runs the steps in order and stops at the first failure. Prints how long each took, and the
/// slowest tests.
pub(crate) fn run() -> Result<ExitCode> {
    if !compiler::is_set() {
        let mut again = Command::new(env::current_exe().context("cannot tell where this is")?);
        return process::replace_by(compiler::set(again.arg("ci"))?);
    }
    junit::clear()?;
    let steps: Vec<Step> =
        [&BEFORE[..], &PREPARATION, &test::ALL, &AFTER].into_iter().flatten().copied().collect();
    let mut times = Times::default();
    let code = times.run(&steps)?;
    eprintln!("{}\n{}", times.table(), junit::slowest()?);
    Ok(code)
}

/// Downloads what the tests of the packages for other languages need.
fn environments() -> Result<()> {
    test::typescript_environment()?;
    test::environments()
}

/// Requires that a step has passed.
fn passed(code: ExitCode) -> Result<()> {
    ensure!(code == ExitCode::SUCCESS, "a step beside another failed");
    Ok(())
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

/// Builds all that is tested, and the benchmarks. What users of the libraries get without the
/// features that the command asks for is built for the tests of it.
fn build() -> Result<ExitCode> {
    vendored_v8::ensure()?;
    let profile = ["--profile", Profile::FastBuild.name()];
    let all = ["build", "--workspace", "--all-targets"];
    let code = cargo(all.iter().chain(&profile))?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let bare = ["clippy", "--package", "isolet-pyodide-assets", "--no-default-features"];
    let lint = ["--all-targets", "--", "-D", "warnings"];
    cargo(bare.iter().chain(&profile).chain(&lint))
}

fn cargo(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<ExitCode> {
    finish(process::cargo().args(args))
}

fn finish(command: &mut Command) -> Result<ExitCode> {
    process::status(command).map(process::exit_code)
}
