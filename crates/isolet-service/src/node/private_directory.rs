//! Directories of a node that only its own user may use, because they have sessions.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes the directory, unless it is there. `what` names it in errors.
///
/// # Errors
///
/// Fails if it is unusable, or accessible to other users.
pub(crate) fn make(what: &str, directory: &Path) -> Result<(), String> {
    let shown = directory.display();
    let failed = |error: io::Error| format!("cannot use {what} `{shown}`: {error}");
    if directory.to_str().is_none() {
        return Err(format!("`{shown}` is not UTF-8"));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let found = fs::metadata(directory).map_err(failed)?;
    let (mode, owner) = (found.permissions().mode() & 0o777, found.uid());
    let own = rustix::process::geteuid().as_raw();
    if mode & 0o077 != 0 || owner != own {
        return Err(format!(
            "{what} `{shown}` is to have sessions, and has mode {mode:o} and belongs to the user \
             {owner}; only the user {own} may use it, as with `chmod 700`"
        ));
    }
    Ok(())
}
