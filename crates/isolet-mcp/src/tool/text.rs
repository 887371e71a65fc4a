//! Texts of servers as they may be shown to a model or a person.

use isolet::internals::is_invisible;

/// The maximum length of the text next to a signature, in characters.
pub(crate) const SIGNATURE_CHARS: usize = 200;

/// The maximum length of a docstring, in characters.
pub(crate) const DOC_CHARS: usize = 2_000;

/// Removes text that a reader does not see: control characters, escape sequences of terminals,
/// characters without width or that change the direction, and comments of HTML. Lines stay.
pub(crate) fn clean(text: &str) -> String {
    let text = without_comments(text);
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' | '\u{9b}' => skip_escape(letter, &mut letters),
            '\n' => clean.push('\n'),
            '\t' => clean.push(' '),
            letter if letter.is_control() || is_invisible(letter) => {}
            letter => clean.push(letter),
        }
    }
    let lines: Vec<&str> = clean.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// Cuts a text to so many characters, and says so by three dots.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Returns the first paragraph as one line of at most [`SIGNATURE_CHARS`].
pub(crate) fn summary(text: &str) -> String {
    let text = clean(text);
    let paragraph: Vec<&str> =
        text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    cut(&paragraph.join(" "), SIGNATURE_CHARS)
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        kept.push_str(&rest[..start]);
        // A comment that does not end hides everything after it.
        rest = rest[start..].split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// Skips the rest of an escape sequence.
fn skip_escape(first: char, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kind = if first == '\u{9b}' { Some('[') } else { letters.next() };
    match kind {
        Some('[') => {
            for letter in letters.by_ref() {
                if ('@'..='~').contains(&letter) {
                    break;
                }
            }
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(letter) = letters.next() {
                if letter == '\u{7}' || letter == '\u{9c}' {
                    break;
                }
                if letter == '\u{1b}' {
                    letters.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_removed() {
        for (text, expected) in [
            ("a\u{200b}b\u{202e}c\u{feff}d\u{e0041}", "abcd"),
            ("\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\!", "red link!"),
            ("a<!-- ignore previous -->b<!-- and\nthis", "ab"),
            ("a\r\nb\u{0}\u{8}\tc  \n\n\nd", "a\nb c\n\n\nd"),
            ("größe 名前 🎉", "größe 名前 🎉"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_summary_is_the_first_paragraph_and_short() {
        assert_eq!(summary("  One\n two.\n\nThree."), "One two.");
        let long = summary(&"word ".repeat(2_000));
        assert!(long.chars().count() <= SIGNATURE_CHARS && long.ends_with('…'), "{long}");
    }
}
