//! Deserialises values from any self-describing serde format.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::fault::Fault;
use super::marshal::MAX_DEPTH;
use super::{BIG_INT_TOKEN, BigInt, Value};

/// The maximum number of items for which memory is reserved because a format announces them.
const MAX_RESERVED: usize = 1024;

/// Null becomes `None`, integers of any width become ints, and keys may be any scalar.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Inside(0).deserialize(deserializer)
    }
}

/// Deserialises a value at this nesting depth, because not every format limits the depth.
#[derive(Clone, Copy)]
struct Inside(usize);

impl Inside {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.0 >= MAX_DEPTH {
            return Err(E::custom(Fault::depth()));
        }
        Ok(Self(self.0 + 1))
    }
}

impl<'de> DeserializeSeed<'de> for Inside {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Inside {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Python value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        self.deeper()?.deserialize(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        self.deeper()?.deserialize(inner)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i128<E>(self, number: i128) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u128<E>(self, number: u128) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::bytes(bytes))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Bytes(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut items = Vec::with_capacity(reserved(list.size_hint()));
        while let Some(item) = list.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut items = Vec::with_capacity(reserved(map.size_hint()));
        while let Some(key) = map.next_key_seed(inside)? {
            if !key.is_scalar() {
                return Err(A::Error::custom(Fault::key(&key)));
            }
            items.push((key, map.next_value_seed(inside)?));
        }
        Ok(Value::Dict(items))
    }

    /// Reads an int beyond serde's types, from [`from_value`](super::from_value).
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (name, payload) = data.variant::<String>()?;
        if name != BIG_INT_TOKEN {
            return Err(A::Error::invalid_type(Unexpected::Enum, &self));
        }
        let bytes: Vec<u8> = payload.newtype_variant()?;
        Ok(BigInt::from_signed_le_bytes(&bytes).into())
    }
}

fn reserved(claimed: Option<usize>) -> usize {
    claimed.unwrap_or_default().min(MAX_RESERVED)
}
