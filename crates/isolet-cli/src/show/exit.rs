//! Exit statuses, and the display of errors.

use std::io::{self, Write};
use std::process::ExitCode;

use isolet::{Error, ErrorKind, Execution, Outcome, Termination};

use crate::show::report;
use crate::show::terminal;
use isolet_service::core::in_options;
use isolet_support::json;

/// The guest raised an exception.
pub(crate) const RAISED: u8 = 1;
/// The usage or configuration was invalid, or the host failed.
pub(crate) const FAILED: u8 = 2;
/// A limit ended the run.
pub(crate) const LIMIT: u8 = 3;
/// The interpreter died.
pub(crate) const DIED: u8 = 4;
/// The output has no reader any more, as with `| head`: 128 + SIGPIPE, as for other programs.
pub(crate) const NO_READER: u8 = 141;
/// Interrupted by Ctrl-C, in a shell's convention: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Prints an error with its hint and returns its exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let ours = error.downcast_ref::<Error>();
    let mut text = format!("error: {}\n", in_options(&message(error)));
    if let Some(hint) = ours.and_then(Error::hint) {
        text.extend(["\nhint: ", &*in_options(hint), "\n"]);
    }
    // Much of the text may be the guest's. If standard error is closed, the text is lost.
    let _ = io::stderr().write_all(terminal::for_stderr(&text).as_bytes());
    failure(error)
}

/// Returns the texts of an error's contexts and of the error, in one line.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut texts = Vec::new();
    for cause in error.chain() {
        texts.push(cause.to_string());
        // The message of isolet's own error includes the text of its source.
        if cause.is::<Error>() {
            break;
        }
    }
    texts.join(": ")
}

/// Returns the exit status of an error.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref::<Error>().map(Error::kind) {
        Some(ErrorKind::WorkerDied) => DIED,
        Some(ErrorKind::Limit) => LIMIT,
        _ => FAILED,
    })
}

/// Prints an error as [`report()`] does, or as a JSON object on standard output if `asked` is set.
pub(crate) fn report_as(error: &anyhow::Error, asked: bool) -> ExitCode {
    if !asked || is_broken_pipe(error) {
        return report(error);
    }
    // The disk that standard output is on may be full.
    json::print(&report::failure(error, None)).map_or_else(|_| report(error), |()| failure(error))
}

/// Returns the exit status of a run. The status of a guest's `sys.exit(n)` is passed on as by
/// python.
pub(crate) fn status(execution: &Execution) -> ExitCode {
    match execution.outcome() {
        Outcome::Completed(_) => ExitCode::SUCCESS,
        Outcome::Exited(code) => ExitCode::from(code.to_le_bytes()[0]),
        Outcome::Terminated(Termination::Interrupted) => INTERRUPTED.into(),
        Outcome::Terminated(Termination::Died { .. }) => DIED.into(),
        Outcome::Terminated(_) => LIMIT.into(),
        _ => RAISED.into(),
    }
}

/// Returns `true` if the reader of a pipe went away, as with `| head`, which is not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
