//! `cargo xtask setup`: from a fresh clone to a command that runs Python.

use std::process::Command;

use anyhow::Result;

use crate::{assets, dist, process, vendored_v8};

/// Does what is missing; a second call changes nothing.
pub(crate) fn run() -> Result<()> {
    build(&mut process::cargo())
}

/// The same, and the command can tell which commit it is of. It is built anew after each commit,
/// which tests need not wait for.
pub(crate) fn with_commit() -> Result<()> {
    build(dist::with_commit(&mut process::cargo()))
}

fn build(cargo: &mut Command) -> Result<()> {
    vendored_v8::ensure()?;
    assets::fetch()?;
    process::check(cargo.args(["build", "--release", "--bin", "isolet"]))?;
    prepare()
}

/// Has the built command make its memory image, if there is none.
pub(crate) fn prepare() -> Result<()> {
    let mut prepare = Command::new(process::built("isolet")?);
    prepare.args(["assets", "prepare", "--assets"]).arg(process::assets_dir());
    process::check(&mut prepare)
}
