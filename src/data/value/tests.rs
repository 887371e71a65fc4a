//! Tests of the conversions between values, bytes, Rust types and JSON.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::arbitrary::{int, value};
use super::marshal::{self, MAX_DEPTH};
use super::{BigInt, Sign, Value, check_bounds, encoded_len, from_value, to_value};
use crate::data::error::ErrorKind;

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    marshal::encode(value, &mut bytes);
    bytes
}

/// Compares values. NaN equals itself, and -0.0 differs from 0.0.
fn same(one: &Value, other: &Value) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

proptest! {
    #[test]
    fn encoding_and_decoding_gives_the_same_value(value in value()) {
        let bytes = encoded(&value);
        prop_assert_eq!(encoded_len(&value), bytes.len() as u64);
        let decoded = marshal::decode(&bytes).unwrap();
        prop_assert!(same(&decoded, &value), "{decoded:?}");
        prop_assert_eq!(encoded(&decoded), bytes);
    }

    #[test]
    fn a_value_crosses_if_it_is_no_longer_than_the_limit(value in value()) {
        let bytes = encoded_len(&value);
        prop_assert_eq!(check_bounds(&value, bytes), Ok(()));
        prop_assert!(check_bounds(&value, bytes - 1).is_err());
    }

    #[test]
    fn a_damaged_value_is_another_one_or_an_error(
        value in value(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encoded(&value);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = marshal::decode(&bytes) {
            prop_assert!(same(&marshal::decode(&encoded(&value)).unwrap(), &value));
        }
    }

    #[test]
    fn a_value_becomes_itself(value in value()) {
        let written = to_value(&value).unwrap();
        prop_assert!(same(&written, &value), "{written:?}");
        let read: Value = from_value(value.clone()).unwrap();
        prop_assert!(same(&read, &value), "{read:?}");
    }

    #[test]
    fn an_int_that_fits_is_one_of_64_bits(value in int()) {
        let decoded = marshal::decode(&encoded(&value)).unwrap();
        let wide = match decoded {
            Value::Int(_) => None,
            Value::BigInt(number) => Some(number),
            other => panic!("{other:?} is no int"),
        };
        prop_assert!(wide.is_none_or(|number| number.to_i64().is_none()));
    }
}

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(thing: &T) -> Value {
    let value = to_value(thing).unwrap();
    assert_eq!(&from_value::<T>(value.clone()).unwrap(), thing, "{value}");
    value
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Nothing,
    Round(f32),
    Pair(i8, char),
    Boxed { side: u64, name: Option<String> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Empty,
    Full { of: Vec<Shape> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Loose {
    Number(i64),
    Text(String),
    Many(Vec<Self>),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapper(String);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    wide: (i128, u128, u64),
    unit: (Unit, ()),
    wrapper: Option<Wrapper>,
    by_name: HashMap<String, Vec<Option<bool>>>,
    by_number: BTreeMap<i64, Tagged>,
    shapes: Vec<Shape>,
    loose: Loose,
    any: Value,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[test]
fn what_serde_derives_survives_the_round_trip() {
    let shapes = || {
        vec![
            Shape::Nothing,
            Shape::Round(0.1),
            Shape::Pair(-8, 'é'),
            Shape::Boxed { side: u64::MAX, name: None },
        ]
    };
    let record = Record {
        wide: (i128::MIN, u128::MAX, u64::MAX),
        unit: (Unit, ()),
        wrapper: Some(Wrapper("w".into())),
        by_name: HashMap::from([("a".into(), vec![Some(true), None])]),
        by_number: BTreeMap::from([(-1, Tagged::Empty)]),
        shapes: shapes(),
        loose: Loose::Many(vec![Loose::Number(1), Loose::Text("t".into())]),
        any: Value::dict([(Value::Bytes(vec![255]), Value::Float(-0.0))]),
        rest: BTreeMap::from([("more".into(), Value::dict([(1, Value::bytes(*b"b"))]))]),
    };
    let value = round_trip(&record);
    let names = value.as_dict().unwrap().iter().map(|(name, _)| name.as_str().unwrap());
    assert_eq!(names.take(3).collect::<Vec<_>>(), ["wide", "unit", "wrapper"]);
    round_trip(&Tagged::Full { of: vec![Shape::Nothing, Shape::Pair(1, 'x')] });
    assert_eq!(
        round_trip(&shapes()).to_string(),
        "['Nothing', {'Round': 0.10000000149011612}, {'Pair': [-8, 'é']}, \
            {'Boxed': {'side': 18446744073709551615, 'name': None}}]"
    );
}

#[test]
fn values_are_read_as_python_would() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: f64,
        #[serde(default)]
        y: Option<f32>,
    }
    let read = |value: Value| from_value::<Point>(value).unwrap();
    assert_eq!(read(Value::dict([("x", 2)])), Point { x: 2.0, y: None });
    assert_eq!(read(Value::from([1, 2])), Point { x: 1.0, y: Some(2.0) });
    assert_eq!(read(Value::dict([("x", 1i128 << 100)])), Point { x: 2f64.powi(100), y: None });
    assert_eq!(from_value::<Vec<u8>>(Value::bytes(*b"ab")).unwrap(), b"ab");
    assert_eq!(from_value::<Vec<u8>>(Value::from([97, 98])).unwrap(), b"ab");
    assert_eq!(from_value::<(u8, u8)>(Value::bytes(*b"ab")).unwrap(), (97, 98));
    assert_eq!(to_value(&vec![97u8]).unwrap(), Value::from([97]));
    assert_eq!(
        from_value::<Shape>(Value::dict([("Nothing", Value::None)])).unwrap(),
        Shape::Nothing
    );
    assert_eq!(from_value::<i64>(Value::BigInt(BigInt::from(5u64))).unwrap(), 5);
}

fn refused<T: DeserializeOwned + Debug>(value: impl Into<Value>) -> String {
    let error = from_value::<T>(value.into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    error.to_string()
}

#[test]
fn what_does_not_fit_is_named_as_in_python() {
    assert_eq!(refused::<u32>("x"), "invalid type: str 'x', expected u32");
    assert_eq!(refused::<u32>(true), "invalid type: bool True, expected u32");
    assert_eq!(refused::<u32>(-1), "invalid value: int -1, expected u32");
    assert_eq!(refused::<u32>(1.0), "invalid type: float 1.0, expected u32");
    assert_eq!(refused::<f64>(false), "invalid type: bool False, expected f64");
    assert_eq!(refused::<String>(Value::None), "invalid type: None, expected a string");
    assert_eq!(refused::<u64>(1i128 << 64), "invalid type: int 18446744073709551616, expected u64");
    let huge = || BigInt::from_le_bytes(Sign::NonNegative, &[1; 300]);
    assert_eq!(refused::<i128>(huge()), "invalid type: int of 2393 bits, expected i128");
    assert_eq!(refused::<f64>(huge()), "invalid type: int of 2393 bits, expected f64");
    assert_eq!(
        refused::<serde_json::Value>(huge()),
        "invalid type: int of 2393 bits, expected any valid JSON value"
    );
    assert_eq!(
        refused::<bool>("x".repeat(1000)),
        format!("invalid type: str '{}...', expected a boolean", "x".repeat(40))
    );
    assert_eq!(refused::<(u8, u8)>(Value::from([1, 2, 3])), "invalid length 3, expected 2 items");
    assert_eq!(
        refused::<Vec<HashMap<String, Shape>>>(Value::from([Value::dict([(
            "a",
            Value::dict([("Pair", [1, 2])])
        )])])),
        "invalid type: int 2, expected a character, at [0]['a']['Pair'][1]"
    );
    assert_eq!(refused::<Shape>("Round"), "invalid type: unit variant, expected a newtype variant");
    assert_eq!(
        refused::<Shape>(Value::dict([("a", 1), ("b", 2)])),
        "invalid length 2, expected a dict of one key"
    );
    assert_eq!(
        refused::<Loose>(1u128 << 64),
        "invalid type: int 18446744073709551616, expected any value"
    );
    assert_eq!(refused::<Loose>(huge()), "invalid type: int of 2393 bits, expected any value");
    assert_eq!(refused::<Shape>(1), "invalid type: int 1, expected enum Shape");
}

#[test]
fn a_key_that_is_no_scalar_is_refused() {
    let error = to_value(&BTreeMap::from([(vec![1], 2)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(error.to_string(), "a dict key has to be a scalar, not a list");
    let keys = BTreeMap::from([(Some(false), 1), (None, 2)]);
    assert_eq!(to_value(&keys).unwrap().to_string(), "{None: 2, False: 1}");
}

#[test]
fn deep_nesting_is_an_error_in_every_conversion() {
    /// Lists nested to this depth.
    struct Nest(usize);

    impl Serialize for Nest {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let inner = self.0.checked_sub(1).map(Nest);
            inner.iter().collect::<Vec<_>>().serialize(serializer)
        }
    }

    let message = "a value nested deeper than 128 levels cannot be converted";
    assert_eq!(to_value(&Nest(100_000)).unwrap_err().to_string(), message);
    let deepest = to_value(&Nest(MAX_DEPTH - 1)).unwrap();
    assert!(to_value(&Nest(MAX_DEPTH)).is_err());
    assert_eq!(from_value::<Value>(deepest.clone()).unwrap(), deepest);
    let error = from_value::<Value>(Value::List(vec![deepest.clone()])).unwrap_err();
    assert!(error.to_string().starts_with(message), "{error}");
    assert!(error.to_string().ends_with("[0][0][..."), "{error}");
    let error = from_value::<Loose>(Value::List(vec![deepest])).unwrap_err();
    assert!(error.to_string().starts_with(message), "{error}");
    let mut json = json!(1);
    for _ in 0..1000 {
        json = json!([json]);
    }
    assert_eq!(to_value(&json).unwrap_err().to_string(), message);
    assert!(serde_json::from_value::<Value>(json).unwrap_err().to_string().contains(message));
}

#[test]
fn json_is_read_and_written() {
    let json = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x"],"b":{}}"#;
    let value: Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        value.to_string(),
        "{'a': [None, True, -1, 18446744073709551615, 1.5, 'x'], 'b': {}}"
    );
    assert_eq!(serde_json::to_string(&value).unwrap(), json);
    assert_eq!(to_value(&serde_json::from_str::<serde_json::Value>(json).unwrap()).unwrap(), value);
    let written = |value: Value| serde_json::to_string(&value).unwrap();
    assert_eq!(written(Value::dict([(1, u128::MAX)])), format!("{{\"1\":{}}}", u128::MAX));
    let huge =
        BigInt::from_le_bytes(Sign::Negative, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(written(huge.into()), "\"-340282366920938463463374607431768211456\"");
    assert!(serde_json::to_string(&Value::dict([(Value::None, 1)])).is_err());
}

#[test]
fn an_unknown_field_is_named_with_the_nearest_known_one() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        _timeout: Option<f64>,
        _stdin: Option<String>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let said = |key: &str| {
        let value = Value::dict([(key, 1)]);
        from_value::<Known>(value).unwrap_err().to_string()
    };
    assert_eq!(said("_timout"), "unknown field `_timout` (did you mean `_timeout`?)");
    assert_eq!(said("x"), "unknown field `x`, expected one of `_timeout`, `_stdin`");
    assert!(said(&"_stdin".repeat(100)).len() < 120);
    let error = from_value::<Nothing>(Value::dict([("x", 1)])).unwrap_err();
    assert_eq!(error.to_string(), "unknown field `x`, there are no fields");
}
