//! Finds the directory of the Pyodide assets.

use std::path::{Path, PathBuf};

use crate::data::error::Error;
use crate::support::cache_dir::{ASSETS_VARIABLE, cache_dir};

/// Returns the directory of the assets, the first of these that applies: `explicit`; the value of
/// `ISOLET_ASSETS`; `../share/isolet/assets` beside the executable's directory, where packages
/// install them; the checkout's own directory, for an executable built in a checkout of isolet; the
/// user's cache directory.
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
    installed_dir().or_else(checkout_dir).map_or_else(|| cache_dir(VERSION), Ok)
}

/// Returns the directory of the image of these assets: their own, or the user's cache directory if
/// they were installed with the executable. What is installed may belong to somebody else, and
/// knows of no further files when it is removed.
pub(super) fn image_dir(assets: &Path) -> PathBuf {
    let is_installed = installed_dir().is_some_and(|installed| installed == assets);
    let cached = is_installed.then(|| cache_dir(VERSION).ok()).flatten();
    cached.unwrap_or_else(|| assets.to_owned())
}

/// The directory of one version in the user's cache directory.
const VERSION: &str = concat!("assets-", env!("CARGO_PKG_VERSION"));

fn installed_dir() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let prefix = executable.parent()?.parent()?;
    Some(prefix.join("share/isolet/assets")).filter(|dir| dir.is_dir())
}

/// The maximum depth of an executable in a checkout: `target/TRIPLE/release/examples/NAME`.
const CHECKOUT_DEPTH: usize = 6;

fn checkout_dir() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let assets = executable.ancestors().take(CHECKOUT_DEPTH).map(|dir| dir.join("pyodide-assets"));
    assets.filter(|dir| dir.join("lock.toml").is_file()).map(|dir| dir.join("dist")).next()
}
