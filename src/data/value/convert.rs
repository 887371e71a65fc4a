//! Conversions from Rust's own types to values.

use std::collections::{BTreeMap, HashMap};

use super::{BigInt, Value};

/// A number that fits becomes an [`Int`](Value::Int).
impl From<BigInt> for Value {
    fn from(number: BigInt) -> Self {
        number.to_i64().map_or(Self::BigInt(number), Self::Int)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

// No `u8`: a `Vec<u8>` would become a list of ints where bytes are meant.
impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Value {
            fn from(number: $integer) -> Self {
                i64::try_from(number).map_or_else(|_| Self::BigInt(number.into()), Self::Int)
            }
        }
    )*};
}
from_integers!(u64 usize i128 u128);

impl From<f32> for Value {
    fn from(number: f32) -> Self {
        Self::Float(number.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Str(text.clone())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Self>, const N: usize> From<[T; N]> for Value {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<K: Into<Self>, T: Into<Self>> From<BTreeMap<K, T>> for Value {
    fn from(items: BTreeMap<K, T>) -> Self {
        Self::dict(items)
    }
}

/// The entries are in the map's order, which is unspecified.
impl<K: Into<Self>, T: Into<Self>, S> From<HashMap<K, T, S>> for Value {
    fn from(items: HashMap<K, T, S>) -> Self {
        Self::dict(items)
    }
}

/// Collects a [`List`](Value::List).
impl<T: Into<Self>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_as_small_as_they_can_be() {
        assert_eq!(Value::from(1i32), Value::Int(1));
        assert_eq!(Value::from(1u128), Value::Int(1));
        assert_eq!(Value::from(i128::from(i64::MIN)), Value::Int(i64::MIN));
        assert_eq!(Value::from(BigInt::from(-1i128)), Value::Int(-1));
        assert_eq!(Value::from(u64::MAX), Value::BigInt(i128::from(u64::MAX).into()));
        assert_eq!(Value::from(i128::MIN), Value::BigInt(i128::MIN.into()));
        assert_eq!(Value::from(u128::MAX).to_string(), u128::MAX.to_string());
    }

    #[test]
    fn containers_are_made_of_what_converts() {
        let list = Value::List(vec![Value::Int(1), Value::None]);
        assert_eq!(Value::from([Some(1), None]), list);
        assert_eq!([Some(1), None].into_iter().collect::<Value>(), list);
        let dict = Value::Dict(vec![("a".into(), list.clone())]);
        assert_eq!(Value::dict([("a", vec![Some(1), None])]), dict);
        assert_eq!(Value::from(BTreeMap::from([("a", list.clone())])), dict);
        assert_eq!(Value::from(HashMap::from([(String::from("a"), list)])), dict);
        assert_eq!(Value::bytes(*b"ab"), Value::Bytes(vec![97, 98]));
    }
}
