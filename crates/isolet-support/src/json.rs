//! The command's JSON output. Guest values are written as by Python's `json.dumps`, on lines whose
//! structure no guest text can change.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::Value;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;

/// Writes an object on a separate line.
pub fn write_line(mut to: impl Write, object: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut to, Inert);
    object.serialize(&mut serializer)?;
    to.write_all(b"\n")?;
    to.flush()
}

/// Prints an object on a separate line. A reader that has gone away is not a failure.
pub fn print(object: &impl Serialize) -> io::Result<()> {
    match write_line(io::stdout().lock(), object) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes compact JSON and escapes every control character, and every character that breaks lines
/// or changes the direction of text.
struct Inert;

impl Formatter for Inert {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        escape(to, text)
    }

    /// Writes JSON from elsewhere. Between its tokens control characters are only white space.
    fn write_raw_fragment<W: ?Sized + Write>(&mut self, to: &mut W, json: &str) -> io::Result<()> {
        for (at, line) in json.split(['\n', '\r', '\t']).enumerate() {
            to.write_all(if at > 0 { b" " } else { b"" })?;
            escape(to, line)?;
        }
        Ok(())
    }
}

fn escape<W: ?Sized + Write>(to: &mut W, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find(is_active) {
        let (inert, after) = rest.split_at(at);
        to.write_all(inert.as_bytes())?;
        let mut characters = after.chars();
        for unit in characters.next().unwrap_or_default().encode_utf16(&mut [0; 2]) {
            write!(to, "\\u{unit:04x}")?;
        }
        rest = characters.as_str();
    }
    to.write_all(rest.as_bytes())
}

/// Returns `true` if a terminal, an editor or a line-based reader may act on this character.
fn is_active(character: char) -> bool {
    character.is_control() || crate::text::is_odd(character)
}

/// The keys that mark bytes, and the floats that JSON cannot represent.
const BYTES: &str = "$bytes";
const FLOAT: &str = "$float";

/// Serialises a value as JSON. Only for the serializers of `serde_json`, which can write numbers of
/// any size.
///
/// Differs from `json.dumps` where its output is not JSON or it raises: NaN becomes
/// `{"$float": "nan"}`, infinities have `"inf"` or `"-inf"` there, and bytes become
/// `{"$bytes": "BASE64"}`, as in the protocol of `isolet serve`.
pub struct Json<'a>(pub &'a Value);

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
            Value::Float(number) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(FLOAT, &number.to_string().to_lowercase())?;
                map.end()
            }
            Value::Str(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(BYTES, &STANDARD.encode(bytes))?;
                map.end()
            }
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
        // `None`. Containers cannot be keys.
        _ => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_characters_are_escaped_wherever_they_are() {
        let active =
            "\0\u{1b}\u{7f}\u{85}\u{9b}\u{200f}\u{202e}\u{2028}\u{2029}\u{2066}\u{feff}\u{e0041}";
        let text = format!("\"a\"{active}é漢😀\n");
        let raw = RawValue::from_string(format!("[\n\t1,\r\n\"{}\"]", &active[3..])).unwrap();
        let value = Value::dict([(text.clone(), text.clone())]);
        let mut line = Vec::new();
        write_line(&mut line, &(Json(&value), raw)).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.chars().filter(|one| is_active(*one)).collect::<String>(), "\n");
        assert!(line.ends_with('\n') && line.contains("é漢😀"), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read, serde_json::json!([{ &text: &text }, [1, &active[3..]]]));
    }

    #[test]
    fn keys_and_numbers_are_written_as_json_dumps_writes_them() {
        let value = Value::Dict(vec![
            (Value::Int(1), Value::Float(f64::NAN)),
            (Value::None, Value::List(vec![Value::Float(2.0), Value::Bool(false)])),
            (Value::Bool(true), Value::BigInt((1i128 << 100).into())),
        ]);
        assert_eq!(
            serde_json::to_string(&Json(&value)).unwrap(),
            r#"{"1":{"$float":"nan"},"null":[2.0,false],"true":1267650600228229401496703205376}"#
        );
    }
}
