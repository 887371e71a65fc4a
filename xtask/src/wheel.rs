//! `cargo xtask wheel`: builds the Python package as a wheel, with the command and Pyodide's files
//! in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::dist::{self, Build};
use crate::process::{self, Profile};
use crate::{assets, glibc, licenses, release, setup};

/// The version of maturin, which builds the wheel.
const MATURIN: &str = "1.16.0";

/// Where the wheel has Pyodide's files: `share/isolet/assets` in the environment that it is
/// installed into, beside its `bin`.
const ASSETS: &str = "python/isolet.data/data/share/isolet/assets";

/// What a wheel is made for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// To be published: its command has no symbols, and reports its commit.
    Publishing(Build),
    /// To be tested: its command is the one that tests use anyway.
    Tests,
}

/// Makes `target/wheels/isolet-VERSION-py3-none-PLATFORM.whl`, and returns its path.
pub(crate) fn run(purpose: Purpose) -> Result<PathBuf> {
    licenses::check()?;
    match purpose {
        Purpose::Publishing(build) => assets::prepare(&dist::program(build)?)?,
        Purpose::Tests => setup::run()?,
    }
    let maturin = maturin()?;
    let root = process::root();
    stage(&root.join(ASSETS))?;
    let wheels = process::target_dir()?.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)
            .with_context(|| format!("cannot empty `{}`", wheels.display()))?;
    }
    let mut build = Command::new(maturin);
    build.args(["build", "--quiet", "--out"]).arg(&wheels);
    match purpose {
        Purpose::Publishing(how) => dist::as_published(build.args(["--strip", "true"]), how)?,
        Purpose::Tests => build.args(["--profile", Profile::FastBuild.name(), "--strip", "false"]),
    };
    if matches!(purpose, Purpose::Publishing(_)) {
        let bill = process::target_dir()?.join("bills/isolet.cdx.json");
        release::write_bill(&bill, &dist::version()?)?;
        build.arg("--sbom-include").arg(bill);
        if let Some(platform) = glibc::wheel_platform() {
            build.args(["--compatibility", &platform]);
        }
        build.arg("--").args(glibc::link_args()?);
    }
    // Cargo's own settings are looked for from here on.
    process::as_by_hand(build.current_dir(root.join("python")));
    process::check(&mut build)?;
    let made = fs::read_dir(&wheels).context("maturin made no directory of wheels")?;
    let wheel = made.flatten().map(|entry| entry.path()).find(|path| is_wheel(path));
    let wheel = wheel.context("maturin made no wheel")?;
    let bytes = fs::metadata(&wheel).context("cannot read what was built")?.len();
    eprintln!("made `{}`, {bytes} bytes", wheel.display());
    Ok(wheel)
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "whl")
}

/// Copies Pyodide's files to a new directory.
pub(crate) fn stage(to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot empty `{}`", to.display()))?;
    }
    fs::create_dir_all(to).with_context(|| format!("cannot make `{}`", to.display()))?;
    let from = process::assets_dir();
    for file in isolet_pyodide_assets::lock()?.files() {
        let source = from.join(file.name());
        fs::copy(&source, to.join(file.name()))
            .with_context(|| format!("cannot copy `{}`", source.display()))?;
    }
    Ok(())
}

/// Installs maturin into `target/maturin`, once.
fn maturin() -> Result<PathBuf> {
    let environment = process::target_dir()?.join("maturin");
    let program = environment.join("bin/maturin");
    if !process::is_version(&program, MATURIN) {
        eprintln!("installing maturin {MATURIN} with pip");
        process::check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        process::check(pip.arg(format!("maturin=={MATURIN}")))?;
        ensure!(process::is_version(&program, MATURIN), "pip did not bring maturin {MATURIN}");
    }
    Ok(program)
}
