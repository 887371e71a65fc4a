//! The encodings of messages: Python's `marshal` format, and JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

use isolet_service::core::{BYTES, DICT, FLOAT, Marshal, tokens};
use isolet_support::frames::MAX_BYTES;
use isolet_support::json_rpc::mended;
use isolet_support::json_text;

/// How messages are encoded: as JSON, or in Python's `marshal` format, version 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// JSON.
    #[default]
    Json,
    /// `marshal`, version 2.
    Marshal,
}

impl Wire {
    /// Decodes a message.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Value, String> {
        match self {
            Self::Marshal => {
                // A decoded value may take ten times as many bytes.
                let max_bytes = (MAX_BYTES as u64).saturating_mul(16);
                Value::from_marshal(bytes, max_bytes).map_err(|error| error.to_string())
            }
            Self::Json => {
                // JavaScript and Python may write lone surrogates.
                let has_halves = bytes.windows(3).any(|escape| matches!(escape, b"\\ud" | b"\\uD"));
                let mended =
                    has_halves.then(|| mended(bytes.to_vec()).map_err(|(_, reason)| reason));
                let mended = mended.transpose()?;
                let bytes = mended.as_deref().unwrap_or(bytes);
                let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
                from_json(json_text::parse(text)?)
            }
        }
    }

    /// Returns the operation and the request number of a message that cannot be decoded, if it
    /// starts with them.
    pub(crate) fn head(self, bytes: &[u8]) -> Option<(String, i64)> {
        match self {
            Self::Json => {
                let rest = bytes.trim_ascii_start().strip_prefix(b"[")?;
                let (operation, rest) = first::<String>(rest)?;
                let (number, rest) = first::<i64>(rest.trim_ascii_start().strip_prefix(b",")?)?;
                let is_whole = matches!(rest.trim_ascii_start().first(), Some(b',' | b']'));
                is_whole.then_some((operation, number))
            }
            Self::Marshal => {
                // A list, its length, a string and its length.
                let (_, rest) = bytes.strip_prefix(b"[")?.split_first_chunk::<4>()?;
                let (length, rest) = rest.strip_prefix(b"u")?.split_first_chunk()?;
                let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
                let (operation, rest) = rest.split_at_checked(length)?;
                let (number, _) = rest.strip_prefix(b"i")?.split_first_chunk()?;
                let operation = std::str::from_utf8(operation).ok()?.to_owned();
                Some((operation, i32::from_le_bytes(*number).into()))
            }
        }
    }

    /// Appends an encoded message, in which values of guests are
    /// [`Plain`](isolet_service::core::Plain).
    ///
    /// # Errors
    ///
    /// Fails with the reason if the encoding cannot represent it, such as a list of 2³¹ items.
    pub(crate) fn encode(
        self,
        message: &(impl Serialize + ?Sized),
        to: &mut Vec<u8>,
    ) -> Result<(), String> {
        match self {
            Self::Marshal => {
                tokens(message, &mut Marshal(to)).map_err(|stopped| stopped.to_string())
            }
            Self::Json => serde_json::to_writer(to, message).map_err(|error| error.to_string()),
        }
    }
}

impl Wire {
    /// Returns the length of something as JSON.
    pub(crate) fn json_length(of: &(impl Serialize + ?Sized)) -> u64 {
        let mut length = Length(0);
        // Counting bytes does not fail.
        let _ = serde_json::to_writer(&mut length, of);
        length.0
    }
}

