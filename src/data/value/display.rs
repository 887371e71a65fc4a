//! Prints values as Python's `repr` does.

use std::fmt::{self, Display, Formatter, Write};

use super::Value;
use crate::data::invisible::is_invisible;

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(number) => write!(f, "{number}"),
            Self::BigInt(number) => write!(f, "{number}"),
            Self::Float(number) => float(*number, f),
            Self::Str(text) => {
                let quote = quote_for(text.contains('\''), text.contains('"'));
                f.write_char(quote)?;
                text.chars().try_for_each(|character| escaped(character, quote, f))?;
                f.write_char(quote)
            }
            Self::Bytes(bytes) => {
                let quote = quote_for(bytes.contains(&b'\''), bytes.contains(&b'"'));
                write!(f, "b{quote}")?;
                for byte in bytes {
                    match byte {
                        0x80.. => write!(f, "\\x{byte:02x}")?,
                        _ => escaped(char::from(*byte), quote, f)?,
                    }
                }
                f.write_char(quote)
            }
            Self::List(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
                }
                f.write_char(']')
            }
            Self::Dict(items) => {
                f.write_char('{')?;
                for (at, (key, item)) in items.iter().enumerate() {
                    write!(f, "{}{key}: {item}", if at > 0 { ", " } else { "" })?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quote_for(has_single: bool, has_double: bool) -> char {
    if has_single && !has_double { '"' } else { '\'' }
}

fn escaped(character: char, quote: char, f: &mut Formatter<'_>) -> fmt::Result {
    match character {
        '\\' => f.write_str("\\\\"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        _ if character == quote => write!(f, "\\{character}"),
        _ if !character.is_control() && !is_invisible(character) => f.write_char(character),
        '\0'..='\u{ff}' => write!(f, "\\x{:02x}", u32::from(character)),
        '\u{100}'..='\u{ffff}' => write!(f, "\\u{:04x}", u32::from(character)),
        _ => write!(f, "\\U{:08x}", u32::from(character)),
    }
}

/// Prints the shortest digits that read back as the same float, in Python's layout.
fn float(number: f64, f: &mut Formatter<'_>) -> fmt::Result {
    if number.is_nan() {
        return f.write_str("nan");
    }
    if number.is_infinite() {
        return f.write_str(if number > 0.0 { "inf" } else { "-inf" });
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return write!(f, "{number:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(f, "{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_escaped() {
        let text = Value::from("a\u{202e}b\u{200b}\u{ad}\u{e0041}\u{1b}ü🎉");
        assert_eq!(text.to_string(), r"'a\u202eb\u200b\xad\U000e0041\x1bü🎉'");
    }

    #[test]
    fn floats_look_as_in_python() {
        let shown = |number: f64| Value::Float(number).to_string();
        assert_eq!(shown(1.0), "1.0");
        assert_eq!(shown(-0.0), "-0.0");
        assert_eq!(shown(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(shown(1e15), "1000000000000000.0");
        assert_eq!(shown(1e16), "1e+16");
        assert_eq!(shown(1.5e300), "1.5e+300");
        assert_eq!(shown(0.0001), "0.0001");
        assert_eq!(shown(0.00001), "1e-05");
        assert_eq!(shown(f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn text_is_quoted_as_in_python() {
        let shown = |text: &str| Value::from(text).to_string();
        assert_eq!(shown("it's"), "\"it's\"");
        assert_eq!(shown("it's \"so\""), "'it\\'s \"so\"'");
        assert_eq!(shown("a\\b\n\u{1}é"), "'a\\\\b\\n\\x01é'");
        assert_eq!(Value::Bytes(b"a'\xff\0".to_vec()).to_string(), "b\"a'\\xff\\x00\"");
    }

    #[test]
    fn containers_nest() {
        let value = Value::Dict(vec![
            ("a".into(), Value::List(vec![Value::None, Value::Bool(true), Value::Int(-3)])),
            (Value::Int(1), Value::Dict(vec![])),
        ]);
        assert_eq!(value.to_string(), "{'a': [None, True, -3], 1: {}}");
    }
}
