//! Where the program is looked for that workers are made of.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};

const NAME: &str = "isolet";

/// Returns `explicit` if given, else `isolet` beside this executable, else the one in `PATH`.
pub(crate) fn find_worker(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = explicit {
        return Ok(path.to_path_buf());
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name(NAME));
    #[expect(clippy::disallowed_methods, reason = "where programs are installed")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|directory| directory.join(NAME));
    beside.into_iter().chain(installed).find(|program| program.is_file()).ok_or_else(|| {
        let message = format!(
            "there is no program to make a worker of: no `{NAME}` beside this one, none in PATH"
        );
        Error::new(ErrorKind::Config, message)
            .with_hint("install the command, or name it with `SandboxBuilder::worker`")
    })
}
