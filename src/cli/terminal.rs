//! The terminal that the command prints to: what a guest is told of it, and what it gets of a
//! guest.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};

use isolet::{Stream, Terminal};
use rustix::termios::tcgetwinsize;

use super::filter::{self, Filter};

/// The size of a terminal that does not say which it has.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Passes what a guest writes on to standard output and standard error.
#[derive(Debug)]
pub(super) struct Printer {
    stdout: Option<Filter>,
    stderr: Option<Filter>,
}

impl Printer {
    /// Text for a terminal is made harmless, unless it is to be `raw`.
    pub(super) fn new(raw: bool) -> Self {
        let filter = |is_terminal: bool| (is_terminal && !raw).then(Filter::default);
        Self {
            stdout: filter(io::stdout().is_terminal()),
            stderr: filter(io::stderr().is_terminal()),
        }
    }

    /// Passes a piece of output on.
    pub(super) fn print(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Stderr => pass(io::stderr().lock(), self.stderr.as_mut(), bytes),
            _ => pass(io::stdout().lock(), self.stdout.as_mut(), bytes),
        }
    }

    /// Passes on what has waited for its continuation: a run has ended.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if let Some(filter) = &mut self.stdout {
            write_all(io::stdout().lock(), filter.finish().as_bytes())?;
        }
        if let Some(filter) = &mut self.stderr {
            write_all(io::stderr().lock(), filter.finish().as_bytes())?;
        }
        Ok(())
    }

    /// A guest's text as it can be shown on standard output.
    pub(super) fn for_stdout<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stdout.is_some() { filter::strictly(text).into() } else { text.into() }
    }

    /// A guest's text as it can be shown on standard error.
    pub(super) fn for_stderr<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stderr.is_some() { filter::strictly(text).into() } else { text.into() }
    }
}

/// A text that may be the guest's as it can be shown on standard error, whatever that is.
pub(super) fn for_stderr(text: &str) -> Cow<'_, str> {
    if io::stderr().is_terminal() { filter::strictly(text).into() } else { text.into() }
}

fn pass(to: impl Write, filter: Option<&mut Filter>, bytes: &[u8]) -> io::Result<()> {
    match filter {
        Some(filter) => write_all(to, filter.push(bytes).as_bytes()),
        None => write_all(to, bytes),
    }
}

fn write_all(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// The terminal that standard output or standard error is, if one is.
pub(super) fn terminal() -> Option<Terminal> {
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

/// The variables by which programs know a terminal. Their values are of ours, so that nothing of
/// this environment is shown but what kind of terminal there is.
pub(super) fn variables(terminal: Terminal) -> Vec<(&'static str, String)> {
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

/// Whether `NO_COLOR` asks for no colours.
pub(super) fn is_without_color() -> bool {
    !variable("NO_COLOR").is_empty()
}

/// Whether what we print to standard error ourselves may have colours.
pub(super) fn has_color(is_terminal: bool) -> bool {
    is_terminal && !is_without_color() && !matches!(variable("TERM").as_str(), "" | "dumb")
}

fn has_all_colors() -> bool {
    matches!(variable("COLORTERM").as_str(), "truecolor" | "24bit")
}

fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "settings of the terminal")]
    env::var(name).unwrap_or_default()
}
