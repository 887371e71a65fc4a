//! Values in marshal's format, as the guest's bytes are read.

use super::memory::measured;
use crate::data::value::marshal::{self, MAX_DEPTH};
use crate::data::value::{Value, check_bounds, encoded_len, from_value, to_value};

/// How many times the length of its encoding a value may take, as `docs/reference/limits.md` says.
const KEPT_FACTOR: usize = 32;
/// The same while it is decoded: a list that grows is copied to twice its room.
const PEAK_FACTOR: usize = 3 * KEPT_FACTOR;
/// What lists of a false length may have reserved when that is noticed: 1024 items in each level.
const RESERVED: usize = (MAX_DEPTH + 1) * 1024 * KEPT_FACTOR;

/// Decodes bytes. What they are is one value of bounded depth and size, which encodes to no more
/// bytes and decodes to the same again, and which crosses to the guest and to serde's types if it
/// is within the limits.
pub fn value(data: &[u8]) {
    let (decoded, used) = measured(|| marshal::decode(data));
    assert!(used.peak <= PEAK_FACTOR * data.len() + RESERVED, "{} bytes took {used:?}", data.len());
    keeps_within(data);
    let Ok(value) = decoded else {
        assert_eq!(used.kept, 0, "what is no value was kept");
        return;
    };
    assert!(used.kept <= KEPT_FACTOR * data.len(), "{} bytes took {used:?}", data.len());
    let levels = levels(&value);
    assert!(levels <= MAX_DEPTH, "{levels} levels");
    is_stable(&value, data.len());
    has_bounds(&value, levels);
    converts(&value);
}

/// It takes no more memory than it may, and is refused if it would.
fn keeps_within(data: &[u8]) {
    let limit = data.len();
    let (decoded, used) = measured(|| marshal::decode_within(data, limit as u64));
    // A dict that grows is copied to twice its room.
    assert!(used.peak <= 3 * limit + RESERVED, "{limit} bytes may be taken, {used:?} were");
    if decoded.is_ok() {
        assert!(used.kept <= limit + 64, "{limit} bytes may be taken, {used:?} were");
    }
}

/// What it encodes to is the one encoding of the value.
fn is_stable(value: &Value, given: usize) {
    let bytes = encoded(value);
    assert!(bytes.len() <= given, "{given} bytes became {}", bytes.len());
    assert_eq!(encoded_len(value), bytes.len() as u64);
    let again = marshal::decode(&bytes);
    assert!(again.as_ref().is_ok_and(|again| same(again, value)), "{value} became {again:?}");
    let shown = value.to_string();
    assert!(shown.len() <= 8 * (given + 1), "{given} bytes are shown as {}", shown.len());
}

/// It may cross to the guest exactly up to its own length.
fn has_bounds(value: &Value, levels: usize) {
    let length = encoded_len(value);
    assert_eq!(check_bounds(value, length).is_ok(), levels <= 100);
    assert!(check_bounds(value, length - 1).is_err());
}

/// It passes through serde unchanged, and to JSON if it can.
fn converts(value: &Value) {
    let written = to_value(value);
    assert!(written.as_ref().is_ok_and(|written| same(written, value)), "{written:?}");
    let read = from_value::<Value>(value.clone());
    assert!(read.as_ref().is_ok_and(|read| same(read, value)), "{read:?}");
    if let Ok(json) = from_value::<serde_json::Value>(value.clone()) {
        assert!(to_value(&json).is_ok());
    }
}

/// How deep lists and dicts are in each other.
fn levels(value: &Value) -> usize {
    let deepest =
        |items: &mut dyn Iterator<Item = &Value>| 1 + items.map(levels).max().unwrap_or(0);
    match value {
        Value::List(items) => deepest(&mut items.iter()),
        Value::Dict(items) => deepest(&mut items.iter().flat_map(|(key, item)| [key, item])),
        _ => 0,
    }
}

pub(super) fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    marshal::encode(value, &mut bytes);
    bytes
}

/// Whether two values are the same, NaN like NaN and 0.0 unlike -0.0.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Dict(one), Value::Dict(other)) => {
            let pair = |(one, other): (&(Value, Value), &(Value, Value))| {
                same(&one.0, &other.0) && same(&one.1, &other.1)
            };
            one.len() == other.len() && one.iter().zip(other).all(pair)
        }
        _ => one == other,
    }
}
