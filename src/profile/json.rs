//! Converts values to the text that Python's `json.dumps` produces.

use std::fmt::Write;

use crate::data::value::Value;

/// Returns the text of `json.dumps(value)` in Python, including spacing and escapes.
///
/// As in Python, NaN and the infinities become `NaN`, `Infinity` and `-Infinity`, which Python can
/// read but JSON does not define. Keys that are not strings become strings. Bytes, which
/// `json.dumps` rejects, become a string of their `repr`.
///
/// ```
/// use isolet::Value;
/// use isolet::profile::json_dumps;
///
/// let value = Value::List(vec![Value::from("\u{e9}"), Value::Float(f64::NAN), Value::None]);
/// assert_eq!(json_dumps(&value), r#"["\u00e9", NaN, null]"#);
/// ```
#[must_use]
pub fn json_dumps(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Str(text) => write_string(text, out),
        Value::Bytes(_) => write_string(&value.to_string(), out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Dict(items) => {
            out.push('{');
            for (at, (key, item)) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                match key {
                    Value::Str(text) => write_string(text, out),
                    Value::Bytes(_) => write_string(&key.to_string(), out),
                    scalar => {
                        out.push('"');
                        write_value(scalar, out);
                        out.push('"');
                    }
                }
                out.push_str(": ");
                write_value(item, out);
            }
            out.push('}');
        }
        Value::None => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(number) if number.is_infinite() => {
            out.push_str(if *number > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Value::BigInt(_) => {
            let digits = value.to_string();
            // Too long for decimal, so it cannot be a JSON number.
            if digits.contains('x') { write_string(&digits, out) } else { out.push_str(&digits) }
        }
        Value::Int(_) | Value::Float(_) => out.push_str(&value.to_string()),
    }
}

fn write_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_that_of_pythons_json_dumps() {
        let value = Value::Dict(vec![
            ("a\"\u{1f600}\u{7f}".into(), Value::List(vec![Value::Int(1), Value::Float(1e16)])),
            (Value::Int(1), Value::Bool(true)),
            (Value::None, Value::Float(f64::NEG_INFINITY)),
            (Value::Bool(false), Value::Dict(vec![])),
            (Value::Float(0.5), Value::Bytes(b"x".to_vec())),
        ]);
        assert_eq!(
            json_dumps(&value),
            concat!(
                r#"{"a\"\ud83d\ude00\u007f": [1, 1e+16], "1": true, "null": -Infinity, "#,
                r#""false": {}, "0.5": "b'x'"}"#
            )
        );
    }
}
