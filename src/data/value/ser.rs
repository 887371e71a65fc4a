//! Serialises values to any serde format, and converts any serialisable type into a value.

use serde::ser::{self, Serialize, SerializeMap, SerializeSeq};

use super::fault::Fault;
use super::marshal::MAX_DEPTH;
use super::{BIG_INT_TOKEN, BigInt, Value};
use crate::data::error::Error;

/// Converts any type that serde can serialise into a [`Value`].
///
/// `()`, `None` and unit structs become `None`. Structs become dicts in the order of their fields,
/// sequences and tuples become lists, and a `char` becomes a str. A unit variant becomes a str of
/// its name, any other variant a dict from its name to its content. A type that uses
/// `serialize_bytes` becomes bytes; a `Vec<u8>` does not use it and becomes a list. A [`Value`]
/// becomes itself.
///
/// ```
/// use isolet::{Value, to_value};
///
/// let value = to_value(&("a", [Some(1.5), None]))?;
/// assert_eq!(value.to_string(), "['a', [1.5, None]]");
/// # Ok::<(), isolet::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Value`](crate::ErrorKind::Value) if a key of a map is not a scalar, the value is
/// nested deeper than 128 levels, or the type's own serialisation fails.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, Error> {
    Ok(value.serialize(Serializer { depth: 0 })?)
}

/// Serialises as Python would: `None` is a unit, bytes are bytes, keys keep their types.
///
/// Serde has no type for an `int` beyond 128 bits. It is written as a string of its decimal digits,
/// or beyond 4300 digits of its hexadecimal digits after `0x`. Such a string is read back as a
/// `str`. With [`to_value`] ints stay ints.
impl Serialize for Value {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::BigInt(number) => serialize_big_int(number, serializer),
            Self::Float(number) => serializer.serialize_f64(*number),
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
                    map.serialize_entry(key, item)?;
                }
                map.end()
            }
        }
    }
}

/// Uses the narrowest type, because not every format has 128-bit integers.
fn serialize_big_int<S: ser::Serializer>(number: &BigInt, to: S) -> Result<S::Ok, S::Error> {
    if let Some(number) = number.to_i64() {
        to.serialize_i64(number)
    } else if let Some(number) = number.to_u64() {
        to.serialize_u64(number)
    } else if let Some(number) = number.to_i128() {
        to.serialize_i128(number)
    } else if let Some(number) = number.to_u128() {
        to.serialize_u128(number)
    } else {
        to.serialize_newtype_struct(BIG_INT_TOKEN, &number.to_literal())
    }
}

#[derive(Clone, Copy)]
struct Serializer {
    /// The number of enclosing lists and dicts.
    depth: usize,
}

impl Serializer {
    fn inside(self) -> Result<Self, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::depth());
        }
        Ok(Self { depth: self.depth + 1 })
    }

    fn list(self, variant: Option<&'static str>, length: usize) -> Result<List, Fault> {
        let around = if variant.is_some() { self.inside()? } else { self };
        Ok(List { variant, items: Vec::with_capacity(length), inside: around.inside()? })
    }

    fn dict(self, variant: Option<&'static str>, length: usize) -> Result<Dict, Fault> {
        let around = if variant.is_some() { self.inside()? } else { self };
        let items = Vec::with_capacity(length);
        Ok(Dict { variant, items, key: Value::None, inside: around.inside()? })
    }
}

impl ser::Serializer for Serializer {
    type Ok = Value;
    type Error = Fault;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = List;
    type SerializeMap = Dict;
    type SerializeStruct = Dict;
    type SerializeStructVariant = Dict;

    fn serialize_bool(self, flag: bool) -> Result<Value, Fault> {
        Ok(flag.into())
    }

    fn serialize_i8(self, number: i8) -> Result<Value, Fault> {
        Ok(Value::Int(number.into()))
    }

    fn serialize_i16(self, number: i16) -> Result<Value, Fault> {
        Ok(Value::Int(number.into()))
    }

