//! Finds the directory of the Pyodide assets, and that of the packages that are installed.

use std::path::{Path, PathBuf};

use crate::data::error::Error;
use crate::packages::Bundle;
use crate::support::cache_dir::{BUNDLE_VARIABLE, assets_variable, cache_dir, data_dir};

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
    if let Some(dir) = assets_variable() {
        return Ok(dir);
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
    installed("assets")
}

fn installed(name: &str) -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let prefix = executable.parent()?.parent()?;
    Some(prefix.join("share/isolet").join(name)).filter(|dir| dir.is_dir())
}

/// What stands for no bundle in the place of its directory.
const NO_BUNDLE: &str = "none";

/// Returns the packages that are installed, the first of these that there are: in the directory
/// `explicit`, or none if it is `none`; the same by the value of `ISOLET_BUNDLE`; in
/// `../share/isolet/packages` beside the executable's directory, where `isolet-science` installs
/// them; in `isolet/packages` in the user's data directory.
///
/// # Errors
///
/// As [`Bundle::open`]. Of a directory that nobody has named, the error is one that need not stop
/// anybody.
pub fn find_bundle(explicit: Option<&Path>) -> Result<Option<Bundle>, Error> {
    #[expect(clippy::disallowed_methods, reason = "the one variable the library looks at for it")]
    let variable = || std::env::var_os(BUNDLE_VARIABLE).filter(|dir| !dir.is_empty());
    let named = explicit.map(Path::to_path_buf).or_else(|| variable().map(PathBuf::from));
    let found = match named {
        Some(none) if none.as_os_str() == NO_BUNDLE => None,
        Some(dir) => Some(dir),
        None => {
            let of_user = || data_dir("packages").ok().filter(|dir| dir.is_dir());
            installed("packages").or_else(of_user)
        }
    };
    found.map(Bundle::open).transpose()
}

/// The maximum depth of an executable in a checkout: `target/TRIPLE/release/examples/NAME`.
const CHECKOUT_DEPTH: usize = 6;

fn checkout_dir() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let assets = executable.ancestors().take(CHECKOUT_DEPTH).map(|dir| dir.join("pyodide-assets"));
    assets.filter(|dir| dir.join("lock.toml").is_file()).map(|dir| dir.join("dist")).next()
}
