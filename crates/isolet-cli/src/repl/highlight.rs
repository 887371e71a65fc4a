//! Colours for code typed at the prompt, and for exceptions.

use std::fmt::Write as _;

use crate::show::tokens;

const KEYWORD: &str = "1;34";
const STRING: &str = "32";
const NUMBER: &str = "33";
const COMMENT: &str = "31";
const PROMPT: &str = "1;35";
const EXCEPTION: &str = "1;35";

const KEYWORDS: [&str; 38] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "match", "nonlocal", "not", "or", "pass", "raise", "return",
    "try", "type", "while", "with", "yield",
];

/// Returns Python code with its keywords, strings, numbers and comments in colour.
pub(super) fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, style) = token(rest, first);
        let (token, after) = rest.split_at(length);
        match style {
            Some(style) => paint(style, token, &mut shown),
            None => shown.push_str(token),
        }
        rest = after;
    }
    shown
}

/// Returns the length of the first token, and its style.
fn token(text: &str, first: char) -> (usize, Option<&'static str>) {
    let until = |is_end: &dyn Fn(char) -> bool| text.find(is_end).unwrap_or(text.len());
    if first == '#' {
        // A text may have several lines.
        return (until(&|c| c == '\n'), Some(COMMENT));
    }
    if first == '\'' || first == '"' {
        return (tokens::string(text, first), Some(STRING));
    }
    if first.is_ascii_digit() {
        let end = until(&|c| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'));
        return (end, Some(NUMBER));
    }
    if first.is_alphabetic() || first == '_' {
        let end = until(&|c| !(c.is_alphanumeric() || c == '_'));
        let word = &text[..end];
        let next = text[end..].chars().next();
        if end <= 2 && matches!(next, Some('\'' | '"')) {
            // The prefix of a string.
            return (end, Some(STRING));
        }
        return (end, KEYWORDS.contains(&word).then_some(KEYWORD));
    }
    (first.len_utf8(), None)
}

/// Returns a prompt in colour.
pub(super) fn prompt(text: &str) -> String {
    let mut shown = String::new();
    paint(PROMPT, text, &mut shown);
    shown
}

/// Returns a traceback with the exception's name in colour.
pub(super) fn traceback(text: &str) -> String {
    let is_frame = |line: &str| line.starts_with([' ', '\t']) || line.starts_with("Traceback ");
    let mut shown = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let end = line.find([':', '\n']).unwrap_or(line.len());
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        if is_frame(line) || end == 0 || !line[..end].chars().all(is_name) {
            shown.push_str(line);
        } else {
            paint(EXCEPTION, &line[..end], &mut shown);
            shown.push_str(&line[end..]);
        }
    }
    shown
}

fn paint(style: &str, text: &str, to: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(to, "\x1b[{style}m{text}\x1b[0m");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces colours by letters, to make them readable.
    fn shown(text: &str) -> String {
        let mut shown = line(text).replace("\x1b[0m", ">");
        for (style, letter) in
            [(KEYWORD, "<k "), (STRING, "<s "), (NUMBER, "<n "), (COMMENT, "<c ")]
        {
            shown = shown.replace(&format!("\x1b[{style}m"), letter);
        }
        shown
    }

    #[test]
    fn a_line_has_the_colours_of_its_tokens() {
        for (text, expected) in [
            ("def f(x): return x_if + 10", "<k def> f(x): <k return> x_if + <n 10>"),
            ("rb'a\\'b' + \"c", "<s rb><s 'a\\'b'> + <s \"c>"),
            ("'''a\n'b''' # 'c\nx", "<s '''a\n'b'''> <c # 'c>\nx"),
            ("'open\nx", "<s 'open>\nx"),
            ("é = 0x1f + 1.5e3 # é", "é = <n 0x1f> + <n 1.5e3> <c # é>"),
            ("_ + 'a\\", "_ + <s 'a\\>"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn a_traceback_has_its_exception_in_colour() {
        let text = "Traceback (most recent call last):\n  File \"x\", line 1\nValueError: a: b\n";
        let expected = "Traceback (most recent call last):\n  File \"x\", line 1\n\
                        \x1b[1;35mValueError\x1b[0m: a: b\n";
        assert_eq!(traceback(text), expected);
        assert_eq!(traceback("KeyError\n"), "\x1b[1;35mKeyError\x1b[0m\n");
    }
}
