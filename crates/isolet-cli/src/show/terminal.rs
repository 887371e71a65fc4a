//! The command's terminal: its properties for the guest, and a filter for the guest's output.

use isolet_support::text::strictly;
use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};

use isolet::{Stream, Terminal};
use rustix::termios::tcgetwinsize;

use crate::show::filter::Filter;

/// The size that is assumed if a terminal does not report its own.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Writes guest output to standard output and standard error.
#[derive(Debug)]
pub(crate) struct Printer {
    stdout: Option<Filter>,
    stderr: Option<Filter>,
}

impl Printer {
    /// Makes a printer. Text for a terminal is made safe, unless `raw` is set.
    pub(crate) fn new(raw: bool) -> Self {
        let filter = |is_terminal: bool| (is_terminal && !raw).then(Filter::default);
        Self {
            stdout: filter(io::stdout().is_terminal()),
            stderr: filter(io::stderr().is_terminal()),
        }
    }

    /// Writes a chunk of output.
    pub(crate) fn print(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Stderr => pass(io::stderr().lock(), self.stderr.as_mut(), bytes),
            _ => pass(io::stdout().lock(), self.stdout.as_mut(), bytes),
        }
    }

    /// Writes incomplete sequences that were held back, at the end of a run.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(filter) = &mut self.stdout {
            write_all(io::stdout().lock(), filter.finish().as_bytes())?;
        }
        if let Some(filter) = &mut self.stderr {
            write_all(io::stderr().lock(), filter.finish().as_bytes())?;
        }
        Ok(())
    }

    /// Returns guest text in a form that is safe for standard output.
    pub(crate) fn for_stdout<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stdout.is_some() { strictly(text).into() } else { text.into() }
    }

    /// Returns guest text in a form that is safe for standard error.
    pub(crate) fn for_stderr<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stderr.is_some() { strictly(text).into() } else { text.into() }
    }
}

/// Returns text that may be the guest's. If standard error is a terminal, the text is made safe
/// with the strict filter.
pub(crate) fn for_stderr(text: &str) -> Cow<'_, str> {
    if io::stderr().is_terminal() { strictly(text).into() } else { text.into() }
}

fn pass(to: impl Write, filter: Option<&mut Filter>, bytes: &[u8]) -> io::Result<()> {
    match filter {
        Some(filter) => write_all(to, filter.push(bytes).as_bytes()),
        None => write_all(to, bytes),
    }
}

/// Writes to a terminal at once.
pub(crate) fn write_all(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Returns the terminal of standard output or standard error, if there is one.
pub(crate) fn terminal() -> Option<Terminal> {
    let (stdout, stderr) = (io::stdout().is_terminal(), io::stderr().is_terminal());
    let size = match (stdout, stderr) {
        (true, _) => tcgetwinsize(io::stdout()),
        (false, true) => tcgetwinsize(io::stderr()),
        (false, false) => return None,
    };
    let or = |count: u16, usual| if count == 0 { usual } else { count };
    let (columns, rows) = size
        .map_or(USUAL_SIZE, |size| (or(size.ws_col, USUAL_SIZE.0), or(size.ws_row, USUAL_SIZE.1)));
    Some(Terminal { stdout, stderr, columns, rows })
}

/// Returns the environment variables that describe a terminal to programs. The values are fixed, so
/// that they reveal nothing of this environment except the kind of terminal.
pub(crate) fn variables(terminal: Terminal) -> Vec<(&'static str, String)> {
    let term = variable("TERM");
    let kind = match term.as_str() {
        "" | "dumb" => "dumb",
        term if term.contains("256color") || has_all_colors() => "xterm-256color",
        _ => "xterm",
    };
    let mut variables = vec![
        ("TERM", kind.to_owned()),
        ("COLUMNS", terminal.columns.to_string()),
        ("LINES", terminal.rows.to_string()),
    ];
    if has_all_colors() {
        variables.push(("COLORTERM", "truecolor".to_owned()));
    }
    if is_without_color() {
        variables.push(("NO_COLOR", "1".to_owned()));
    }
    variables
}

/// Returns `true` if `NO_COLOR` disables colours.
pub(crate) fn is_without_color() -> bool {
    !variable("NO_COLOR").is_empty()
}

/// Returns `true` if our own output to standard error may have colours.
pub(crate) fn has_color(is_terminal: bool) -> bool {
    is_terminal && !is_without_color() && !matches!(variable("TERM").as_str(), "" | "dumb")
}

fn has_all_colors() -> bool {
    matches!(variable("COLORTERM").as_str(), "truecolor" | "24bit")
}

fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "settings of the terminal")]
    env::var(name).unwrap_or_default()
}
