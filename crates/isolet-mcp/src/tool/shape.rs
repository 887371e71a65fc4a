//! The observed shape of the results of a tool without an output schema: types and the names of
//! fields, no values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use isolet::Value;
use isolet::internals::is_identifier;

/// The maximum depth of a shape.
const MAX_DEPTH: usize = 4;

/// The maximum number of fields of an object. One with more is a dict with arbitrary keys.
const MAX_FIELDS: usize = 40;

/// The maximum number of nodes of a shape.
const MAX_NODES: usize = 200;

/// The most items of a list that are inspected.
const MAX_ITEMS: usize = 20;

/// The maximum number of types that a place has.
const MAX_TYPES: usize = 4;

/// The maximum length of the name of a field. A longer one is more likely a value.
const MAX_NAME: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    Any,
    Null,
    Bool,
    Int,
    Float,
    Str,
    List(Box<Self>),
    /// An object with these fields.
    Record(BTreeMap<String, Self>),
    /// An object with arbitrary keys.
    Dict(Box<Self>),
    Union(Vec<Self>),
}

impl Shape {
    /// Returns the shape of a result.
    pub(crate) fn of(value: &Value) -> Self {
        let mut nodes = 0;
        of(value, 0, &mut nodes)
    }

    /// Returns the shape of both.
    pub(crate) fn merged(&self, other: &Self) -> Self {
        let merged = merge(self.clone(), other.clone());
        if merged.nodes() > MAX_NODES { Self::Any } else { merged }
    }

    /// Returns the shape as a JSON schema.
    pub(crate) fn to_schema(&self) -> Json {
        match self {
            Self::Any => json!({}),
            Self::Null => json!({"type": "null"}),
            Self::Bool => json!({"type": "boolean"}),
            Self::Int => json!({"type": "integer"}),
            Self::Float => json!({"type": "number"}),
            Self::Str => json!({"type": "string"}),
            Self::List(item) => json!({"type": "array", "items": item.to_schema()}),
            Self::Dict(item) => {
                json!({"type": "object", "additionalProperties": item.to_schema()})
            }
            Self::Record(fields) => {
                let fields: Map<String, Json> =
                    fields.iter().map(|(name, shape)| (name.clone(), shape.to_schema())).collect();
                json!({"type": "object", "properties": fields})
            }
            Self::Union(types) => {
                json!({"anyOf": types.iter().map(Self::to_schema).collect::<Vec<_>>()})
            }
        }
    }

    fn nodes(&self) -> usize {
        1 + match self {
            Self::List(inner) | Self::Dict(inner) => inner.nodes(),
            Self::Record(fields) => fields.values().map(Self::nodes).sum(),
            Self::Union(types) => types.iter().map(Self::nodes).sum(),
            _ => 0,
        }
    }
}

fn of(value: &Value, depth: usize, nodes: &mut usize) -> Shape {
    *nodes += 1;
    if depth > MAX_DEPTH || *nodes > MAX_NODES {
        return Shape::Any;
    }
    let mut all = |items: &mut dyn Iterator<Item = &Value>| {
        let shapes = items.take(MAX_ITEMS).map(|item| of(item, depth + 1, nodes));
        Box::new(shapes.reduce(merge).unwrap_or(Shape::Any))
    };
    match value {
        Value::None => Shape::Null,
        Value::Bool(_) => Shape::Bool,
        Value::Int(_) | Value::BigInt(_) => Shape::Int,
        Value::Float(_) => Shape::Float,
        Value::Str(_) => Shape::Str,
        Value::List(items) => Shape::List(all(&mut items.iter())),
        Value::Dict(items) => {
            let is_name = |key: &Value| {
                key.as_str().is_some_and(|key| key.len() <= MAX_NAME && is_identifier(key))
            };
            if items.is_empty()
                || items.len() > MAX_FIELDS
                || !items.iter().all(|(key, _)| is_name(key))
            {
                return Shape::Dict(all(&mut items.iter().map(|(_, item)| item)));
            }
            let field = |(key, item): &(Value, Value)| {
                (key.as_str().unwrap_or_default().to_owned(), of(item, depth + 1, nodes))
            };
            Shape::Record(items.iter().map(field).collect())
        }
        // Bytes, and what later versions have.
        _ => Shape::Any,
    }
}

