//! Texts of guests and servers as they may be shown on a terminal or in a log.

use std::fmt::Write;

/// Makes a whole text safe in which only newlines and tabs pass, such as an exception's message.
pub fn strictly(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    show_strictly(text, &mut shown);
    shown
}

/// Makes a text safe that is a part of one line, such as a name.
pub fn on_one_line(text: &str) -> String {
    strictly(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Appends a text, as [`strictly`] makes it.
pub fn show_strictly(text: &str, to: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => to.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            _ => show_character(character, to),
        }
    }
}

/// Returns `true` for characters that are not control characters, but change how others are shown.
pub fn is_odd(character: char) -> bool {
    matches!(
        character,
        '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Appends a character so that it commands nothing.
pub fn show_character(character: char, to: &mut String) {
    match character {
        '\0'..='\x1f' | '\x7f' => {
            to.push('^');
            to.push(char::from((character as u8) ^ 0x40));
        }
        _ if character.is_control() || is_odd(character) => {
            // Writing to a string does not fail.
            let _ = write!(to, "\\u{{{:x}}}", u32::from(character));
        }
        _ => to.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line_and_commands_nothing() {
        let shown = on_one_line("a\x1b[31m\nb: ok\r\n\t\u{202e}");
        assert_eq!(shown, "a^[[31m\\nb: ok\\n\\t\\u{202e}");
    }
}
