//! Foreign texts in messages.

/// How many characters of a name a message shows.
const SHOWN_CHARS: usize = 100;

/// Returns what a message shows of a name that a guest, or a file of anybody's, has chosen: its
/// beginning, on one line. A text that is cut ends in `...`.
pub(crate) fn shown(name: &str) -> String {
    let mut shown = String::new();
    for character in name.chars().take(SHOWN_CHARS) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if name.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_and_on_one_line() {
        assert_eq!(shown("sum of 1, 2"), "sum of 1, 2");
        assert_eq!(shown("a\n\u{1b}é"), "a\\n\\u{1b}é");
        let long = "é".repeat(100);
        assert_eq!(shown(&long), long);
        assert_eq!(shown(&"\u{1}".repeat(1 << 20)), format!("{}...", "\\u{1}".repeat(100)));
    }
}
