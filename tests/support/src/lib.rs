//! Helpers of the integration tests: the built command, scratch directories, the interpreter's
//! files, a server on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests panic as tests do"
)]

pub mod assets;
mod child;
mod command;
pub mod mounted_tree;
pub mod odd_values;
pub mod processes;
mod scratch;
pub mod server;
pub mod skills;
mod wheel;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;
use std::time::Duration;

pub use crate::child::{AT_MOST, in_child, output_in_time};
pub use crate::command::{Ran, command, ended, isolet, isolet_fed, program};
pub use crate::scratch::Scratch;
pub use crate::wheel::{wheel, wheel_that_needs};

/// The environment variable that names the directory of Pyodide's files, as isolet has it.
pub const ASSETS_VARIABLE: &str = "ISOLET_ASSETS";

/// The time limit for events that a test waits for.
pub const LONGEST: Duration = Duration::from_mins(3);

/// The time limit for all tests of a program together. It also ends tests that have no limit of
/// their own.
const LONGEST_SUITE: Duration = Duration::from_mins(45);

/// Returns the directory of the repository.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the directory of Pyodide's files.
#[must_use]
pub fn assets_dir() -> PathBuf {
    end_the_suite_in_time();
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let named = std::env::var_os(ASSETS_VARIABLE).filter(|dir| !dir.is_empty());
    named.map_or_else(|| root().join("pyodide-assets/dist"), PathBuf::from)
}

/// Returns cargo's target directory: test programs are in `TARGET/PROFILE/deps`.
#[must_use]
pub fn target_dir() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().to_owned()
}

/// Ends this program when the suite has taken too long. The test runner has already printed which
/// tests are still running.
fn end_the_suite_in_time() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let end = || {
            thread::sleep(LONGEST_SUITE);
            let limit = LONGEST_SUITE.as_secs();
            let _ = writeln!(std::io::stderr(), "the tests have not ended within {limit} s");
            std::process::abort();
        };
        thread::spawn(end);
    });
}
