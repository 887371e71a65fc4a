//! Finds where tokens of Python end.

/// Returns the length of the string that begins here, up to the end of the text if it is not
/// closed.
pub(crate) fn string(text: &str, quote: char) -> usize {
    let triple = [quote; 3].iter().collect::<String>();
    let end: &str = if text.starts_with(&triple) { &triple } else { &triple[..1] };
    let mut at = end.len();
    while let Some(next) = text[at..].chars().next() {
        if text[at..].starts_with(end) {
            return at + end.len();
        }
        if next == '\n' && end.len() == 1 {
            return at;
        }
        at += next.len_utf8();
        if next == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    text.len()
}
