//! What has to be true of a release before somebody publishes it.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use super::{BILL, From, SUMS, digests, directory, empty, install_test, make};
use crate::dist::Build;
use crate::steps::{Step, Times};
use crate::{process, uv};

/// What validates bills of materials.
const VALIDATOR: [&str; 1] = ["cyclonedx-python-lib[json-validation]==11.12.0"];
const VALIDATE: &str = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read())
    if error:
        sys.exit(f'{path}: {error}')
    print(f'{path.rsplit(\"/\", 1)[-1]} is CycloneDX 1.6', file=sys.stderr)
";

/// Runs every check.
pub(super) fn run(from: From) -> Result<ExitCode> {
    let steps: [Step; 4] = [
        ("digests", || sums_are_right().map(|()| ExitCode::SUCCESS)),
        ("bills of materials", || bills_are_valid().map(|()| ExitCode::SUCCESS)),
        ("crates", || crates_can_be_published().map(|()| ExitCode::SUCCESS)),
        ("install", || install_test::run(&[])),
    ];
    // A step has no arguments.
    let again: Step = match (from.build, from.tested_packages) {
        (Build::Tested, _) => ("a second packing", || packed_again(Build::Tested, true)),
        (Build::Optimized, true) => ("a second packing", || packed_again(Build::Optimized, true)),
        (Build::Optimized, false) => ("a second packing", || packed_again(Build::Optimized, false)),
    };
    let mut times = Times::default();
    let mut code = times.run(&steps)?;
    if code == ExitCode::SUCCESS {
        code = times.run(&[again])?;
    }
    eprintln!("{}", times.table());
    Ok(code)
}

/// Requires that the list of digests has every file as it is.
fn sums_are_right() -> Result<()> {
    let dir = directory()?;
    let listed = fs::read_to_string(dir.join(SUMS))
        .context("the release has no list of digests; `cargo xtask release` makes it")?;
    let found = super::list(&digests(&dir)?);
    ensure!(listed == found, "`{SUMS}` is not what the files are; they are:\n{found}");
    Ok(())
}

/// Requires that bills of materials are what the standard's schema says.
fn bills_are_valid() -> Result<()> {
    let home = process::target_dir()?.join("cyclonedx");
    let python = uv::with_packages(&home, &VALIDATOR)?;
    let dir = directory()?;
    let names = digests(&dir)?.into_iter().map(|(name, _)| name);
    let bills: Vec<_> = names.filter(|name| name.ends_with(BILL)).collect();
    ensure!(!bills.is_empty(), "the release has no bill of materials");
    let mut validate = Command::new(python);
    validate.args(["-c", VALIDATE]).args(bills.iter().map(|name| dir.join(name)));
    process::check(&mut validate)
}

/// Has cargo do all that publishing does but the upload. It does not compile the packages again,
/// which would take half an hour for V8's.
fn crates_can_be_published() -> Result<()> {
    let mut cargo = process::cargo();
    cargo.args(["publish", "--workspace", "--dry-run", "--no-verify", "--locked", "--allow-dirty"]);
    process::check(&mut cargo)
}

/// Makes everything again from the same program, and requires the same bytes.
fn packed_again(build: Build, tested_packages: bool) -> Result<ExitCode> {
    let (first, second) = (directory()?, process::target_dir()?.join("release-again"));
    empty(&second)?;
    make(From { build, tested_packages }, &second)?;
    let differing = differing(&first, &second)?;
    fs::remove_dir_all(&second).context("cannot remove the second packing")?;
    ensure!(differing.is_empty(), "not the same each time: {}", differing.join(", "));
    Ok(ExitCode::SUCCESS)
}

fn differing(first: &Path, second: &Path) -> Result<Vec<String>> {
    let (first, second) = (digests(first)?, digests(second)?);
    let names = |one: &[(String, _)]| one.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    ensure!(names(&first) == names(&second), "{:?} and {:?}", names(&first), names(&second));
    let pairs = first.into_iter().zip(second).filter(|(one, other)| one.1 != other.1);
    Ok(pairs.map(|((name, one), (_, other))| format!("{name} ({one}, {other})")).collect())
}