    fn serialize_i32(self, number: i32) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_i64(self, number: i64) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_i128(self, number: i128) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_u8(self, number: u8) -> Result<Value, Fault> {
        Ok(Value::Int(number.into()))
    }

    fn serialize_u16(self, number: u16) -> Result<Value, Fault> {
        Ok(Value::Int(number.into()))
    }

    fn serialize_u32(self, number: u32) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_u64(self, number: u64) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_u128(self, number: u128) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_f32(self, number: f32) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<Value, Fault> {
        Ok(number.into())
    }

    fn serialize_char(self, character: char) -> Result<Value, Fault> {
        Ok(Value::Str(character.into()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Fault> {
        Ok(text.into())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Fault> {
        Ok(Value::bytes(bytes))
    }

    fn serialize_none(self) -> Result<Value, Fault> {
        Ok(Value::None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Fault> {
        Ok(Value::None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Fault> {
        Ok(Value::None)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Fault> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, Fault> {
        let value = value.serialize(self)?;
        let big = (name == BIG_INT_TOKEN).then(|| BigInt::from_literal(value.as_str()?)).flatten();
        Ok(big.map_or(value, Value::from))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Fault> {
        Ok(Value::dict([(variant, value.serialize(self.inside()?)?)]))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<List, Fault> {
        self.list(None, length.unwrap_or_default())
    }

    fn serialize_tuple(self, length: usize) -> Result<List, Fault> {
        self.list(None, length)
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<List, Fault> {
        self.list(None, length)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<List, Fault> {
        self.list(Some(variant), length)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Dict, Fault> {
        self.dict(None, length.unwrap_or_default())
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Dict, Fault> {
        self.dict(None, length)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Dict, Fault> {
        self.dict(Some(variant), length)
    }
}

/// A list that is being filled, and its enum variant.
struct List {
    variant: Option<&'static str>,
    items: Vec<Value>,
    inside: Serializer,
}

impl List {
    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Fault> {
        self.items.push(item.serialize(self.inside)?);
        Ok(())
    }

    fn done(self) -> Value {
        named(self.variant, Value::List(self.items))
    }
}

/// A dict that is being filled, and its enum variant.
struct Dict {
    variant: Option<&'static str>,
    items: Vec<(Value, Value)>,
    /// The key of the next value.
    key: Value,
    inside: Serializer,
}

impl Dict {
    fn push<T: Serialize + ?Sized>(&mut self, key: Value, item: &T) -> Result<(), Fault> {
        self.items.push((key, item.serialize(self.inside)?));
        Ok(())
    }

    fn done(self) -> Value {
        named(self.variant, Value::Dict(self.items))
    }
}

fn named(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::dict([(name, value)]),
        None => value,
    }
}

/// Serde has a trait for each kind of sequence; all of them become lists.
macro_rules! impl_list {
    ($($kind:ident: $push:ident)*) => {$(
        impl ser::$kind for List {
            type Ok = Value;
            type Error = Fault;

            fn $push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Fault> {
                self.push(item)
            }

            fn end(self) -> Result<Value, Fault> {
                Ok(self.done())
            }
        }
    )*};
}
impl_list! {
    SerializeSeq: serialize_element
    SerializeTuple: serialize_element
    SerializeTupleStruct: serialize_field
    SerializeTupleVariant: serialize_field
}

macro_rules! impl_dict {
    ($($kind:ident)*) => {$(
        impl ser::$kind for Dict {
            type Ok = Value;
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                item: &T,
            ) -> Result<(), Fault> {
                self.push(name.into(), item)
            }

            fn end(self) -> Result<Value, Fault> {
                Ok(self.done())
            }
        }
    )*};
}
impl_dict!(SerializeStruct SerializeStructVariant);

impl SerializeMap for Dict {
    type Ok = Value;
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key = key.serialize(self.inside)?;
        if self.key.is_scalar() { Ok(()) } else { Err(Fault::key(&self.key)) }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Fault> {
        let key = std::mem::take(&mut self.key);
        self.push(key, item)
    }

    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}
