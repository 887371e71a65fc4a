//! Values as JSON, for callers and commands that speak it.

use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::Value;

/// Writes what Python's `json.dumps` would, except where that is not JSON: NaN and the infinities
/// become `null`. Integers past 64 bits and bytes, which serde has no common form for, become a
/// decimal string and an array of numbers. Dict keys become strings as `json.dumps` makes them.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::BigInt(number) => serializer.collect_str(number),
            Self::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Self::None | Self::Float(_) => serializer.serialize_unit(),
            Self::Str(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Dict(items) => {
                let mut map = serializer.serialize_map(Some(items.len()))?;
                for (key, item) in items {
                    map.serialize_entry(&key_text(key).map_err(S::Error::custom)?, item)?;
                }
                map.end()
            }
        }
    }
}

fn key_text(key: &Value) -> Result<String, String> {
    Ok(match key {
        Value::Str(text) => text.clone(),
        Value::None => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::BigInt(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(_) | Value::Dict(_) => {
            return Err("a container is no dict key in JSON".to_owned());
        }
    })
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
            serde_json::to_string(&value).unwrap(),
            r#"{"1":null,"null":[2.0,false],"true":"1267650600228229401496703205376"}"#
        );
    }
}
