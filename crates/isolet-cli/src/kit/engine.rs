//! Opens engines, and fetches the assets before the first start.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isolet::{
    ASSETS_VARIABLE, BUNDLE_VARIABLE, Bundle, Error, ErrorKind, find_assets, find_bundle,
};
use isolet_pyodide_assets::{Authorities, Bar, FetchOptions, Progress, Silent, fetch, lock};
use isolet_support::size::shown_bytes;

use crate::show::progress;

/// The environment variable that overrides the download source, a URL that contains `{file}`.
const SOURCE_VARIABLE: &str = "ISOLET_ASSETS_URL";

/// Opens an engine from the assets. If a file is missing in isolet's own directory of assets,
/// fetches the assets and tries once more. A directory that the user named is never changed.
pub(crate) fn open_engine<T>(
    named: Option<&Path>,
    ca_files: &[PathBuf],
    open: impl Fn(&Path) -> Result<T>,
) -> Result<T> {
    let dir = find_assets(named)?;
    match open(&dir) {
        Err(error) if !is_named(named) && is_for_a_missing_file(&error, &dir) => {
            fetch_before_a_start(&dir, ca_files)?;
            open(&dir)
        }
        result => result,
    }
}

/// Returns `true` if the user has named a directory of assets.
fn is_named(named: Option<&Path>) -> bool {
    #[expect(clippy::disallowed_methods, reason = "the variable that `find_assets` looks at")]
    let variable = std::env::var_os(ASSETS_VARIABLE).is_some_and(|dir| !dir.is_empty());
    named.is_some() || variable
}

fn is_for_a_missing_file(error: &anyhow::Error, dir: &Path) -> bool {
    let is_of_assets =
        error.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Assets);
    let is_missing = |name: &str| matches!(dir.join(name).try_exists(), Ok(false));
    is_of_assets && lock().is_ok_and(|lock| lock.files().iter().any(|file| is_missing(file.name())))
}

fn fetch_before_a_start(dir: &Path, ca_files: &[PathBuf]) -> Result<()> {
    let options = fetch_options(ca_files)?;
    let lock = lock()?;
    let bytes: u64 = lock.files().iter().map(isolet_pyodide_assets::LockedFile::size).sum();
    // If standard error is closed, the note is lost.
    let _ = writeln!(
        io::stderr(),
        "fetching Pyodide {} ({}) to `{}`, which happens once",
        lock.version(),
        shown_bytes(bytes),
        dir.display()
    );
    let fetched = fetch(dir, &options, &mut *fetch_progress());
    fetched.map(drop).with_context(|| {
        format!(
            "the assets are not in `{}` and cannot be fetched; without a network, copy that \
             directory from a machine where `isolet assets fetch` has filled it",
            dir.display()
        )
    })
}

/// Returns the packages that are installed, or those in a directory that the user has named. An
/// installed one that cannot be used is named once, and stops nobody.
pub(crate) fn find_packages(named: Option<&Path>) -> Result<Option<Bundle>> {
    match find_bundle(named) {
        Err(error) if named.is_none() && !is_bundle_named() => {
            progress::notice(&format!("the packages that are installed are not used: {error}"));
            Ok(None)
        }
        found => Ok(found?),
    }
}

fn is_bundle_named() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the variable that `find_bundle` looks at")]
    let variable = std::env::var_os(BUNDLE_VARIABLE).is_some_and(|dir| !dir.is_empty());
    variable
}

pub(crate) fn fetch_options(ca_files: &[PathBuf]) -> Result<FetchOptions> {
    let mut authorities = Authorities::default();
    for file in ca_files {
        authorities.add_file(file)?;
    }
    let options = FetchOptions::default().authorities(authorities);
    #[expect(clippy::disallowed_methods, reason = "the command's own setting")]
    let source = std::env::var(SOURCE_VARIABLE).ok().filter(|source| !source.is_empty());
    Ok(match source {
        Some(source) => options.sources([source]),
        None => options,
    })
}

pub(crate) fn fetch_progress() -> Box<dyn Progress> {
    #[expect(clippy::disallowed_methods, reason = "the command's own setting")]
    let quiet = std::env::var_os("CI").is_some();
    if quiet || !io::stderr().is_terminal() { Box::new(Silent) } else { Box::new(Bar::stderr()) }
}
