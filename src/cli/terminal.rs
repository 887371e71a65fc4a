//! Guest output on a terminal: characters that would command it are shown instead.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use isolet::Stream;

/// Passes what a guest writes on to standard output and standard error.
#[derive(Debug)]
pub(super) struct Printer {
    stdout: Option<Inert>,
    stderr: Option<Inert>,
}

impl Printer {
    /// Text for a terminal is made inert, unless it is to be `raw`.
    pub(super) fn new(raw: bool) -> Self {
        let inert = |is_terminal: bool| (is_terminal && !raw).then(Inert::default);
        Self {
            stdout: inert(io::stdout().is_terminal()),
            stderr: inert(io::stderr().is_terminal()),
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
        if let Some(inert) = &mut self.stdout {
            write_all(io::stdout().lock(), inert.finish().as_bytes())?;
        }
        if let Some(inert) = &mut self.stderr {
            write_all(io::stderr().lock(), inert.finish().as_bytes())?;
        }
        Ok(())
    }

    /// A guest's text as it can be shown on standard output.
    pub(super) fn for_stdout<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stdout.is_some() { inert(text).into() } else { text.into() }
    }

    /// A guest's text as it can be shown on standard error.
    pub(super) fn for_stderr<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.stderr.is_some() { inert(text).into() } else { text.into() }
    }
}

fn pass(to: impl Write, inert: Option<&mut Inert>, bytes: &[u8]) -> io::Result<()> {
    match inert {
        Some(inert) => write_all(to, inert.push(bytes).as_bytes()),
        None => write_all(to, bytes),
    }
}

fn write_all(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Makes text inert for a terminal, as it comes in pieces.
///
/// Control characters but newline and tab, and those that change the direction of text, become
/// visible: `^[` for escape, `\u{202e}` for a right-to-left override. A carriage return before a
/// newline is left out; what is not UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
struct Inert {
    /// The beginning of a character, or a carriage return, whose continuation is still to come.
    pending: Vec<u8>,
}

impl Inert {
    /// The inert form of the next piece.
    fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.pending.len());
        let mut rest = &self.pending[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    let held = usize::from(valid.ends_with('\r'));
                    show(&valid[..valid.len() - held], &mut text);
                    rest = &rest[rest.len() - held..];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    show(&String::from_utf8_lossy(valid), &mut text);
                    let Some(length) = error.error_len() else {
                        rest = after;
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[length..];
                }
            }
        }
        self.pending = rest.to_vec();
        text
    }

    /// What is left at the end of the output.
    fn finish(&mut self) -> String {
        let mut text = String::new();
        show(&String::from_utf8_lossy(&std::mem::take(&mut self.pending)), &mut text);
        text
    }
}

/// The inert form of a whole text.
fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    show(text, &mut shown);
    shown
}

fn show(text: &str, to: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => to.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\0'..='\x1f' | '\x7f' => {
                to.push('^');
                to.push(char::from((character as u8) ^ 0x40));
            }
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => {
                // Writing to a string does not fail.
                let _ = write!(to, "\\u{{{:x}}}", u32::from(character));
            }
            _ => to.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_a_terminal_are_shown() {
        assert_eq!(inert("a\x1b[2Jb\x07\x7f\u{9b}31m"), "a^[[2Jb^G^?\\u{9b}31m");
        assert_eq!(inert("x\u{202e}y\u{2066}z"), "x\\u{202e}y\\u{2066}z");
        assert_eq!(
            inert("progress\rdone\r\nnext\tcolumn é 漢 😀\n"),
            "progress^Mdone\nnext\tcolumn é 漢 😀\n"
        );
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let whole = "é\x1b[0m漢\r\nend\r".as_bytes();
        for cut in 0..=whole.len() {
            let mut inert = Inert::default();
            let mut shown = inert.push(&whole[..cut]);
            shown += &inert.push(&whole[cut..]);
            shown += &inert.finish();
            assert_eq!(shown, "é^[[0m漢\nend^M", "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        let mut inert = Inert::default();
        assert_eq!(inert.push(b"a\xff\x1bb\xe6"), "a\u{fffd}^[b");
        assert_eq!(inert.finish(), "\u{fffd}");
    }
}
