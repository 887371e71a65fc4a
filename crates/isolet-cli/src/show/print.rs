//! Prints a text to standard output.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

/// Prints to standard output. A reader that has gone away is not a failure.
pub(crate) fn print(text: &str) -> Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
