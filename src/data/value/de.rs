//! Converts values into any type that serde can deserialise.

use serde::de::value::SeqDeserializer;
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer as _, Error as _, Expected,
    IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::fault::{Fault, shortened};
use super::marshal::MAX_DEPTH;
use super::{BIG_INT_TOKEN, BigInt, Value};
use crate::data::error::Error;

/// Converts a [`Value`] into a type that serde can deserialise.
///
/// Reads the output of [`to_value`](super::to_value). Like Python, it also accepts an int where a
/// float is wanted, bytes for a sequence of integers, and a list for a struct, in the order of the
/// fields. A bool is not accepted as an int, nor a float as an int. A [`Value`] becomes itself.
///
/// Serde cannot hold integers beyond 64 bits while it selects the variant of an untagged or
/// internally tagged enum, or fills a `#[serde(flatten)]`. Such integers are rejected there.
///
/// ```
/// use isolet::{Value, from_value};
///
/// let value = Value::dict([("a", Value::from([1, 2])), ("b", "x".into())]);
/// #[derive(serde::Deserialize)]
/// struct Pair {
///     a: Vec<f64>,
///     b: Option<String>,
/// }
/// let pair: Pair = from_value(value.clone())?;
/// assert_eq!((pair.a, pair.b.as_deref()), (vec![1.0, 2.0], Some("x")));
///
/// let error = from_value::<std::collections::HashMap<String, Vec<u8>>>(value).unwrap_err();
/// assert_eq!(error.to_string(), "invalid type: str 'x', expected a sequence, at ['b']");
/// # Ok::<(), isolet::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Value`](crate::ErrorKind::Value) if the value is not a `T`, or is nested deeper
/// than 128 levels. The message names what was found, and where.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    Ok(T::deserialize(Deserializer { value, depth: 0 })?)
}

struct Deserializer {
    value: Value,
    /// The number of enclosing lists and dicts.
    depth: usize,
}

impl Deserializer {
    fn inside(&self) -> Result<usize, Fault> {
        if self.depth >= MAX_DEPTH { Err(Fault::depth()) } else { Ok(self.depth + 1) }
    }

    /// Returns the only key of a dict and its value, or a str without a value.
    fn choice(self, expected: &dyn Expected) -> Result<Choice, Fault> {
        let depth = self.inside();
        match self.value {
            Value::Str(variant) => Ok(Choice { variant, payload: None }),
            Value::Dict(items) => {
                let length = items.len();
                let [(key, value)] = <[_; 1]>::try_from(items)
                    .map_err(|_| Fault::invalid_length(length, &"a dict of one key"))?;
                let payload = Some(Self { value, depth: depth? });
                match key {
                    Value::Str(variant) => Ok(Choice { variant, payload }),
                    key => Err(Fault::invalid_type(unexpected(&key), &"the name of a variant")),
                }
            }
            other => Err(Fault::invalid_type(unexpected(&other), expected)),
        }
    }
}

