//! `cargo xtask assets`: fetches and verifies Pyodide's files in the repository. The built command
//! fetches them, so that this program needs no network code.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::process;

/// Has a built command fetch the files that are missing or wrong, and make its memory image if
/// there is none.
pub(crate) fn prepare(isolet: &Path) -> Result<()> {
    let dir = process::assets_dir();
    let is_complete = isolet_pyodide_assets::verify(&dir).is_ok_and(|found| found.is_ok());
    let step = if is_complete { "prepare" } else { "fetch" };
    process::check(Command::new(isolet).args(["assets", step, "--assets"]).arg(dir))
}

/// Prints for each file whether it is correct. Fails if one is not.
pub(crate) fn verify() -> Result<ExitCode> {
    let verification = isolet_pyodide_assets::verify(&process::assets_dir())?;
    for file in verification.files() {
        eprintln!("{file}");
    }
    Ok(if verification.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
