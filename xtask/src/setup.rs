//! `cargo xtask setup`: prepares a fresh clone, so that the command can run Python.

use std::process::Command;

use anyhow::Result;

use crate::process::{self, Profile};
use crate::{assets, dist, vendored_v8};

/// Does everything that is missing. A second call changes nothing.
pub(crate) fn run() -> Result<()> {
    build(&mut process::cargo(), Profile::FastBuild)
}

/// As [`run`], and makes the command report its commit. It is then rebuilt after each commit, which
/// tests need not wait for.
pub(crate) fn with_commit() -> Result<()> {
    build(dist::with_commit(&mut process::cargo()), Profile::FastBuild)
}

/// As [`run`], with the command as it is released, for what measures it.
pub(crate) fn release() -> Result<()> {
    build(&mut process::cargo(), Profile::Release)
}

fn build(cargo: &mut Command, profile: Profile) -> Result<()> {
    vendored_v8::ensure()?;
    process::check(cargo.args([
        "build",
        "--profile",
        profile.name(),
        "--package",
        process::COMMAND,
    ]))?;
    assets::prepare(&profile.built("isolet")?)
}
