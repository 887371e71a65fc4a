//! Draws PNG pictures on terminals that can show them.

use std::env;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How many characters of base64 one command of kitty's protocol may carry.
const KITTY_CHARACTERS: usize = 4096;

/// How a terminal takes pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// kitty's, which Ghostty and Konsole have too.
    Kitty,
    /// iTerm2's, which `WezTerm` and mintty have too.
    Iterm2,
}

impl Protocol {
    /// Returns the protocol of the terminal that the environment describes, if it has one.
    #[expect(clippy::disallowed_methods, reason = "settings of the terminal")]
    pub(super) fn of_terminal() -> Option<Self> {
        Self::of(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
        // A multiplexer passes pictures on in its own way, or not at all.
        if variable("TMUX").is_some() || variable("STY").is_some() {
            None
        } else if is("TERM", "xterm-kitty")
            || is("TERM_PROGRAM", "ghostty")
            || variable("KONSOLE_VERSION").is_some()
        {
            Some(Self::Kitty)
        } else if ["iTerm.app", "WezTerm", "mintty"].iter().any(|name| is("TERM_PROGRAM", name))
            || is("LC_TERMINAL", "iTerm2")
        {
            Some(Self::Iterm2)
        } else {
            None
        }
    }

    /// Draws a picture at the cursor, on lines of its own. The bytes may be anything: they cross in
    /// base64.
    pub(super) fn draw(self, to: &mut impl Write, png: &[u8]) -> io::Result<()> {
        let text = STANDARD.encode(png);
        match self {
            Self::Kitty => {
                let mut pieces = text.as_bytes().chunks(KITTY_CHARACTERS).peekable();
                let mut settings = "a=T,f=100,q=2,";
                while let Some(piece) = pieces.next() {
                    let has_more = u8::from(pieces.peek().is_some());
                    write!(to, "\x1b_G{settings}m={has_more};")?;
                    to.write_all(piece)?;
                    write!(to, "\x1b\\")?;
                    settings = "q=2,";
                }
            }
            Self::Iterm2 => {
                let size = png.len();
                write!(to, "\x1b]1337;File=inline=1;size={size}:{text}\x07")?;
            }
        }
        to.write_all(b"\n")?;
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Protocol> {
        Protocol::of(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn terminals_are_known_by_their_environment() {
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm")]), Some(Protocol::Iterm2));
        assert_eq!(of(&[("LC_TERMINAL", "iTerm2")]), Some(Protocol::Iterm2));
        assert_eq!(of(&[("TERM", "xterm-256color")]), None);
        assert_eq!(of(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux,1,0")]), None);
    }

    #[test]
    fn a_picture_crosses_in_base64_in_pieces_that_the_terminal_takes() {
        let png: Vec<u8> = (0..=u8::MAX).cycle().take(9000).collect();
        let mut drawn = Vec::new();
        Protocol::Kitty.draw(&mut drawn, &png).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        let commands: Vec<&str> = drawn.trim_end().split_terminator("\x1b\\").collect();
        let mut joined = String::new();
        for (at, command) in commands.iter().enumerate() {
            let (settings, data) = command.strip_prefix("\x1b_G").unwrap().split_once(';').unwrap();
            assert_eq!(settings.ends_with("m=0"), at + 1 == commands.len());
            assert!(data.len() <= KITTY_CHARACTERS && data.len().is_multiple_of(4));
            joined += data;
        }
        assert_eq!(STANDARD.decode(joined).unwrap(), png);
        let mut drawn = Vec::new();
        Protocol::Iterm2.draw(&mut drawn, b"\x1b]0;title\x07").unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        assert_eq!(drawn.matches(['\x1b', '\x07']).count(), 2, "{drawn:?}");
    }
}
