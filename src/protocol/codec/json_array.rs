//! Writes a guest's JSON again, so that every reader takes it for the same: no halves of surrogate
//! pairs, no numbers that are none, no key twice.

use std::fmt::Write;

use serde::de::IgnoredAny;
use serde_bytes::ByteBuf;

use crate::data::limits::Limits;
use crate::data::value::MAX_CROSSING_DEPTH;

/// Returns a JSON array on one line, of ASCII only, in the form that Python's `json.dumps` writes.
/// Returns `None` if the text is not one, or so long or deep that a parser might fail on it, or has
/// a number that is too large for a float.
///
/// Half of a surrogate pair becomes U+FFFD. Of repeated keys, the last one counts, as in Python.
pub(super) fn json_array(text: &str) -> Option<String> {
    if text.chars().nth(Limits::EXCEPTION_CHARS as usize).is_some()
        || !text.trim_start().starts_with('[')
        || serde_json::from_str::<IgnoredAny>(text).is_err()
        || json_depth(text) > MAX_CROSSING_DEPTH
    {
        return None;
    }
    let mut written = String::with_capacity(text.len());
    Rewriter { rest: text }.value(&mut written)?;
    Some(written)
}

/// Returns the nesting depth of valid JSON.
fn json_depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Reads valid JSON.
struct Rewriter<'a> {
    rest: &'a str,
}

impl Rewriter<'_> {
    /// Writes the next value; `None` if it cannot be written.
    fn value(&mut self, to: &mut String) -> Option<()> {
        self.rest = self.rest.trim_start();
        match self.rest.bytes().next()? {
            b'"' => to.push_str(&self.text()?),
            b'[' => {
                to.push('[');
                let mut is_first = true;
                while self.more(b']')? {
                    to.push_str(if std::mem::take(&mut is_first) { "" } else { ", " });
                    self.value(to)?;
                }
                to.push(']');
            }
            b'{' => self.dict(to)?,
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                match word {
                    "null" | "true" | "false" => to.push_str(word),
                    "-0" => to.push('0'),
                    _ if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
                        to.push_str(word);
                    }
                    _ => {
                        let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
                        to.push_str(&serde_json::to_string(&number?).ok()?);
                    }
                }
            }
        }
        Some(())
    }

    fn dict(&mut self, to: &mut String) -> Option<()> {
        let mut items: Vec<(String, String)> = Vec::new();
        while self.more(b'}')? {
            let key = self.text()?;
            self.rest = self.rest.trim_start().strip_prefix(':')?;
            let mut value = String::new();
            self.value(&mut value)?;
            match items.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => items.push((key, value)),
            }
        }
        let items: Vec<_> = items.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        // Writing to a text cannot fail.
        let _ = write!(to, "{{{}}}", items.join(", "));
        Some(())
    }

    /// Goes on to the next item of a list or dict, past its opening bracket or a comma. Returns
    /// `false` past its end.
    fn more(&mut self, end: u8) -> Option<bool> {
        self.rest = self.rest.trim_start();
        let is_past_bracket = self.rest.bytes().next()? != end;
        if is_past_bracket {
            self.rest = self.rest.get(1..)?.trim_start();
        }
        let is_end = self.rest.bytes().next()? == end;
        if is_end {
            self.rest = self.rest.get(1..)?;
        }
        Some(!is_end)
    }

    /// Returns the next text, written again.
    fn text(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let mut is_escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        })?;
        let (quoted, rest) = self.rest.split_at_checked(end + 2)?;
        self.rest = rest;
        // As bytes, in which halves of surrogate pairs are allowed.
        let bytes = serde_json::from_str::<ByteBuf>(quoted).ok()?;
        let text = serde_json::to_string(&String::from_utf8_lossy(&bytes)).ok()?;
        let mut written = String::with_capacity(text.len());
        for character in text.chars() {
            if character.is_ascii() && !character.is_control() {
                written.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(written, "\\u{unit:04x}");
            }
        }
        Some(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_would_take_differently_is_written_as_one_thing() {
        for (json, expected) in [
            (r#"["k", 1, "\n\"]["]"#, r#"["k", 1, "\n\"]["]"#),
            ("[]", "[]"),
            (" [ ] ", "[]"),
            ("[[],[{}], {}]", "[[], [{}], {}]"),
            ("[\n{\"status\":\"completed\"}\r\n]", r#"[{"status": "completed"}]"#),
            (r#"[{"a":1,"b":[2],"a":{"a":3}}]"#, r#"[{"a": {"a": 3}, "b": [2]}]"#),
            (r#"[{"a":1,"\u0061":2}]"#, r#"[{"a": 2}]"#),
            (r"[-0, -0.0, 1e2, 1.50, -7]", "[0, -0.0, 100.0, 1.5, -7]"),
            (r"[true,false , null]", "[true, false, null]"),
            (r#"["\ud83d\ude00\u00e9"]"#, r#"["\ud83d\ude00\u00e9"]"#),
            ("[\"\u{9b}\u{7f}é\"]", r#"["\u009b\u007f\u00e9"]"#),
            (r#"["\\", "\\\"", "a/b\/c"]"#, r#"["\\", "\\\"", "a/b/c"]"#),
        ] {
            assert_eq!(json_array(json).as_deref(), Some(expected), "{json}");
        }
        let digits = format!("[{}]", "7".repeat(5000));
        assert_eq!(json_array(&digits), Some(digits));
        let half = json_array(r#"["\ud800", {"\udfff": 1}]"#).unwrap();
        let read: serde_json::Value = serde_json::from_str(&half).unwrap();
        assert!(read[0].as_str().unwrap().chars().all(|one| one == '\u{fffd}'), "{half}");
    }

    #[test]
    fn what_is_no_array_or_has_no_float_is_nothing() {
        let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
        let long = format!("[{}]", " ".repeat(65_536));
        for none in [
            "{}",
            "1",
            "[1",
            "[1]]",
            "[\"\n\"]",
            "[NaN]",
            "",
            "[1e999999]",
            "[-1e400]",
            &deep,
            &long,
        ] {
            assert_eq!(json_array(none), None, "{none}");
        }
    }
}
