//! What crosses between host and guest: a tree of plain Python values.

mod bigint;
pub(crate) mod marshal;

pub use bigint::BigInt;

/// A Python value on the host's side: scalars, lists and dicts, nothing with behaviour.
///
/// Tuples and sets arrive as [`List`](Value::List); dataclasses, named tuples' fields aside, as
/// [`Dict`](Value::Dict). A value that has no such form does not cross; see
/// [`Execution::value_error`](crate::Execution::value_error).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An `int` that fits into 64 bits.
    Int(i64),
    /// An `int` that does not fit into 64 bits.
    BigInt(BigInt),
    /// A `float`, including the infinities and NaN.
    Float(f64),
    /// A `str`. Lone surrogates cannot cross.
    Str(String),
    /// A `bytes`, `bytearray` or `memoryview`.
    Bytes(Vec<u8>),
    /// A `list`, `tuple`, `set` or `frozenset`, in its own order.
    List(Vec<Self>),
    /// A `dict` in insertion order. Keys may be any scalar.
    Dict(Vec<(Self, Self)>),
}

impl Value {
    /// Returns the text of a `str`.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an `int` that fits into 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a `float`, or an `int` as the nearest one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is promised")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// Returns a `bool`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
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

    /// Returns what a dict holds under a string key.
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

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
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
        Self::List(items.into_iter().map(Into::into).collect())
    }
}
