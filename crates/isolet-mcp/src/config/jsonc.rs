//! JSON with comments and trailing commas, as editors write it.

/// Returns the JSON of a text with comments and trailing commas. Both become spaces, so that the
/// errors of a parser have the right line and column.
pub(super) fn to_json(text: &str) -> String {
    let mut plain = text.trim_start_matches('\u{feff}').as_bytes().to_vec();
    blank_comments(&mut plain);
    blank_commas(&mut plain);
    // Only whole comments and single commas were replaced, so this is UTF-8 as before.
    String::from_utf8_lossy(&plain).into_owned()
}

fn blank_comments(text: &mut [u8]) {
    let mut at = 0;
    while at < text.len() {
        let end = match (text[at], text.get(at + 1)) {
            (b'"', _) => {
                at = after_string(text, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                let line = text[at..].iter().position(|byte| *byte == b'\n');
                line.map_or(text.len(), |length| at + length)
            }
            (b'/', Some(b'*')) => {
                let close = text[at + 2..].windows(2).position(|pair| pair == b"*/");
                close.map_or(text.len(), |length| at + length + 4)
            }
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut text[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
}

fn blank_commas(text: &mut [u8]) {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'"' {
            at = after_string(text, at);
            continue;
        }
        if text[at] == b',' {
            let next = text[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
            if matches!(next, Some(b'}' | b']')) {
                text[at] = b' ';
            }
        }
        at += 1;
    }
}

/// Returns the place after the string that begins at `at`.
fn after_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::to_json;

    fn parsed(text: &str) -> serde_json::Value {
        serde_json::from_str(&to_json(text)).unwrap()
    }

    #[test]
    fn comments_and_trailing_commas_are_accepted() {
        let text = "\u{feff}{ // one\n \"a\": [1, 2, /* two */ ], \"ü\": {\"b\": null,},\n}";
        assert_eq!(parsed(text), serde_json::json!({"a": [1, 2], "ü": {"b": null}}));
    }

    #[test]
    fn strings_are_left_alone() {
        let text = r#"{"url": "http://x/*y*/", "q": "\"// no", "c": ",]"}"#;
        assert_eq!(to_json(text), text);
    }

    #[test]
    fn an_error_has_its_line_and_column() {
        let error = serde_json::from_str::<serde_json::Value>(&to_json("{/* a\n b */ \"c\" 1}"));
        let error = error.unwrap_err();
        assert_eq!((error.line(), error.column()), (2, 11));
    }

    #[test]
    fn what_never_ends_is_no_panic() {
        for text in ["\"", "\"\\", "/*", "/", "//", "{,", "/*/"] {
            let _ = to_json(text);
        }
    }
}
