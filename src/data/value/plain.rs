//! Serialises values without loss within messages and results of runs, in the same way for every
//! wire and for programs: see `docs/reference/protocol.md`.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::Value;

/// The key of an object that stands for bytes, in base64.
pub const BYTES: &str = "$bytes";
/// The key of an object that stands for a float that is not finite.
pub const FLOAT: &str = "$float";
/// The key of an object that stands for a dict, as a list of pairs.
pub const DICT: &str = "$dict";

/// The newtype name under which binary encodings receive ints beyond serde's types, as bytes of
/// Python's `marshal` format.
pub const MARSHAL_INT: &str = "$isolet::marshal";

/// Bytes, in base64 in JSON.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            mark(serializer, BYTES, &Base64(self.0))
        } else {
            serializer.serialize_bytes(self.0)
        }
    }
}

/// Formats base64 in pieces, without a string of all of it.
struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// A value of a guest or a client. Its JSON form is lossless.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a>(pub &'a Value);

impl Serialize for Form<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_text = serializer.is_human_readable();
        match self.0 {
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) => serializer.serialize_i64(*number),
            big @ Value::BigInt(_) if !is_text => {
                let mut bytes = Vec::new();
                big.write_marshal(&mut bytes);
                serializer.serialize_newtype_struct(MARSHAL_INT, &Bytes(&bytes))
            }
            Value::BigInt(number) => match RawValue::from_string(number.to_string()) {
                Ok(digits) => digits.serialize(serializer),
                // Too long for decimal digits.
                Err(_) => serializer.serialize_str(&number.to_string()),
            },
            Value::Float(number) if number.is_finite() || !is_text => {
                serializer.serialize_f64(*number)
            }
            Value::Float(number) => {
                let text = if number.is_nan() {
                    "nan"
                } else if *number > 0.0 {
                    "inf"
                } else {
                    "-inf"
                };
                mark(serializer, FLOAT, &text)
            }
            Value::Str(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => Bytes(bytes).serialize(serializer),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Form(item))?;
                }
                list.end()
            }
            Value::Dict(items) => {
                let is_plain = items.iter().all(|(key, _)| key.as_str().is_some());
                let is_like_a_mark = matches!(
                    items.as_slice(), [(Value::Str(key), _)] if key.starts_with('$')
                );
                if is_text && (!is_plain || is_like_a_mark) {
                    return mark(serializer, DICT, &Pairs(items));
                }
                let mut map = serializer.serialize_map(Some(items.len()))?;
                for (key, item) in items {
                    map.serialize_entry(&Form(key), &Form(item))?;
                }
                map.end()
            }
            Value::None => serializer.serialize_unit(),
        }
    }
}

struct Pairs<'a>(&'a [(Value, Value)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(key, item)| [Form(key), Form(item)]))
    }
}

fn mark<S: Serializer>(
    serializer: S,
    name: &str,
    value: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, value)?;
    map.end()
}
