//! Derives parameters and types from the JSON schema of a Rust type.

use serde_json::{Map, Value as Json};

use super::hint::TypeHint;
use super::param::{Default, Param};
use crate::data::value::Value;

/// The depth to which references are followed. A recursive type is `Any` below it.
const MAX_REFERENCES: usize = 8;

/// The arguments of a tool.
pub(crate) struct Arguments {
    pub(crate) doc: String,
    pub(crate) params: Vec<Param>,
}

/// Reads the parameters from the schema of a struct. `Err` says what the schema is instead.
///
/// Parameters without a default come first. Apart from that they keep the order of the fields.
pub(crate) fn arguments(schema: &Json) -> Result<Arguments, String> {
    let root = schema.as_object().ok_or("they have no schema")?;
    let doc = text(root, "description");
    let fields = match root.get("type").and_then(Json::as_str) {
        Some("null") => return Ok(Arguments { doc, params: Vec::new() }),
        Some("object") => root.get("properties").and_then(Json::as_object),
        Some(other) => return Err(format!("they are of the schema type `{other}`")),
        None => return Err("they are no struct".to_owned()),
    };
    let required: Vec<&str> = root
        .get("required")
        .and_then(Json::as_array)
        .map(|names| names.iter().filter_map(Json::as_str).collect())
        .unwrap_or_default();
    let mut params: Vec<Param> = fields
        .into_iter()
        .flatten()
        .map(|(name, field)| param(name, field, required.contains(&name.as_str()), root))
        .collect();
    params.sort_by_key(|param| param.default != Default::Required);
    Ok(Arguments { doc, params })
}

/// Returns the type that a schema describes.
pub(super) fn of_value(schema: &Value) -> TypeHint {
    match serde_json::to_value(schema) {
        Ok(Json::Object(root)) => hint(&Json::Object(root.clone()), &root, 0),
        _ => TypeHint::Any,
    }
}

fn param(name: &str, field: &Json, required: bool, root: &Map<String, Json>) -> Param {
    let hint = hint(field, root, 0);
    let mut param = Param::new(name);
    if let Some(field) = field.as_object() {
        param.doc = text(field, "description");
        param.default = match field.get("default") {
            _ if required => Default::Required,
            Some(default) => Default::Is(value(default)),
            None if hint.check(&Value::None).is_ok() => Default::Is(Value::None),
            None => Default::Unknown,
        };
    }
    param.hint(hint)
}

fn hint(schema: &Json, root: &Map<String, Json>, references: usize) -> TypeHint {
    let Some(schema) = schema.as_object() else {
        return TypeHint::Any;
    };
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
        let definition = reference
            .strip_prefix("#/$defs/")
            .and_then(|name| root.get("$defs")?.get(name))
            .filter(|_| references < MAX_REFERENCES);
        return definition.map_or(TypeHint::Any, |schema| hint(schema, root, references + 1));
    }
    if let Some(constant) = schema.get("const") {
        return TypeHint::Literal(vec![value(constant)]);
    }
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        return TypeHint::Literal(values.iter().map(value).collect());
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(members) = schema.get(alternatives).and_then(Json::as_array) {
            return union(members.iter().map(|member| hint(member, root, references)));
        }
    }
    match schema.get("type") {
        Some(Json::String(name)) => named(name, schema, root, references),
        Some(Json::Array(names)) => union(
            names.iter().filter_map(Json::as_str).map(|name| named(name, schema, root, references)),
        ),
        _ => TypeHint::Any,
    }
}

fn named(
    name: &str,
    schema: &Map<String, Json>,
    root: &Map<String, Json>,
    references: usize,
) -> TypeHint {
    let inner = |key| {
        let inner = schema.get(key).map_or(TypeHint::Any, |inner| hint(inner, root, references));
        Box::new(inner)
    };
    match name {
        "null" => TypeHint::None,
        "boolean" => TypeHint::Bool,
        "integer" => TypeHint::Int,
        "number" => TypeHint::Float,
        "string" => TypeHint::Str,
        "array" => TypeHint::List(inner("items")),
        "object" => TypeHint::Dict(inner("additionalProperties")),
        _ => TypeHint::Any,
    }
}

/// Returns one hint for several, flattened and without repetitions.
fn union(members: impl Iterator<Item = TypeHint>) -> TypeHint {
    let mut flat: Vec<TypeHint> = Vec::new();
    for member in members {
        let inner = match member {
            TypeHint::Union(inner) => inner,
            TypeHint::Any => return TypeHint::Any,
            single => vec![single],
        };
        for member in inner {
            if flat.contains(&member) {
                continue;
            }
            match (flat.last_mut(), member) {
                (Some(TypeHint::Literal(values)), TypeHint::Literal(more)) => values.extend(more),
                (_, member) => flat.push(member),
            }
        }
    }
    match flat.len() {
        0 => TypeHint::Any,
        1 => flat.remove(0),
        _ => TypeHint::Union(flat),
    }
}

fn value(json: &Json) -> Value {
    crate::data::value::to_value(json).unwrap_or(Value::None)
}

fn text(schema: &Map<String, Json>, key: &str) -> String {
    schema.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}