impl<'de> de::Deserializer<'de> for Deserializer {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let depth = self.inside();
        match self.value {
            Value::None => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Int(number) => visitor.visit_i64(number),
            Value::BigInt(number) => big_int(&number, visitor),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Str(text) => visitor.visit_string(text),
            Value::Bytes(bytes) => visitor.visit_byte_buf(bytes),
            Value::List(items) => {
                let length = items.len();
                let mut list = List { items: items.into_iter(), next: 0, depth: depth? };
                let result = visitor.visit_seq(&mut list)?;
                all_taken(length, list.items.len())?;
                Ok(result)
            }
            Value::Dict(items) => {
                let length = items.len();
                let mut dict = Dict { items: items.into_iter(), entry: None, depth: depth? };
                let result = visitor.visit_map(&mut dict)?;
                all_taken(length, dict.items.len())?;
                Ok(result)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.value.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::BigInt(number) if number.to_f64().is_finite() => {
                visitor.visit_f64(number.to_f64())
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Bytes(bytes) => {
                let mut bytes = SeqDeserializer::new(bytes.into_iter());
                let result = visitor.visit_seq(&mut bytes)?;
                bytes.end()?;
                Ok(result)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let choice = self.choice(&visitor)?;
        visitor.visit_enum(choice)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string bytes byte_buf unit unit_struct
        map struct identifier
    }
}

fn big_int<'de, V: Visitor<'de>>(number: &BigInt, visitor: V) -> Result<V::Value, Fault> {
    // Serde's own message for such numbers names Rust types, or omits the number.
    let fault = Fault::invalid_type(Unexpected::Other(&number.summary()), &visitor);
    let visited = if let Some(number) = number.to_i64() {
        visitor.visit_i64(number)
    } else if let Some(number) = number.to_u64() {
        visitor.visit_u64(number)
    } else if let Some(number) = number.to_i128() {
        visitor.visit_i128(number)
    } else if let Some(number) = number.to_u128() {
        visitor.visit_u128(number)
    } else {
        // Only the visitor of `Value` reads this enum as an int.
        let value = Value::Bytes(number.to_signed_le_bytes());
        visitor.visit_enum(Choice {
            variant: BIG_INT_TOKEN.to_owned(),
            payload: Some(Deserializer { value, depth: 0 }),
        })
    };
    visited.map_err(|_| fault)
}

/// Fails if a list is longer than the tuple it is read into.
fn all_taken(length: usize, left: usize) -> Result<(), Fault> {
    match length - left {
        _ if left == 0 => Ok(()),
        1 => Err(Fault::invalid_length(length, &"1 item")),
        taken => Err(Fault::invalid_length(length, &format!("{taken} items").as_str())),
    }
}

struct List {
    items: std::vec::IntoIter<Value>,
    next: i64,
    depth: usize,
}

impl<'de> SeqAccess<'de> for List {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(value) = self.items.next() else {
            return Ok(None);
        };
        let at = Value::Int(self.next);
        self.next += 1;
        let item = seed.deserialize(Deserializer { value, depth: self.depth });
        item.map(Some).map_err(|fault| fault.at(&at))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Dict {
    items: std::vec::IntoIter<(Value, Value)>,
    /// The next value, and as much of its key as a message needs.
    entry: Option<(Value, Value)>,
    depth: usize,
}

impl<'de> MapAccess<'de> for Dict {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.items.next() else {
            return Ok(None);
        };
        self.entry = Some((label(&key), value));
        seed.deserialize(Deserializer { value: key, depth: self.depth }).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let (label, value) = self.entry.take().unwrap_or_default();
        let item = seed.deserialize(Deserializer { value, depth: self.depth });
        item.map_err(|fault| fault.at(&label))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

fn label(key: &Value) -> Value {
    match key {
        Value::Str(text) => Value::Str(shortened(text)),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => key.clone(),
        _ => Value::Str(format!("<{}>", key.type_name())),
    }
}

/// The name of an enum variant, and its content.
struct Choice {
    variant: String,
    payload: Option<Deserializer>,
}

impl<'de> de::EnumAccess<'de> for Choice {
    type Error = Fault;
    type Variant = Payload;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Payload), Fault> {
        let label = Value::Str(shortened(&self.variant));
        let name = seed.deserialize(self.variant.into_deserializer())?;
        Ok((name, Payload { held: self.payload, label }))
    }
}

struct Payload {
    held: Option<Deserializer>,
    label: Value,
}

impl Payload {
    fn read<T>(
        self,
        expected: &str,
        read: impl FnOnce(Deserializer) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        match self.held {
            Some(held) => read(held).map_err(|fault| fault.at(&self.label)),
            None => Err(Fault::invalid_type(Unexpected::UnitVariant, &expected)),
        }
    }
}

impl<'de> VariantAccess<'de> for Payload {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.held {
            Some(held) => Deserialize::deserialize(held).map_err(|fault| fault.at(&self.label)),
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.read("a newtype variant", |held| seed.deserialize(held))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.read("a tuple variant", |held| held.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.read("a struct variant", |held| held.deserialize_any(visitor))
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::None => Unexpected::Unit,
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Int(number) => Unexpected::Signed(*number),
        Value::BigInt(_) => Unexpected::Other("int"),
        Value::Float(number) => Unexpected::Float(*number),
        Value::Str(text) => Unexpected::Str(text),
        Value::Bytes(bytes) => Unexpected::Bytes(bytes),
        Value::List(_) => Unexpected::Seq,
        Value::Dict(_) => Unexpected::Map,
    }
}
