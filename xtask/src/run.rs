//! `cargo xtask run`: builds the command from this tree, prepares it and runs it.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::process::{self, Profile};
use crate::setup;

/// Runs `isolet run ARGS`.
pub(crate) fn script(args: &[OsString]) -> Result<ExitCode> {
    command(&[&["run".into()], args].concat())
}

/// Runs `isolet ARGS` in the caller's directory, with the caller's streams and exit code.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    setup::with_commit()?;
    let mut isolet = Command::new(Profile::FastBuild.built("isolet")?);
    process::replace_by(process::with_assets(isolet.args(args)))
}
