//! `cargo xtask wheel --science`: builds `isolet-science`, the wheel with the packages that code
//! imports without further options, and the same as a tarball.

mod list;
pub(crate) mod own;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, Profile};
use crate::{dist, python, setup, test};

/// Packs a bundle.
const PACK: &str = include_str!("pack.py");

/// Where Pyodide's builds come from.
pub(crate) enum Source {
    /// Pyodide's distribution.
    Distribution,
    /// This directory of wheels.
    Wheels(PathBuf),
}

impl Source {
    /// Reads the arguments of the command.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        match arguments {
            [] => Ok(Self::Distribution),
            ["--wheels", directory] => Ok(Self::Wheels(PathBuf::from(directory))),
            ["--tested"] => Self::tested(),
            _ => bail!(
                "`wheel --science` takes `--wheels DIR`, or `--tested` for the builds that the tests \
                 use"
            ),
        }
    }

    /// Returns the builds that the tests use.
    pub(crate) fn tested() -> Result<Self> {
        Ok(Self::Wheels(test::science_wheels()?))
    }
}

/// Makes the wheel, the tarball and their bill of materials, and returns their directory.
pub(crate) fn wheel(source: &Source) -> Result<PathBuf> {
    let bundle = bundle(source)?;
    let out = process::target_dir()?.join("science/dist");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot empty `{}`", out.display()))?;
    }
    let mut pack = Command::new(python::program()?);
    pack.args(["-c", PACK]).args([&bundle, &out]).arg(dist::version()?);
    process::check(&mut pack)?;
    Ok(out)
}

/// Makes the bundle in `target/science/bundle` anew, and returns that directory.
pub(crate) fn bundle(source: &Source) -> Result<PathBuf> {
    python::ensure()?;
    setup::run()?;
    let isolet = Profile::FastBuild.built("isolet")?;
    let directory = process::target_dir()?.join("science/bundle");
    let mut packages: Vec<&str> = own::NAMES.into_iter().chain(list::PACKAGES).collect();
    for choices in list::OF_PYODIDE {
        match first_at_hand(&isolet, source, choices)? {
            Some(choice) => packages.push(choice),
            None => eprintln!("{} is left out: its build is not at hand", choices.concat()),
        }
    }
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot empty `{}`", directory.display()))?;
    }
    let mut make = command(&isolet, source, "bundle")?;
    make.arg(packages.join(",")).arg("--to").arg(&directory);
    make.arg("--wheels").arg(own::directory()?);
    for set in list::SETS {
        make.args(["--set", set]);
    }
    process::check(&mut make)?;
    Ok(directory)
}

/// Returns the first of these that can be had.
fn first_at_hand<'a>(
    isolet: &Path,
    source: &Source,
    choices: &[&'a str],
) -> Result<Option<&'a str>> {
    for choice in choices {
        if is_at_hand(isolet, source, choice)? {
            return Ok(Some(choice));
        }
    }
    Ok(None)
}

/// Returns `true` if the packages and what they need can be had.
fn is_at_hand(isolet: &Path, source: &Source, packages: &str) -> Result<bool> {
    let to = process::target_dir()?.join("science/tried");
    let mut fetch = command(isolet, source, "fetch")?;
    fetch.args(["--json", packages, "--to"]).arg(to);
    let output = fetch.output().with_context(|| format!("cannot run `{}`", isolet.display()))?;
    Ok(output.status.success())
}

fn command(isolet: &Path, source: &Source, name: &str) -> Result<Command> {
    let mut command = Command::new(isolet);
    command.args(["packages", name]);
    if let Source::Wheels(directory) = source {
        command.arg("--wheels").arg(directory);
    }
    python::with_python(process::with_assets(&mut command))?;
    Ok(command)
}
