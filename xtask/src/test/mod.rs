//! `cargo xtask test`: runs every test, and the examples.

mod package;
mod science;
mod watch;

use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};

pub(crate) use self::package::{run as python_package, trl};
pub(crate) use self::science::{digests as science_digests, wheels as science_wheels};
use crate::process::{self, Profile};
use crate::{python, setup};

/// Runs the tests with numpy, pandas and others, in both isolations.
pub(crate) fn science(args: &[OsString]) -> Result<ExitCode> {
    python::ensure()?;
    setup::run()?;
    science::wheels()?;
    for isolation in ["thread", "process"] {
        eprintln!("science, isolation {isolation}");
        let mut cargo = process::cargo();
        cargo.args([
            "test",
            "--profile",
            Profile::FastBuild.name(),
            "--package",
            "isolet",
            "--test",
            "it",
            "science::",
        ]);
        cargo.args(["--", "--ignored"]).args(args).env("ISOLET_ISOLATION", isolation);
        let status = status(args, python::with_python(process::with_assets(&mut cargo))?)?;
        if !status.success() {
            return Ok(process::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs cargo's tests with `args`. Without `args`, also runs each example.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    python::ensure()?;
    setup::run()?;
    // All use one profile, so that V8's bindings and deno_core are compiled once. Unit tests and
    // documentation do not depend on the isolation; the integration tests run with each.
    for (isolation, what) in
        [("thread", &["--workspace"][..]), ("process", &["--workspace", "--test", "it"])]
    {
        eprintln!("isolation {isolation}");
        let mut cargo = process::cargo();
        cargo
            .args(["test", "--profile", Profile::FastBuild.name()])
            .args(what)
            .args(args)
            .env("ISOLET_ISOLATION", isolation);
        let status = status(args, python::with_python(process::with_assets(&mut cargo))?)?;
        if !status.success() {
            return Ok(process::exit_code(status));
        }
    }
    if args.is_empty() {
        eprintln!("without the feature `engine`");
        let mut cargo = process::cargo();
        cargo.args([
            "test",
            "--profile",
            Profile::FastBuild.name(),
            "--no-default-features",
            "--lib",
        ]);
        cargo.args(["--test", "without_engine"]);
        cargo.env("ISOLET_TEST_WORKER", Profile::FastBuild.built("isolet")?);
        let status = status(args, process::with_assets(&mut cargo))?;
        if !status.success() {
            return Ok(process::exit_code(status));
        }
        for name in examples()? {
            eprintln!("example {name}");
            let mut example = Command::new(Profile::FastBuild.built(&format!("examples/{name}"))?);
            process::check(process::with_assets(example.current_dir(process::root())))?;
        }
        eprintln!("example dspy_drop_in.py");
        let mut example = Command::new(python::program()?);
        example
            .arg("examples/dspy_drop_in.py")
            .env("ISOLET_BIN", Profile::FastBuild.built("isolet")?);
        process::check(process::with_assets(example.current_dir(process::root())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `cargo test` with a time limit for each test, if its output names the tests.
fn status(args: &[OsString], cargo: &mut Command) -> Result<ExitStatus> {
    let is_terse = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        ["-q", "--quiet"].contains(&&*arg) || arg.starts_with("--format")
    };
    if args.iter().any(is_terse) { process::status(cargo) } else { watch::status(cargo) }
}

/// Rewrites the lists in `tests/golden` of what a guest can reach, for a person to review.
pub(crate) fn golden() -> Result<ExitCode> {
    setup::run()?;
    let mut cargo = process::cargo();
    cargo.args([
        "test",
        "--profile",
        Profile::FastBuild.name(),
        "--lib",
        "--test",
        "it",
        "golden_list",
    ]);
    let status = process::status(process::with_assets(cargo.env("ISOLET_GOLDEN", "1")))?;
    Ok(process::exit_code(status))
}

/// Returns the names of the Rust examples, which `cargo test` has just built.
fn examples() -> Result<Vec<String>> {
    let dir = process::root().join("examples");
    let entries = fs::read_dir(&dir).context("cannot read `examples`")?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.context("cannot read `examples`")?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
