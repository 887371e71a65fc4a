//! What a server on standard input and output says to a person who has started it by hand.

use std::io::{self, IsTerminal, Write};

/// Explains the server if standard input is a terminal: which protocol it speaks, and who starts
/// it.
pub(crate) fn tell(protocol: &str, starts: &str) -> io::Result<()> {
    if is_there() {
        writeln!(
            io::stderr(),
            "isolet speaks {protocol} on its standard input and output. {starts} Ctrl-C ends it."
        )?;
    }
    Ok(())
}

/// Returns `true` if a person, and no program, has the other end of standard input.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal()
}
