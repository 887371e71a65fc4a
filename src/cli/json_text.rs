//! Parses JSON text to a value, with ints of any size: serde's own numbers end at 64 bits.

use std::fmt;

use isolet::{BigInt, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value parsed from JSON text.
pub(super) struct Json(pub(super) Value);

/// The maximum nesting of arrays and objects. A deeper value could not cross anyway.
const MAX_DEPTH: usize = 128;

/// Parses a JSON text.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    if is_deeper(text, MAX_DEPTH) {
        let message = format!("the JSON is nested deeper than {MAX_DEPTH} levels");
        return Err(serde::de::Error::custom(message));
    }
    serde_json::from_str(text).map(|Json(value)| value)
}

/// Returns `true` if the text nests more than `limit` brackets, not counting strings.
fn is_deeper(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let failed = serde::de::Error::custom;
        Ok(Self(match raw.as_bytes() {
            [b'[', ..] => {
                serde_json::Deserializer::from_str(raw).deserialize_seq(Items).map_err(failed)?
            }
            [b'{', ..] => {
                serde_json::Deserializer::from_str(raw).deserialize_map(Items).map_err(failed)?
            }
            [b'-' | b'0'..=b'9', ..] => number(raw).map_err(failed)?,
            _ => serde_json::from_str(raw).map_err(failed)?,
        }))
    }
}

fn number(text: &str) -> serde_json::Result<Value> {
    if text.contains(['.', 'e', 'E']) {
        return serde_json::from_str(text).map(Value::Float);
    }
    match text.parse::<BigInt>() {
        Ok(number) => Ok(Value::from(number)),
        Err(_) => serde_json::from_str(text),
    }
}

/// Converts arrays to lists and objects to dicts.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut dict = Vec::new();
        while let Some((key, Json(item))) = items.next_entry::<String, _>()? {
            dict.push((Value::Str(key), item));
        }
        Ok(Value::Dict(dict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_size_and_their_kind() {
        let text = r#" [1, -9223372036854775809, 1e3, 0.5, {"a": [null, true, "\u00e9"]}, []] "#;
        let expected = "[1, -9223372036854775809, 1000.0, 0.5, {'a': [None, True, '\u{e9}']}, []]";
        assert_eq!(parse(text).unwrap().to_string(), expected);
        assert!(parse("[1").is_err());
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        assert!(parse(&"[".repeat(100_000)).unwrap_err().to_string().contains("128 levels"));
        let text = format!("\"{}\\\"\"", "[".repeat(200));
        assert_eq!(parse(&text).unwrap(), Value::from(format!("{}\"", "[".repeat(200))));
    }
}
