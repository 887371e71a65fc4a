//! Finds the directory of the Pyodide assets.

use std::path::{Path, PathBuf};

use crate::data::error::Error;
use crate::support::cache_dir::{ASSETS_VARIABLE, cache_dir};

/// Returns the directory of the assets, the first of these that applies: `explicit`; the value of
/// `ISOLET_ASSETS`; the checkout's own directory, for an executable built in a checkout of isolet;
/// the user's cache directory.
///
/// Does not check that the directory exists.
///
/// # Errors
///
/// [`ErrorKind::Assets`](crate::ErrorKind::Assets) if none of these applies, because the user has
/// no cache directory.
pub fn find_assets(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(dir) = explicit {
        return Ok(dir.to_path_buf());
    }
    #[expect(clippy::disallowed_methods, reason = "the one variable the library looks at")]
    let named = std::env::var_os(ASSETS_VARIABLE).filter(|dir| !dir.is_empty());
    if let Some(dir) = named {
        return Ok(dir.into());
    }
    let version = concat!("assets-", env!("CARGO_PKG_VERSION"));
    checkout_dir().map_or_else(|| cache_dir(version), Ok)
}

/// The maximum depth of an executable in a checkout: `target/TRIPLE/release/examples/NAME`.
const CHECKOUT_DEPTH: usize = 6;

fn checkout_dir() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let assets = executable.ancestors().take(CHECKOUT_DEPTH).map(|dir| dir.join("pyodide-assets"));
    assets.filter(|dir| dir.join("lock.toml").is_file()).map(|dir| dir.join("dist")).next()
}
