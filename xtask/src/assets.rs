//! `cargo xtask assets`: fetches and verifies Pyodide's files in the repository.

use std::env;
use std::process::ExitCode;

use anyhow::Result;
use isolet_pyodide_assets::{Bar, FetchOptions, Origin, Progress, Silent, fetch as fetch_assets};

use crate::process;

/// Fetches files that are missing or wrong. Prints nothing if there are none.
pub(crate) fn fetch() -> Result<()> {
    let mut options = FetchOptions::default();
    if let Ok(source) = env::var("ISOLET_ASSETS_URL") {
        options = options.sources([source]);
    }
    let mut progress: Box<dyn Progress> =
        if env::var_os("CI").is_some() { Box::new(Silent) } else { Box::new(Bar::stderr()) };
    let report = fetch_assets(&process::assets_dir(), &options, &mut *progress)?;
    drop(progress);
    if let Some(origin) = report.origin() {
        let version = isolet_pyodide_assets::lock()?.version();
        let count = report.fetched().len();
        let way = if origin == Origin::Npm { "with npm" } else { "by download" };
        eprintln!("fetched {count} files of Pyodide {version} {way}");
    }
    Ok(())
}

/// Prints for each file whether it is correct. Fails if one is not.
pub(crate) fn verify() -> Result<ExitCode> {
    let verification = isolet_pyodide_assets::verify(&process::assets_dir())?;
    for file in verification.files() {
        eprintln!("{file}");
    }
    Ok(if verification.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
