//! JSON of clients and guests, which our own reader takes, and its way out as lines.

use isolet::Value;
use isolet::fuzzing::measured;
use isolet_support::json::{Json, write_line};
use isolet_support::json_text::{count, parse};
use isolet_support::text::is_odd;

/// The bytes that a value takes while it is read: twice its own, as it is in a list that grows.
const VALUE_BYTES: usize = 4 * 64;
const FIXED: usize = 16 << 10;

/// Reads text as JSON, as serde does: what the one takes, the other takes as the same. Memory is
/// bounded by the count of values; a value is written on one line that a terminal obeys in nothing,
/// and is read as the same again.
pub fn json_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (ours, used) = measured(|| parse(text));
    let values = count(data);
    assert!(used.peak <= VALUE_BYTES * values + 4 * data.len() + FIXED, "{values}: {used:?}");
    let serdes = serde_json::from_str::<serde_json::Value>(text);
    let value = match ours {
        Ok(value) => value,
        Err(reason) => {
            let is_placed = [" at line ", "limit", "deeper"].iter().any(|it| reason.contains(it));
            assert!(is_placed, "{reason:?}");
            // It has bounds of its own, and takes numbers of any size.
            let is_beyond =
                ["deep", "digits", "float", "number"].iter().any(|it| reason.contains(it));
            assert!(serdes.is_err() || is_beyond, "{reason}: {text}");
            return;
        }
    };
    if let Ok(serdes) = serdes {
        is_alike(&value, &serdes);
    }
    let mut line = Vec::new();
    assert!(write_line(&mut line, &Json(&value)).is_ok());
    let line = String::from_utf8(line).unwrap_or_default();
    let inner = line.strip_suffix('\n').unwrap_or_default();
    assert!(!inner.contains(|c: char| c.is_control() || is_odd(c)), "{line:?}");
    let again = parse(&line);
    assert_eq!(again.as_ref(), Ok(&value), "{line:?}");
}

/// Both readings mean the same. Of a key that is there twice, serde keeps the last.
fn is_alike(ours: &Value, serdes: &serde_json::Value) {
    use serde_json::Value as Serdes;
    match (ours, serdes) {
        (Value::None, Serdes::Null) | (Value::BigInt(_), Serdes::Number(_)) => {}
        (Value::Bool(one), Serdes::Bool(other)) => assert_eq!(one, other),
        (Value::Str(one), Serdes::String(other)) => assert_eq!(one, other),
        (Value::List(one), Serdes::Array(other)) => {
            assert_eq!(one.len(), other.len());
            one.iter().zip(other).for_each(|(one, other)| is_alike(one, other));
        }
        (Value::Dict(one), Serdes::Object(other)) => {
            let of_name = |name: &str| one.iter().rev().find(|(key, _)| key.as_str() == Some(name));
            for (name, other) in other {
                let Some((_, one)) = of_name(name) else { unreachable!("{name:?} is missing") };
                is_alike(one, other);
            }
        }
        (Value::Int(one), Serdes::Number(other)) => {
            assert!(other.as_i64() == Some(*one) || other.as_f64() == Some(0.0), "{one} {other}");
        }
        (Value::Float(one), Serdes::Number(other)) => {
            let other = other.as_f64().unwrap_or(f64::NAN);
            assert!((one - other).abs() <= 1e-15 * one.abs(), "{one} {other}");
        }
        other => unreachable!("{other:?}"),
    }
}
