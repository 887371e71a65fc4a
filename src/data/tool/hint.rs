//! Type hints of parameters, and the check of a value against them.

use std::fmt;

use super::object::ObjectHint;
use crate::data::value::Value;

/// The type of a parameter: the guest sees it as an annotation, and the host checks it.
///
/// ```
/// use isolet::TypeHint;
///
/// let hint = TypeHint::List(Box::new(TypeHint::Str)).or_none();
/// assert_eq!(hint.to_string(), "list[str] | None");
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum TypeHint {
    /// Any value; no annotation.
    #[default]
    Any,
    /// `None`.
    None,
    /// `bool`.
    Bool,
    /// `int`. A `bool` is rejected.
    Int,
    /// `float`. An `int` is accepted.
    Float,
    /// `str`.
    Str,
    /// `bytes`. Types that cross as bytes are accepted.
    Bytes,
    /// `list` with items of this type. Tuples and sets cross as lists.
    List(Box<Self>),
    /// `dict` from strings to values of this type. Dataclasses and models cross as dicts.
    Dict(Box<Self>),
    /// `dict` with known keys.
    Object(ObjectHint),
    /// One of several types.
    Union(Vec<Self>),
    /// One of these values.
    Literal(Vec<Value>),
}

impl TypeHint {
    /// Returns the type that a JSON schema describes, as far as a hint can say it: its `type`,
    /// `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `allOf`, `anyOf`,
    /// `oneOf`, `enum`, `const`, `nullable`, and `$ref` within the schema. Other references are
    /// `Any`, as is a type within itself, and what is deeper or larger than is reasonable.
    ///
    /// ```
    /// use isolet::{TypeHint, Value};
    ///
    /// let items = Value::dict([("type", "string")]);
    /// let schema = Value::dict([("type", "array".into()), ("items", items)]);
    /// assert_eq!(TypeHint::from_json_schema(&schema).to_string(), "list[str]");
    /// ```
    #[must_use]
    pub fn from_json_schema(schema: &Value) -> Self {
        super::schema::of_value(schema)
    }

    /// Returns this type or `None`.
    #[must_use]
    pub fn or_none(self) -> Self {
        match self {
            Self::Any | Self::None => self,
            Self::Union(mut members) => {
                if !members.contains(&Self::None) {
                    members.push(Self::None);
                }
                Self::Union(members)
            }
            single => Self::Union(vec![single, Self::None]),
        }
    }

