//! Makes guest output safe for a terminal. Sequences that progress bars and tables need pass; all
//! others that a terminal would obey are shown or removed.

use isolet_support::text::{is_odd, show_character, show_strictly};
use std::fmt::Write as _;

/// The maximum length of an escape sequence, in bytes. Longer text is not treated as one.
const LONGEST_SEQUENCE: usize = 4096;

/// The maximum number of lines that a guest may move up: more than a screen has.
const MAX_LINES_UP: u32 = 500;

/// The beginning of a hyperlink, after an escape.
const LINK: &str = "]8;";

/// Makes text safe, chunk by chunk.
///
/// These pass: newline, tab, carriage return, backspace, colours and styles (`ESC [ ... m`), and
/// erasing in the line (`ESC [ K`). Moving up (`ESC [ n A`) passes only within the lines that this
/// text has begun itself. Links and hiding the cursor are removed. Other control characters, and
/// those that change the direction of text, become visible: `^[` for escape, `\u{202e}` for a
/// right-to-left override. Invalid UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// The beginning of a character or sequence that is still incomplete.
    pending: Vec<u8>,
    /// The number of lines above that belong to this text. Lines that the terminal wraps are not
    /// counted.
    lines_above: u32,
    /// The number of lines below, after moving up.
    lines_below: u32,
    /// Set while colours or styles are active.
    is_styled: bool,
}

/// The state after an escape character.
#[derive(Debug, PartialEq, Eq)]
enum Sequence<'a> {
    /// Colours and styles.
    Style(&'a str),
    /// Erasing in the line.
    Erase(&'a str),
    /// Moving up by a number of lines, with the sequence as written.
    Up(u32, &'a str),
    /// Harmless, but removed.
    Hidden(&'a str),
    /// Possibly the beginning of one of these.
    Partial,
    /// Anything else.
    Other,
}

impl Filter {
    /// Returns the safe form of the next chunk.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut shown = String::with_capacity(pending.len());
        let mut rest = &pending[..];
        loop {
            let (valid, error) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, None),
                Err(error) => {
                    let (valid, _) = rest.split_at(error.valid_up_to());
                    (std::str::from_utf8(valid).unwrap_or_default(), Some(error.error_len()))
                }
            };
            let is_last = matches!(error, None | Some(None));
            let left = self.show(valid, is_last, &mut shown);
            match error {
                // The incomplete sequence and the beginning of a character wait together.
                None | Some(None) => {
                    self.pending = rest[valid.len() - left..].to_vec();
                    return shown;
                }
                Some(Some(length)) => {
                    shown.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[valid.len() + length..];
                }
            }
        }
    }

    /// Returns the safe form of the remaining text, followed by sequences that reset the terminal.
    pub(crate) fn finish(&mut self) -> String {
        let mut shown = String::new();
        let pending = std::mem::take(&mut self.pending);
        show_strictly(&String::from_utf8_lossy(&pending), &mut shown);
        if std::mem::take(&mut self.is_styled) {
            shown.push_str("\x1b[0m");
        }
        if self.lines_below > 0 {
            // Writing to a string does not fail.
            let _ = write!(shown, "\x1b[{}B\r", self.lines_below);
        }
        *self = Self::default();
        shown
    }

    /// Appends the safe form of a text. Returns how many bytes at its end must wait for more, if
    /// more may come.
    fn show(&mut self, text: &str, may_wait: bool, to: &mut String) -> usize {
        let mut rest = text;
        while let Some(control) = rest.find(|c: char| c.is_control() || is_odd(c)) {
            let (plain, after) = rest.split_at(control);
            to.push_str(plain);
            rest = after;
            let mut characters = rest.chars();
            match characters.next() {
                Some('\n') => {
                    to.push('\n');
                    self.lines_above = (self.lines_above + 1).min(MAX_LINES_UP);
                    self.lines_below = self.lines_below.saturating_sub(1);
                }
                Some(plain @ ('\t' | '\r' | '\x08')) => to.push(plain),
                Some('\x1b') => match sequence(characters.as_str()) {
                    Sequence::Partial if may_wait => return rest.len(),
                    Sequence::Partial | Sequence::Other => to.push_str("^["),
                    Sequence::Hidden(sequence) => {
                        rest = &rest[1 + sequence.len()..];
                        continue;
                    }
                    Sequence::Style(sequence) => {
                        self.is_styled = !matches!(sequence, "[m" | "[0m");
                        to.push('\x1b');
                        to.push_str(sequence);
                        rest = &rest[1 + sequence.len()..];
                        continue;
                    }
                    Sequence::Erase(sequence) => {
                        to.push('\x1b');
                        to.push_str(sequence);
                        rest = &rest[1 + sequence.len()..];
                        continue;
                    }
                    Sequence::Up(lines, sequence) => {
                        let lines = lines.min(self.lines_above);
                        self.lines_above -= lines;
                        self.lines_below += lines;
                        if lines > 0 {
                            let _ = write!(to, "\x1b[{lines}A");
                        }
                        rest = &rest[1 + sequence.len()..];
                        continue;
                    }
                },
                Some(other) => show_character(other, to),
                None => {}
            }
            rest = characters.as_str();
        }
        to.push_str(rest);
        0
    }
}

