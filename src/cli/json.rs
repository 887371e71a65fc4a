//! Guest values as JSON, as Python's `json.dumps` would write them.

use isolet::Value;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

/// Shows a value as JSON; for serializers of `serde_json` only, which know numbers of any size.
///
/// Differs from `json.dumps` where that writes no JSON or raises: NaN and the infinities become
/// `null`, bytes an array of numbers.
pub(super) struct Json<'a>(pub(super) &'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::BigInt(number) => match RawValue::from_string(number.to_string()) {
                Ok(digits) => digits.serialize(serializer),
                // Too long for decimal.
                Err(_) => serializer.serialize_str(&number.to_string()),
            },
            Value::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::Str(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Json(item))?;
                }
                list.end()
            }
            Value::Dict(items) => {
                let mut map = serializer.serialize_map(Some(items.len()))?;
                for (key, item) in items {
                    map.serialize_entry(&key_text(key), &Json(item))?;
                }
                map.end()
            }
            // `None`, and the floats that JSON has no form for.
            _ => serializer.serialize_unit(),
        }
    }
}

fn key_text(key: &Value) -> String {
    match key {
        Value::Str(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::BigInt(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        // `None`; containers are no keys.
        _ => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_numbers_are_written_as_json_dumps_writes_them() {
        let value = Value::Dict(vec![
            (Value::Int(1), Value::Float(f64::NAN)),
            (Value::None, Value::List(vec![Value::Float(2.0), Value::Bool(false)])),
            (Value::Bool(true), Value::BigInt((1i128 << 100).into())),
        ]);
        assert_eq!(
            serde_json::to_string(&Json(&value)).unwrap(),
            r#"{"1":null,"null":[2.0,false],"true":1267650600228229401496703205376}"#
        );
    }
}
