//! Finds the program from which workers are started.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::error::{Error, ErrorKind};

const NAME: &str = "isolet";

/// This program, even if its file was replaced since it started.
pub(super) const ITSELF: &str = "/proc/self/exe";

/// Set if this program calls [`crate::init`].
static CAN_BE_A_WORKER: AtomicBool = AtomicBool::new(false);

/// Records that workers can be started from this program.
pub(crate) fn this_program_can_be_a_worker() {
    CAN_BE_A_WORKER.store(true, Ordering::Release);
}

/// Returns the program for workers, the first of these that applies: `explicit`; this program, if
/// it calls [`crate::init`]; `isolet` in the directory of this executable; `isolet` on the `PATH`.
pub(crate) fn find_worker(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = explicit {
        return Ok(path.to_path_buf());
    }
    if CAN_BE_A_WORKER.load(Ordering::Acquire) {
        return Ok(PathBuf::from(ITSELF));
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name(NAME));
    #[expect(clippy::disallowed_methods, reason = "where programs are installed")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|directory| directory.join(NAME));
    beside.into_iter().chain(installed).find(|program| program.is_file()).ok_or_else(|| {
        let message = format!(
            "there is no program to make a worker of: `main` does not begin with `isolet::init()`, \
             and there is no `{NAME}` beside this program or in PATH"
        );
        let hint = format!(
            "call `isolet::init()` in the first line of `main`, or install the command `{NAME}` \
             {}; `Isolation::Thread` needs neither, and isolates less",
            env!("CARGO_PKG_VERSION")
        );
        Error::new(ErrorKind::Config, message).with_hint(hint)
    })
}
