//! Describes the end of a run for a person.

use std::io::{self, Write};

use isolet::{Execution, Outcome};
use isolet_service::core::in_options;

use crate::show::terminal::Printer;

/// Prints to standard error how the run ended, if it did not complete.
pub(crate) fn show_outcome(execution: &Execution, raw: bool) -> io::Result<()> {
    let printer = Printer::new(raw);
    let mut stderr = io::stderr().lock();
    match execution.outcome() {
        Outcome::Raised(exception) => {
            stderr.write_all(printer.for_stderr(&exception.traceback).as_bytes())?;
            if exception.type_name == "MemoryError" {
                writeln!(stderr, "\nhint: `--memory` says how much memory a session may have")?;
            }
            Ok(())
        }
        Outcome::Terminated(termination) => {
            let message = in_options(&termination.to_string());
            writeln!(stderr, "error: {}", printer.for_stderr(&message))
        }
        _ => Ok(()),
    }
}
