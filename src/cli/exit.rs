//! Exit statuses and how errors are shown.

use std::io::{self, Write};
use std::process::ExitCode;

use super::options::in_options;
use isolet::{Error, ErrorKind, Execution, Outcome, Termination};

/// The guest raised an exception.
pub(super) const RAISED: u8 = 1;
/// Usage, configuration or the host failed.
pub(super) const FAILED: u8 = 2;
/// A limit ended the run.
pub(super) const LIMIT: u8 = 3;
/// The interpreter died.
pub(super) const DIED: u8 = 4;
/// Nobody reads the output any more, as `| head` leaves it: 128 + SIGPIPE, as for other programs.
pub(super) const NO_READER: u8 = 141;
/// Interrupted by Ctrl-C, as a shell counts it: 128 + SIGINT.
pub(super) const INTERRUPTED: u8 = 130;

/// Shows an error with its hint and returns the status that belongs to it.
pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let mut stderr = io::stderr().lock();
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(stderr, "error: {}", in_options(&format!("{error:#}")));
    let ours = error.downcast_ref::<Error>();
    if let Some(hint) = ours.and_then(Error::hint) {
        let _ = writeln!(stderr, "\nhint: {}", in_options(hint));
    }
    ExitCode::from(match ours.map(Error::kind) {
        Some(ErrorKind::WorkerDied) => DIED,
        Some(ErrorKind::Limit) => LIMIT,
        _ => FAILED,
    })
}

/// Returns the status for a run. A guest's own `sys.exit(n)` is passed on as python would.
pub(super) fn status(execution: &Execution) -> ExitCode {
    match execution.outcome() {
        Outcome::Completed(_) => ExitCode::SUCCESS,
        Outcome::Exited(code) => ExitCode::from(code.to_le_bytes()[0]),
        Outcome::Terminated(Termination::Interrupted) => INTERRUPTED.into(),
        Outcome::Terminated(Termination::Died { .. }) => DIED.into(),
        Outcome::Terminated(_) => LIMIT.into(),
        _ => RAISED.into(),
    }
}

/// The reader of a pipe went away, as `| head` does: no failure of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
