//! Values: trees of plain Python data that cross between host and guest.

#[cfg(test)]
pub(crate) mod arbitrary;
mod bigint;
mod bounds;
mod convert;
mod de;
mod display;
mod fault;
pub(crate) mod marshal;
pub mod plain;
mod ser;
#[cfg(test)]
mod tests;
mod visitor;

pub use bigint::{BigInt, Sign};
pub use bounds::encoded_len;
pub(crate) use bounds::{MAX_CROSSING_DEPTH, check_bounds, takes_more_steps};
pub use de::from_value;
pub use ser::to_value;

use crate::data::error::{Error, ErrorKind};

/// The name under which an int beyond serde's types passes between [`Value`]s.
const BIG_INT_TOKEN: &str = "$isolet::BigInt";

/// A Python value on the host: scalars, lists and dicts, without behaviour.
///
/// Tuples and sets arrive as [`List`](Value::List), as do named tuples, without their field names.
/// Dataclasses arrive as [`Dict`](Value::Dict). A value without such a form does not cross; see
/// [`Execution::value_error`](crate::Execution::value_error).
///
/// `From` makes a value from Rust's plain types and [`to_value`] from other types; [`from_value`]
/// converts it back. Any self-describing serde format can write and read it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `None`.
    #[default]
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An `int` that fits into 64 bits.
    Int(i64),
    /// An `int` that does not fit into 64 bits. `Value::from` chooses the right variant.
    BigInt(BigInt),
    /// A `float`, including the infinities and NaN.
    Float(f64),
    /// A `str`. Lone surrogates cannot cross.
    Str(String),
    /// A `bytes`, `bytearray` or `memoryview`.
    Bytes(Vec<u8>),
    /// A `list`, `tuple`, `set` or `frozenset`, in its iteration order.
    List(Vec<Self>),
    /// A `dict` in insertion order. Keys may be any scalar.
    Dict(Vec<(Self, Self)>),
}

impl Value {
    /// Makes a `bytes`.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// Makes a `dict` of keys and values, in their order. Keys must be scalars.
    #[must_use]
    pub fn dict<K: Into<Self>, T: Into<Self>>(items: impl IntoIterator<Item = (K, T)>) -> Self {
        Self::Dict(items.into_iter().map(|(key, item)| (key.into(), item.into())).collect())
    }

    /// Appends the value in Python's `marshal` format, version 2, as `marshal.dumps(value, 2)`
    /// writes it. Only plain data: no code objects, no references.
    ///
    /// ```
    /// let mut bytes = Vec::new();
    /// isolet::Value::from("hi").write_marshal(&mut bytes);
    /// assert_eq!(bytes, b"u\x02\0\0\0hi");
    /// ```
    pub fn write_marshal(&self, to: &mut Vec<u8>) {
        marshal::encode(self, to);
    }

    /// Reads exactly one value in Python's `marshal` format. It may take at most `max_bytes` bytes
    /// of memory.
    ///
    /// The bytes may come from anybody: what is no plain data is an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) with the reason.
    pub fn from_marshal(bytes: &[u8], max_bytes: u64) -> Result<Self, Error> {
        marshal::decode_within(bytes, max_bytes).map_err(|error| {
            Error::new(ErrorKind::Value, format!("this is no value in marshal's format: {error}"))
        })
    }

    /// Returns Python's name of the type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::BigInt(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Dict(_) => "dict",
        }
    }

    /// Returns `true` if the value is `None`.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    fn is_scalar(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Dict(_))
    }

    /// Returns the text of a `str`.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if the value is an `int` that fits into 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number of a `float`, or the nearest float to an `int`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is promised")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Int(number) => Some(*number as f64),
            Self::BigInt(number) => Some(number.to_f64()),
            _ => None,
        }
    }

    /// Returns the value of a `bool`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Returns the bytes of a `bytes`.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the items of a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the keys and values of a dict.
    #[must_use]
    pub fn as_dict(&self) -> Option<&[(Self, Self)]> {
        match self {
            Self::Dict(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value under a string key of a dict.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Dict(items) => {
                items.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}