fn merge(one: Shape, other: Shape) -> Shape {
    match (one, other) {
        (one, other) if one == other => one,
        (Shape::Any, _) | (_, Shape::Any) => Shape::Any,
        (Shape::Int, Shape::Float) | (Shape::Float, Shape::Int) => Shape::Float,
        (Shape::List(one), Shape::List(other)) => Shape::List(Box::new(merge(*one, *other))),
        (Shape::Dict(one), Shape::Dict(other)) => Shape::Dict(Box::new(merge(*one, *other))),
        (Shape::Record(fields), Shape::Dict(item)) | (Shape::Dict(item), Shape::Record(fields)) => {
            Shape::Dict(Box::new(fields.into_values().fold(*item, merge)))
        }
        (Shape::Record(mut one), Shape::Record(other)) => {
            for (name, shape) in other {
                let known = one.remove(&name);
                one.insert(name, known.map_or(shape.clone(), |known| merge(known, shape)));
            }
            if one.len() <= MAX_FIELDS {
                return Shape::Record(one);
            }
            let item = one.into_values().reduce(merge).unwrap_or(Shape::Any);
            Shape::Dict(Box::new(item))
        }
        (Shape::Union(types), Shape::Union(more)) => {
            more.into_iter().fold(Shape::Union(types), merge)
        }
        (Shape::Union(mut types), shape) | (shape, Shape::Union(mut types)) => {
            let same = |known: &Shape| kind(known) == kind(&shape);
            match types.iter().position(same) {
                Some(at) => types[at] = merge(types[at].clone(), shape),
                None => types.push(shape),
            }
            if types.len() > MAX_TYPES { Shape::Any } else { Shape::Union(types) }
        }
        (one, other) => Shape::Union(vec![one, other]),
    }
}

/// Shapes of one kind merge to one shape.
fn kind(shape: &Shape) -> u8 {
    match shape {
        Shape::Any => 0,
        Shape::Null => 1,
        Shape::Bool => 2,
        Shape::Int | Shape::Float => 3,
        Shape::Str => 4,
        Shape::List(_) => 5,
        Shape::Record(_) | Shape::Dict(_) => 6,
        Shape::Union(_) => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(json: Json) -> Shape {
        Shape::of(&crate::tool::value::value(json))
    }

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        let seen =
            shape(json!({"items": [{"id": 1, "title": "s3cret"}, {"id": 2.5}], "next": null}));
        assert_eq!(
            seen.to_schema(),
            json!({"type": "object", "properties": {
                "items": {"type": "array", "items": {"type": "object", "properties": {
                    "id": {"type": "number"}, "title": {"type": "string"}}}},
                "next": {"type": "null"}}})
        );
        let by_mail = shape(json!({"ada@x.example": 1, "b": 2}));
        assert_eq!(by_mail, Shape::Dict(Box::new(Shape::Int)));
    }

    #[test]
    fn further_results_widen_a_shape() {
        let first = shape(json!({"a": null, "b": [1]}));
        let both = first.merged(&shape(json!({"a": "x", "c": true})));
        assert_eq!(
            both.to_schema(),
            json!({"type": "object", "properties": {
                "a": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "b": {"type": "array", "items": {"type": "integer"}},
                "c": {"type": "boolean"}}})
        );
        assert_eq!(both.merged(&shape(json!({"a": "y", "b": [2]}))), both);
    }

    #[test]
    fn a_shape_is_bounded() {
        let mut deep = json!(1);
        for _ in 0..50 {
            deep = json!([deep, {"x": deep}]);
            if deep.to_string().len() > 10_000 {
                break;
            }
        }
        assert!(shape(deep).nodes() <= 2 * MAX_NODES);
        let wide: Map<String, Json> = (0..500).map(|at| (format!("k{at}"), json!(at))).collect();
        assert_eq!(shape(Json::Object(wide)), Shape::Dict(Box::new(Shape::Int)));
        let mut grown = Shape::Null;
        for at in 0..100 {
            let fields: Map<String, Json> =
                (0..30).map(|n| (format!("f{at}_{n}"), json!({"x": 1}))).collect();
            grown = grown.merged(&shape(Json::Object(fields)));
            assert!(grown.nodes() <= MAX_NODES);
        }
    }
}
