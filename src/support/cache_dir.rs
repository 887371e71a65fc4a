//! The directories in which isolet keeps files for a user.

use std::path::{Path, PathBuf};

use crate::data::error::{Error, ErrorKind};

/// The environment variable with the directory of the assets.
pub const ASSETS_VARIABLE: &str = "ISOLET_ASSETS";

/// The environment variable with the directory of the packages that are installed.
pub const BUNDLE_VARIABLE: &str = "ISOLET_BUNDLE";

/// Returns the directory that the variable for the assets names.
pub(crate) fn assets_variable() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the variable for it")]
    let named = std::env::var_os(ASSETS_VARIABLE).filter(|dir| !dir.is_empty());
    named.map(PathBuf::from)
}

/// Returns `true` if the user has named a directory of assets, which is then never changed.
#[must_use]
pub fn is_named(explicit: Option<&Path>) -> bool {
    explicit.is_some() || assets_variable().is_some()
}

/// Returns isolet's directory `name` in the user's cache directory.
///
/// # Errors
///
/// [`ErrorKind::Assets`] if the user has no cache directory.
pub fn cache_dir(name: &str) -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        let message = format!("the user's cache directory is unknown: {error}");
        Error::new(ErrorKind::Assets, message)
            .with_source(error)
            .with_hint(format!("name a directory in {ASSETS_VARIABLE}"))
    })?;
    let dir = strategy.cache_dir();
    if dir.is_absolute() {
        return Ok(dir.join("isolet").join(name));
    }
    // With a home that is not, which would mean another directory in each current one.
    let message = format!("the user's cache directory is `{}`, no absolute path", dir.display());
    let hint = format!("set XDG_CACHE_HOME, HOME or {ASSETS_VARIABLE} to an absolute path");
    Err(Error::new(ErrorKind::Assets, message).with_hint(hint))
}

/// Returns isolet's directories of the user that there are: what is in them is trusted.
pub(crate) fn own_directories() -> Vec<PathBuf> {
    use etcetera::BaseStrategy;
    let Ok(strategy) = etcetera::choose_base_strategy() else { return Vec::new() };
    let all = [strategy.cache_dir(), strategy.data_dir()].map(|dir| dir.join("isolet"));
    all.into_iter().filter(|dir| dir.is_absolute() && dir.is_dir()).collect()
}

/// Returns isolet's directory `name` in the user's data directory, for what cannot be made again.
///
/// # Errors
///
/// [`ErrorKind::Config`] if the user has no data directory.
pub fn data_dir(name: &str) -> Result<PathBuf, Error> {
    use etcetera::BaseStrategy;
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        let message = format!("the user's data directory is unknown: {error}");
        Error::new(ErrorKind::Config, message).with_source(error)
    })?;
    Ok(strategy.data_dir().join("isolet").join(name))
}