    /// Checks `value`. Returns the mismatch in Python's words, as in `must be str, not int`.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.accepts(value) {
            return Ok(());
        }
        let odd = match (self, value) {
            (Self::List(item), Value::List(items)) => items
                .iter()
                .enumerate()
                .find(|(_, inner)| !item.accepts(inner))
                .map(|(at, inner)| format!(", but item {at} {}", item.mismatch(inner))),
            (Self::Dict(item), Value::Dict(items)) => items
                .iter()
                .find(|(key, inner)| key.as_str().is_none() || !item.accepts(inner))
                .map(|(key, inner)| format!(", but {key} {}", item.mismatch(inner))),
            (Self::Object(object), Value::Dict(items)) => {
                object.fault(items).map(|fault| format!(", but {fault}"))
            }
            (Self::Literal(_), Value::Str(_) | Value::Int(_) | Value::Bool(_)) => {
                return Err(format!("must be one of {}, not {value}", Values(self)));
            }
            _ => None,
        };
        let odd = odd.unwrap_or_else(|| format!(", not {}", value.type_name()));
        Err(format!("must be {self}{odd}"))
    }

    /// Says what an item is that this type does not accept: what is wrong with a dict, or its type.
    fn mismatch(&self, item: &Value) -> String {
        match (self, item) {
            (Self::Object(_), Value::Dict(_)) => {
                self.check(item).err().unwrap_or_else(|| format!("is {}", item.type_name()))
            }
            _ => format!("is {}", item.type_name()),
        }
    }

    pub(super) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::None, Value::None)
            | (Self::Bool, Value::Bool(_))
            | (Self::Int, Value::Int(_) | Value::BigInt(_))
            | (Self::Float, Value::Float(_) | Value::Int(_) | Value::BigInt(_))
            | (Self::Str, Value::Str(_))
            | (Self::Bytes, Value::Bytes(_)) => true,
            (Self::List(hint), Value::List(items)) => items.iter().all(|item| hint.accepts(item)),
            (Self::Dict(hint), Value::Dict(items)) => {
                items.iter().all(|(key, item)| key.as_str().is_some() && hint.accepts(item))
            }
            (Self::Object(object), Value::Dict(items)) => object.accepts(items),
            (Self::Union(members), value) => members.iter().any(|member| member.accepts(value)),
            (Self::Literal(values), value) => values.contains(value),
            _ => false,
        }
    }

    /// Returns the hint as a tree for the guest's glue code. Each node starts with its kind.
    pub(crate) fn to_value(&self) -> Value {
        let (kind, members): (&str, Vec<Value>) = match self {
            Self::Any => ("any", vec![]),
            Self::None => ("None", vec![]),
            Self::Bool => ("bool", vec![]),
            Self::Int => ("int", vec![]),
            Self::Float => ("float", vec![]),
            Self::Str => ("str", vec![]),
            Self::Bytes => ("bytes", vec![]),
            Self::List(item) => ("list", vec![item.to_value()]),
            Self::Dict(item) => ("dict", vec![item.to_value()]),
            Self::Object(object) => ("object", object.to_values()),
            Self::Union(members) => ("union", members.iter().map(Self::to_value).collect()),
            Self::Literal(values) => ("literal", values.clone()),
        };
        let mut tree = vec![Value::from(kind)];
        tree.extend(members);
        Value::List(tree)
    }
}

impl fmt::Display for TypeHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("Any"),
            Self::None => f.write_str("None"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Str => f.write_str("str"),
            Self::Bytes => f.write_str("bytes"),
            Self::List(item) if **item == Self::Any => f.write_str("list"),
            Self::List(item) => write!(f, "list[{item}]"),
            Self::Dict(item) if **item == Self::Any => f.write_str("dict"),
            Self::Dict(item) => write!(f, "dict[str, {item}]"),
            Self::Object(object) => f.write_str(object.shown()),
            Self::Union(members) => {
                for (at, member) in members.iter().enumerate() {
                    write!(f, "{}{member}", if at > 0 { " | " } else { "" })?;
                }
                Ok(())
            }
            Self::Literal(_) => write!(f, "Literal[{}]", Values(self)),
        }
    }
}

/// Prints the values of a literal, separated by commas.
struct Values<'a>(&'a TypeHint);

impl fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TypeHint::Literal(values) = self.0 else {
            return Ok(());
        };
        for (at, value) in values.iter().enumerate() {
            write!(f, "{}{value}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_pythons_words() {
        let list = TypeHint::List(Box::new(TypeHint::Str));
        let wrong = |hint: &TypeHint, value: Value| hint.check(&value).unwrap_err();
        assert_eq!(wrong(&TypeHint::Str, Value::Int(3)), "must be str, not int");
        assert_eq!(wrong(&TypeHint::Int, Value::Bool(true)), "must be int, not bool");
        assert_eq!(wrong(&list, Value::from("x")), "must be list[str], not str");
        assert_eq!(
            wrong(&list, Value::List(vec!["a".into(), Value::Int(1)])),
            "must be list[str], but item 1 is int"
        );
        let optional = TypeHint::Int.or_none();
        assert_eq!(wrong(&optional, Value::from("x")), "must be int | None, not str");
        assert!(optional.check(&Value::None).is_ok());
        let level = TypeHint::Literal(vec!["low".into(), "high".into()]);
        assert_eq!(wrong(&level, Value::from("mid")), "must be one of 'low', 'high', not 'mid'");
    }
}
