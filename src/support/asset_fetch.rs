//! Fetches the assets before the first start of an engine: for programs, and for the command.

use std::path::Path;

use isolet_pyodide_assets::{Authorities, FetchOptions, LockedFile, Progress, fetch, lock};

use crate::data::error::{Error, ErrorKind};
use crate::support::size::shown_bytes;

/// The environment variable that overrides the download source, a URL that contains `{file}`.
const SOURCE_VARIABLE: &str = "ISOLET_ASSETS_URL";

/// Returns `true` if an engine could not be opened because files are missing in `dir`.
#[must_use]
pub fn is_for_a_missing_file(error: &Error, dir: &Path) -> bool {
    let is_missing = |file: &LockedFile| matches!(dir.join(file.name()).try_exists(), Ok(false));
    error.kind() == ErrorKind::Assets
        && lock().is_ok_and(|lock| lock.files().iter().any(is_missing))
}

/// Fetches the assets to `dir`, and says so before.
///
/// # Errors
///
/// [`ErrorKind::Assets`] if they cannot be fetched, with what helps.
pub fn fetch_missing(
    dir: &Path,
    authorities: Authorities,
    progress: &mut dyn Progress,
    tell: &dyn Fn(&str),
) -> Result<(), Error> {
    let lock = lock().map_err(Error::of_assets)?;
    let bytes: u64 = lock.files().iter().map(LockedFile::size).sum();
    tell(&format!(
        "fetching Pyodide {} ({}) to `{}`, which happens once",
        lock.version(),
        shown_bytes(bytes),
        dir.display()
    ));
    fetch(dir, &fetch_options(authorities), progress).map(drop).map_err(|cause| {
        let message = format!(
            "the assets are not in `{}` and cannot be fetched; without a network, copy that \
             directory from a machine where `isolet assets fetch` has filled it: {cause}",
            dir.display()
        );
        Error::new(ErrorKind::Assets, message)
    })
}

/// Returns the options of a fetch, with the source that the user has named.
#[must_use]
pub fn fetch_options(authorities: Authorities) -> FetchOptions {
    let options = FetchOptions::default().authorities(authorities);
    #[expect(clippy::disallowed_methods, reason = "the variable for it")]
    let source = std::env::var(SOURCE_VARIABLE).ok().filter(|source| !source.is_empty());
    match source {
        Some(source) => options.sources([source]),
        None => options,
    }
}