/// Parses what follows an escape.
fn sequence(text: &str) -> Sequence<'_> {
    if let Some(rest) = text.strip_prefix('[') {
        let is_parameter = |c: char| matches!(c, '0'..='?');
        let end = rest.find(|c| !is_parameter(c)).unwrap_or(rest.len());
        let (parameters, after) = rest.split_at(end);
        let Some(last) = after.chars().next() else {
            return if text.len() < LONGEST_SEQUENCE { Sequence::Partial } else { Sequence::Other };
        };
        let whole = &text[..(1 + end + last.len_utf8()).min(text.len())];
        let is_made_of = |allowed: &str| parameters.chars().all(|c| allowed.contains(c));
        return match last {
            'm' if is_made_of("0123456789;:") => Sequence::Style(whole),
            'K' if matches!(parameters, "" | "0" | "1" | "2") => Sequence::Erase(whole),
            'A' if is_made_of("0123456789") => {
                Sequence::Up(parameters.parse().unwrap_or(1).max(1), whole)
            }
            'h' | 'l' if parameters == "?25" => Sequence::Hidden(whole),
            _ => Sequence::Other,
        };
    }
    if LINK.starts_with(text) {
        return Sequence::Partial;
    }
    if !text.starts_with(LINK) {
        return Sequence::Other;
    }
    let end = text.find(|c: char| c.is_control()).unwrap_or(text.len());
    match &text[end..] {
        "" | "\x1b" if text.len() < LONGEST_SEQUENCE => Sequence::Partial,
        after if after.starts_with('\x07') => Sequence::Hidden(&text[..=end]),
        after if after.starts_with("\x1b\\") => Sequence::Hidden(&text[..end + 2]),
        _ => Sequence::Other,
    }
}

#[cfg(test)]
mod tests {
    use isolet_support::text::strictly;

    use super::*;

    fn filtered(text: &str) -> String {
        let mut filter = Filter::default();
        let shown = filter.push(text.as_bytes());
        shown + &filter.finish()
    }

    #[test]
    fn commands_to_a_terminal_are_shown() {
        for (text, shown) in [
            ("a\x1b[2Jb\x07\x7f\u{9b}31m", "a^[[2Jb^G^?\\u{9b}31m"),
            ("x\u{202e}y\u{2066}z", "x\\u{202e}y\\u{2066}z"),
            ("\x1b]0;title\x07\x1b]52;c;YQ==\x1b\\", "^[]0;title^G^[]52;c;YQ==^[\\"),
            ("\x1b[H\x1b[3;4H\x1b[5B\x1b[6n\x1b[?1049h", "^[[H^[[3;4H^[[5B^[[6n^[[?1049h"),
            ("\x1b[>4;2m\x1b[3K\x1b[1 A\x1bc\x1bP+q\x1b\\", "^[[>4;2m^[[3K^[[1 A^[c^[P+q^[\\"),
            ("\x1b[31\n\x1b", "^[[31\n^["),
        ] {
            assert_eq!(filtered(text), shown);
            assert_eq!(strictly(text), shown);
        }
        assert_eq!(strictly("a\rb\r\n\x1b[31mc\x08"), "a^Mb\n^[[31mc^H");
    }

    #[test]
    fn what_bars_and_tables_are_made_of_passes() {
        for text in ["1%\r2%\r\n", "ab\x08c\t", "\x1b[1;38:5:9mred\x1b[0m\x1b[2K\r", "é 漢 😀\n"]
        {
            assert_eq!(filtered(text), text);
        }
        assert_eq!(
            filtered("\x1b[?25l\x1b]8;id=1;http://x\x1b\\link\x1b]8;;\x07\x1b[?25h"),
            "link"
        );
        assert_eq!(filtered("\x1b[31mred"), "\x1b[31mred\x1b[0m");
    }

    #[test]
    fn a_text_goes_up_within_its_own_lines_only_and_ends_below_them() {
        assert_eq!(filtered("\x1b[Aa\x1b[9A"), "a");
        assert_eq!(filtered("a\nb\n\x1b[2Ac\nd\n"), "a\nb\n\x1b[2Ac\nd\n");
        assert_eq!(filtered("a\nb\x1b[99Ac"), "a\nb\x1b[1Ac\x1b[1B\r");
        assert_eq!(filtered("a\nb\x1b[1A\x1b[1Ac\n"), "a\nb\x1b[1Ac\n");
        assert_eq!(filtered("\n\x1b[0A\x1b[A\n\x1b[4294967296A"), "\n\x1b[1A\n\x1b[1A\x1b[1B\r");
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let text =
            "é\x1b[1;31m漢\r\nx\x1b[A\x1b[2Ky\x1b]8;;http://é\x1b\\z\x1b[?25l\x1b]0;t\x07\n\x1b[5m";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut filter = Filter::default();
                let mut shown = filter.push(&text.as_bytes()[..first]);
                shown += &filter.push(&text.as_bytes()[first..second]);
                shown += &filter.push(&text.as_bytes()[second..]);
                shown += &filter.finish();
                assert_eq!(shown, filtered(text), "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        let mut filter = Filter::default();
        assert_eq!(filter.push(b"a\xff\x1bb\xe6"), "a\u{fffd}^[b");
        assert_eq!(filter.finish(), "\u{fffd}");
    }

    #[test]
    fn a_sequence_without_an_end_is_none() {
        let mut filter = Filter::default();
        let mut shown = String::new();
        for _ in 0..LONGEST_SEQUENCE {
            shown += &filter.push(b"\x1b]8;");
            shown += &filter.push(&[b'x'; 16]);
            assert!(filter.pending.len() <= LONGEST_SEQUENCE + 32);
        }
        assert!(shown.starts_with("^[]8;xxx") && !shown.contains('\x1b'));
    }
}
