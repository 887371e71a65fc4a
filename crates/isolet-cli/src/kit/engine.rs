//! Opens engines, and fetches the assets before the first start.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use isolet::internals::{fetch_missing, is_for_a_missing_file, is_named};
use isolet::{BUNDLE_VARIABLE, Bundle, find_assets, find_bundle};
use isolet_pyodide_assets::{Authorities, Bar, Progress, Silent};

use crate::show::progress;

/// Opens an engine from the assets. If a file is missing in isolet's own directory of assets,
/// fetches the assets and tries once more. A directory that the user named is never changed.
pub(crate) fn open_engine<T>(
    named: Option<&Path>,
    ca_files: &[PathBuf],
    open: impl Fn(&Path) -> Result<T>,
) -> Result<T> {
    let dir = find_assets(named)?;
    match open(&dir) {
        Err(error) if !is_named(named) && is_missing(&error, &dir) => {
            // If standard error is closed, the note is lost.
            let tell = |text: &str| _ = writeln!(io::stderr(), "{text}");
            fetch_missing(&dir, authorities(ca_files)?, &mut *fetch_progress(), &tell)?;
            open(&dir)
        }
        result => result,
    }
}

fn is_missing(error: &anyhow::Error, dir: &Path) -> bool {
    error.downcast_ref().is_some_and(|error| is_for_a_missing_file(error, dir))
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

/// Returns the certificate authorities to trust besides those of the system.
pub(crate) fn authorities(files: &[PathBuf]) -> Result<Authorities> {
    let mut authorities = Authorities::default();
    for file in files {
        authorities.add_file(file)?;
    }
    Ok(authorities)
}

pub(crate) fn fetch_progress() -> Box<dyn Progress> {
    #[expect(clippy::disallowed_methods, reason = "the command's own setting")]
    let quiet = std::env::var_os("CI").is_some();
    if quiet || !io::stderr().is_terminal() { Box::new(Silent) } else { Box::new(Bar::stderr()) }
}
