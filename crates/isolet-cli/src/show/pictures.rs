//! Draws PNG pictures on terminals that can show them.

use std::fmt::Write as _;
use std::{env, io};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::termios::tcgetwinsize;

use crate::show::sixel;

/// The variable that names the protocol of a terminal that this file does not know.
const VARIABLE: &str = "ISOLET_PICTURES";

/// The terminals that draw sixels by default, by the beginning of `TERM`.
const SIXEL_TERMS: [&str; 5] = ["contour", "foot", "mlterm", "xterm-sixel", "yaft"];

/// The greatest width of a picture if a terminal does not report its own, in pixels.
const USUAL_WIDTH: usize = 1000;

/// The most characters of base64 in one command of kitty's protocol.
const KITTY_CHARACTERS: usize = 4096;

/// A protocol by which a terminal draws pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// kitty's, which Ghostty and Konsole have too.
    Kitty,
    /// iTerm2's, which `WezTerm` and mintty have too.
    Iterm2,
    /// DEC's sixels: foot, mlterm and contour have them, and xterm if it is configured so.
    Sixel,
}

impl Protocol {
    /// Returns the protocol of the terminal that the environment describes, if it has one.
    #[expect(clippy::disallowed_methods, reason = "settings of the terminal")]
    pub(crate) fn of_terminal() -> Option<Self> {
        Self::of(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
        let term = variable("TERM").unwrap_or_default();
        match variable(VARIABLE).as_deref() {
            Some("kitty") => return Some(Self::Kitty),
            Some("iterm2") => return Some(Self::Iterm2),
            Some("sixel") => return Some(Self::Sixel),
            Some(_) => return None,
            None => {}
        }
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
        } else if SIXEL_TERMS.iter().any(|known| term.starts_with(known)) {
            Some(Self::Sixel)
        } else {
            None
        }
    }

    /// Returns the sequence that draws a picture at the cursor, on separate lines, or `None` if
    /// these bytes are no picture that can be drawn. The bytes may be anything, and reach the
    /// terminal only in base64.
    pub(crate) fn sequence(self, png: &[u8]) -> Option<String> {
        let mut drawn = match self {
            Self::Kitty => kitty(png),
            Self::Iterm2 => {
                let (size, text) = (png.len(), STANDARD.encode(png));
                format!("\x1b]1337;File=inline=1;size={size}:{text}\x07")
            }
            Self::Sixel => sixel::encode(png, width())?,
        };
        drawn.push('\n');
        Some(drawn)
    }
}

fn kitty(png: &[u8]) -> String {
    let text = STANDARD.encode(png);
    let mut drawn = String::with_capacity(text.len() + text.len() / 256);
    let mut settings = "a=T,f=100,q=2,";
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(KITTY_CHARACTERS));
        let has_more = u8::from(!after.is_empty());
        // Writing to a string does not fail.
        let _ = write!(drawn, "\x1b_G{settings}m={has_more};{piece}\x1b\\");
        (settings, rest) = ("q=2,", after);
    }
    drawn
}

/// Returns the terminal's width in pixels.
fn width() -> usize {
    let width = tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_xpixel.into());
    if width == 0 { USUAL_WIDTH } else { width }
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
        assert_eq!(of(&[("TERM", "foot-extra")]), Some(Protocol::Sixel));
        assert_eq!(of(&[("TERM", "xterm-256color")]), None);
        assert_eq!(of(&[("TERM", "xterm-256color"), (VARIABLE, "sixel")]), Some(Protocol::Sixel));
        assert_eq!(of(&[("TERM", "xterm-kitty"), (VARIABLE, "none")]), None);
        assert_eq!(of(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux,1,0")]), None);
    }

    #[test]
    fn a_picture_crosses_in_base64_in_pieces_that_the_terminal_takes() {
        let png: Vec<u8> = (0..=u8::MAX).cycle().take(9000).collect();
        let drawn = Protocol::Kitty.sequence(&png).unwrap();
        let commands: Vec<&str> = drawn.trim_end().split_terminator("\x1b\\").collect();
        let mut joined = String::new();
        for (at, command) in commands.iter().enumerate() {
            let (settings, data) = command.strip_prefix("\x1b_G").unwrap().split_once(';').unwrap();
            assert_eq!(settings.ends_with("m=0"), at + 1 == commands.len());
            assert!(data.len() <= KITTY_CHARACTERS && data.len().is_multiple_of(4));
            joined += data;
        }
        assert_eq!(STANDARD.decode(joined).unwrap(), png);
        let drawn = Protocol::Iterm2.sequence(b"\x1b]0;title\x07").unwrap();
        assert_eq!(drawn.matches(['\x1b', '\x07']).count(), 2, "{drawn:?}");
    }
}