/// Counts written bytes.
struct Length(u64);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Decodes the first JSON value. Also returns the text after it.
fn first<T: DeserializeOwned>(text: &[u8]) -> Option<(T, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

/// Converts objects that represent values without a JSON form.
fn from_json(value: Value) -> Result<Value, String> {
    match value {
        Value::List(items) => {
            items.into_iter().map(from_json).collect::<Result<_, _>>().map(Value::List)
        }
        Value::Dict(items) => match marked(&items) {
            None => {
                let items = items.into_iter();
                let items = items.map(|(key, item)| Ok((key, from_json(item)?)));
                items.collect::<Result<_, String>>().map(Value::Dict)
            }
            Some((BYTES, Value::Str(text))) => STANDARD
                .decode(text)
                .map(Value::Bytes)
                .map_err(|error| format!("`{BYTES}` is no base64: {error}")),
            Some((FLOAT, Value::Str(text))) => match text.as_str() {
                "nan" => Ok(Value::Float(f64::NAN)),
                "inf" => Ok(Value::Float(f64::INFINITY)),
                "-inf" => Ok(Value::Float(f64::NEG_INFINITY)),
                other => Err(format!("`{FLOAT}` is {other:?}, and has to be nan, inf or -inf")),
            },
            Some((DICT, Value::List(pairs))) => {
                let pair = |pair: &Value| match pair.as_list() {
                    Some([key, item]) => Ok((from_json(key.clone())?, from_json(item.clone())?)),
                    _ => Err(format!("`{DICT}` has to be a list of pairs")),
                };
                pairs.iter().map(pair).collect::<Result<_, _>>().map(Value::Dict)
            }
            Some((mark, other)) => {
                Err(format!("`{mark}` is {}, which it cannot be", other.type_name()))
            }
        },
        other => Ok(other),
    }
}

/// Returns the key and the content of an object that represents another value.
fn marked(items: &[(Value, Value)]) -> Option<(&'static str, &Value)> {
    let [(Value::Str(key), item)] = items else { return None };
    [BYTES, FLOAT, DICT].into_iter().find(|mark| mark == key).map(|mark| (mark, item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolet_service::core::Plain;

    #[test]
    fn every_value_passes_through_both_encodings_without_loss() {
        let value = Value::List(vec![
            Value::None,
            true.into(),
            (1i128 << 100).into(),
            Value::Float(f64::NEG_INFINITY),
            Value::Float(2.0),
            Value::bytes(b"\0\xff".to_vec()),
            Value::dict([("a", Value::from("\u{1f600}"))]),
            Value::dict([("$bytes", Value::from(1i64))]),
            Value::Dict(vec![(Value::Int(1), Value::None), ("1".into(), Value::None)]),
        ]);
        for wire in [Wire::Json, Wire::Marshal] {
            let mut bytes = Vec::new();
            wire.encode(&Plain(value.clone()), &mut bytes).unwrap();
            assert_eq!(wire.decode(&bytes).unwrap(), value, "{wire:?}");
        }
        let mut nan = Vec::new();
        Wire::Json.encode(&Plain(Value::Float(f64::NAN)), &mut nan).unwrap();
        assert_eq!(nan, br#"{"$float":"nan"}"#);
    }

    #[test]
    fn what_cannot_be_decoded_has_its_number_all_the_same() {
        for (text, head) in [
            (&br#" ["run" , 5,1,NaN]"#[..], Some(("run", 5))),
            (b"[\"answer\",-1,\"\xff\"]", Some(("answer", -1))),
            (br#"["run",5"#, None),
            (br#"["run",5.5,NaN]"#, None),
            (br#"["run","#, None),
            (b"[1,5,NaN]", None),
            (b"{}", None),
        ] {
            let head = head.map(|(operation, number)| (operation.to_owned(), number));
            assert_eq!(Wire::Json.head(text), head, "{}", String::from_utf8_lossy(text));
        }
        let message = Value::List(vec!["run".into(), 5.into(), Value::from(1.5)]);
        let mut bytes = Vec::new();
        Wire::Marshal.encode(&Plain(message), &mut bytes).unwrap();
        bytes.pop();
        assert!(Wire::Marshal.decode(&bytes).is_err());
        assert_eq!(Wire::Marshal.head(&bytes), Some(("run".to_owned(), 5)));
        for length in 0..16 {
            assert_eq!(Wire::Marshal.head(&bytes[..length]), None);
        }
    }

    #[test]
    fn a_mark_that_holds_something_else_is_an_error() {
        for text in
            [r#"{"$bytes": 1}"#, r#"{"$bytes": "?"}"#, r#"{"$float": "1"}"#, r#"{"$dict": [1]}"#]
        {
            let error = Wire::Json.decode(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("`$"), "{error}");
        }
        assert!(Wire::Json.decode(b"[1").is_err() && Wire::Marshal.decode(b"c").is_err());
    }
}
