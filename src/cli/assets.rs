//! `isolet assets`: fetch, check and prepare what the interpreter is made of.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use isolet::{Engine, find_assets};
use isolet_pyodide_assets::{Bar, FetchOptions, Progress, Silent, fetch, verify};

use super::exit;

#[derive(clap::Subcommand)]
pub(super) enum AssetsCommand {
    /// Fetch what is missing or damaged, then make the memory image
    Fetch,
    /// Check every file against its sha256
    Verify,
    /// Make the memory image that sessions start from, if it is not there
    Prepare,
    /// Print the directory
    Path,
}

/// Overrides where the files are downloaded from, as a URL with `{file}`.
const SOURCE_VARIABLE: &str = "ISOLET_ASSETS_URL";

pub(super) fn assets(command: &AssetsCommand, assets: Option<&Path>) -> Result<ExitCode> {
    let dir = find_assets(assets)?;
    match command {
        AssetsCommand::Fetch => {
            let mut progress = progress();
            let report = fetch(&dir, &options(), &mut *progress)?;
            Engine::prepare_assets(&dir)?;
            let mut stderr = io::stderr();
            match report.fetched() {
                [] => writeln!(stderr, "everything is in `{}` already", dir.display())?,
                files => writeln!(stderr, "fetched {} files to `{}`", files.len(), dir.display())?,
            }
        }
        AssetsCommand::Verify => {
            let verification = verify(&dir)?;
            for file in verification.files() {
                writeln!(io::stdout(), "{file}")?;
            }
            if !verification.is_ok() {
                return Ok(exit::FAILED.into());
            }
        }
        AssetsCommand::Prepare => {
            Engine::prepare_assets(&dir)?;
        }
        AssetsCommand::Path => writeln!(io::stdout(), "{}", dir.display())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn options() -> FetchOptions {
    #[expect(clippy::disallowed_methods, reason = "the command's own setting")]
    let source = std::env::var(SOURCE_VARIABLE).ok().filter(|source| !source.is_empty());
    match source {
        Some(source) => FetchOptions::default().sources([source]),
        None => FetchOptions::default(),
    }
}

fn progress() -> Box<dyn Progress> {
    #[expect(clippy::disallowed_methods, reason = "the command's own setting")]
    let quiet = std::env::var_os("CI").is_some();
    if quiet || !io::stderr().is_terminal() { Box::new(Silent) } else { Box::new(Bar::stderr()) }
}
