//! `isolet assets`: fetches, checks and prepares the interpreter's files. All other subcommands
//! fetch missing files before the first start.

use crate::kit::engine::{authorities, fetch_progress};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use isolet::internals::fetch_options;
use isolet::{Engine, find_assets};
use isolet_pyodide_assets::{fetch, verify};

use crate::show::exit;
use crate::show::progress::notice;

#[derive(clap::Subcommand)]
pub(crate) enum AssetsCommand {
    /// Fetch missing or damaged files, then make the memory image
    Fetch {
        /// Trust the certificate authorities in a PEM file, too; npm has settings of its own
        #[arg(long, value_name = "FILE")]
        ca_file: Vec<PathBuf>,
    },
    /// Verify the sha256 of every file
    Verify,
    /// Make the memory image that sessions start from, unless it exists
    Prepare,
    /// Print the directory of the assets
    Path,
}

pub(crate) fn assets(command: &AssetsCommand, assets: Option<&Path>) -> Result<ExitCode> {
    let dir = find_assets(assets)?;
    match command {
        AssetsCommand::Fetch { ca_file } => {
            let mut progress = fetch_progress();
            let report = fetch(&dir, &fetch_options(authorities(ca_file)?), &mut *progress)?;
            prepare(&dir)?;
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
            prepare(&dir)?;
        }
        AssetsCommand::Path => writeln!(io::stdout(), "{}", dir.display())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the memory image, or a new one if the one there cannot be used.
fn prepare(dir: &Path) -> Result<()> {
    let builder = Engine::builder().assets(dir).replace_damaged_image();
    let engine = builder.on_notice(notice).build()?;
    if engine.image_notice().is_some() {
        bail!("nothing was prepared, because no image could be stored");
    }
    Ok(())
}
