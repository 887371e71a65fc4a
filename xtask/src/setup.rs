//! `cargo xtask setup`: prepares a fresh clone, so that the command can run Python.

use std::process::Command;

use anyhow::Result;

use crate::{assets, dist, process, vendored_v8};

/// Does everything that is missing. A second call changes nothing.
pub(crate) fn run() -> Result<()> {
    build(&mut process::cargo())
}

/// As [`run`], and makes the command report its commit. It is then rebuilt after each commit, which
/// tests need not wait for.
pub(crate) fn with_commit() -> Result<()> {
    build(dist::with_commit(&mut process::cargo()))
}

fn build(cargo: &mut Command) -> Result<()> {
    vendored_v8::ensure()?;
    assets::fetch()?;
    process::check(cargo.args(["build", "--release", "--bin", "isolet"]))?;
    prepare()
}

/// Makes the built command prepare its memory image, if there is none.
pub(crate) fn prepare() -> Result<()> {
    let mut prepare = Command::new(process::built("isolet")?);
    prepare.args(["assets", "prepare", "--assets"]).arg(process::assets_dir());
    process::check(&mut prepare)
}
