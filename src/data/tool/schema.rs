//! Derives parameters and types from a JSON schema: that of a Rust type, or one from a stranger.
//!
//! Nothing is fetched. A schema may be recursive, deep and huge; what lies below the bounds is
//! `Any`.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value as Json};

use super::hint::TypeHint;
use super::object::{Field, ObjectHint, Presence};
use super::param::{Default, Param};
use crate::data::value::Value;

/// The maximum depth of a type. A type within itself is `Any`.
const MAX_DEPTH: usize = 24;

/// The maximum number of schemas that one type is made from. References can double it with each.
const MAX_SCHEMAS: usize = 1024;

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
    let required = required(root);
    let mut params: Vec<Param> = fields
        .into_iter()
        .flatten()
        .map(|(name, field)| param(name, field, required.contains(&name.as_str()), schema))
        .collect();
    params.sort_by_key(|param| param.default != Default::Required);
    Ok(Arguments { doc, params })
}

/// Returns the type that a schema describes.
pub(super) fn of_value(schema: &Value) -> TypeHint {
    serde_json::to_value(schema).map_or(TypeHint::Any, |root| Reader::new(&root).hint(&root, 0))
}

fn param(name: &str, field: &Json, required: bool, root: &Json) -> Param {
    let hint = Reader::new(root).hint(field, 0);
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

/// Reads types within one schema.
struct Reader<'a> {
    root: &'a Json,
    /// The number of schemas that may still be read.
    left: Cell<usize>,
    /// The references that are being followed.
    followed: RefCell<Vec<&'a str>>,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Json) -> Self {
        Self { root, left: Cell::new(MAX_SCHEMAS), followed: RefCell::default() }
    }

    fn hint(&self, schema: &'a Json, depth: usize) -> TypeHint {
        let Some(schema) = schema.as_object() else {
            return TypeHint::Any;
        };
        if depth >= MAX_DEPTH || self.left.get() == 0 {
            return TypeHint::Any;
        }
        self.left.set(self.left.get() - 1);
        let mut hint = self.own(schema, depth);
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            hint = both(self.follow(reference, depth), hint);
        }
        for alternatives in ["anyOf", "oneOf"] {
            if let Some(members) = schema.get(alternatives).and_then(Json::as_array) {
                let members = members.iter().map(|member| self.hint(member, depth + 1));
                hint = both(hint, union(members));
            }
        }
        for part in schema.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            hint = both(hint, self.hint(part, depth + 1));
        }
        if schema.get("nullable") == Some(&Json::Bool(true)) { hint.or_none() } else { hint }
    }

    /// Returns the type that a reference within the schema leads to.
    fn follow(&self, reference: &'a str, depth: usize) -> TypeHint {
        let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
        let is_followed = self.followed.borrow().contains(&reference);
        let Some(target) = target.filter(|_| !is_followed) else {
            return TypeHint::Any;
        };
        self.followed.borrow_mut().push(reference);
        let mut hint = self.hint(target, depth + 1);
        self.followed.borrow_mut().pop();
        // The name of a definition is a better one than none.
        if let TypeHint::Object(object) = &mut hint
            && object.title.is_empty()
        {
            let name = reference.rsplit('/').next().unwrap_or_default();
            object.title = ObjectHint::new(name).title;
        }
        hint
    }

    /// Returns the type that a schema's own keywords describe.
    fn own(&self, schema: &'a Map<String, Json>, depth: usize) -> TypeHint {
        if let Some(constant) = schema.get("const") {
            return TypeHint::Literal(vec![value(constant)]);
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            return TypeHint::Literal(values.iter().map(value).collect());
        }
        match schema.get("type") {
            Some(Json::String(name)) => self.named(name, schema, depth),
            Some(Json::Array(names)) => {
                let names = names.iter().filter_map(Json::as_str);
                union(names.map(|name| self.named(name, schema, depth)))
            }
            _ if schema.contains_key("properties") => self.object(schema, depth),
            _ => TypeHint::Any,
        }
    }

    fn named(&self, name: &str, schema: &'a Map<String, Json>, depth: usize) -> TypeHint {
        match name {
            "null" => TypeHint::None,
            "boolean" => TypeHint::Bool,
            "integer" => TypeHint::Int,
            "number" => TypeHint::Float,
            "string" => TypeHint::Str,
            "array" => TypeHint::List(Box::new(self.item(schema, depth))),
            "object" => self.object(schema, depth),
            _ => TypeHint::Any,
        }
    }

    /// Returns the type of a list's items. Those of a tuple are any of its items' types.
    fn item(&self, schema: &'a Map<String, Json>, depth: usize) -> TypeHint {
        let inner = |inner: &'a Json| self.hint(inner, depth + 1);
        // In older schemas `items` has the tuple, and `additionalItems` the rest.
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (None, Some(Json::Array(first))) => (first, schema.get("additionalItems")),
            (Some(Json::Array(first)), rest) => (first, rest),
            (_, Some(item)) => return inner(item),
            (_, None) => return TypeHint::Any,
        };
        let most = schema.get("maxItems").and_then(Json::as_u64);
        let is_whole =
            rest == Some(&Json::Bool(false)) || most.is_some_and(|most| most <= first.len() as u64);
        let rest = match rest {
            _ if is_whole => None,
            Some(rest) => Some(inner(rest)),
            None => Some(TypeHint::Any),
        };
        union(first.iter().map(inner).chain(rest))
    }

    fn object(&self, schema: &'a Map<String, Json>, depth: usize) -> TypeHint {
        let rest = match schema.get("additionalProperties") {
            // What a pattern allows is no other key, but cannot be told from one.
            _ if schema.contains_key("patternProperties") => Some(TypeHint::Any),
            Some(Json::Bool(false)) => None,
            Some(rest) => Some(self.hint(rest, depth + 1)),
            None => Some(TypeHint::Any),
        };
        let properties = schema.get("properties").and_then(Json::as_object);
        let fields = properties.filter(|fields| !fields.is_empty());
        let Some(fields) = fields else {
            let required = required(schema);
            return match rest {
                Some(rest) if required.is_empty() => TypeHint::Dict(Box::new(rest)),
                rest => {
                    let any = |object: ObjectHint, name| object.required(name, TypeHint::Any);
                    let mut object = required.into_iter().fold(ObjectHint::new(""), any);
                    object.rest = rest.map(Box::new);
                    TypeHint::Object(object)
                }
            };
        };
        let required = required(schema);
        let mut object = ObjectHint::new(text(schema, "title"));
        object.rest = rest.map(Box::new);
        for (name, field) in fields {
            if self.left.get() == 0 {
                // Keys that were not read are not refused.
                object.rest = Some(Box::default());
                break;
            }
            let hint = self.hint(field, depth + 1);
            let is_required = required.contains(&name.as_str());
            let presence = if is_required { Presence::Required } else { Presence::Optional };
            object.fields.push(Field { name: name.clone(), hint, presence });
        }
        TypeHint::Object(object)
    }
}

/// Returns the type of what is of both types, as far as a hint can say it; otherwise the first one.
fn both(first: TypeHint, second: TypeHint) -> TypeHint {
    match (first, second) {
        (TypeHint::Any, other) | (other, TypeHint::Any) => other,
        (TypeHint::Object(first), TypeHint::Object(second)) => {
            TypeHint::Object(both_objects(first, second))
        }
        (TypeHint::Object(object), TypeHint::Dict(_))
        | (TypeHint::Dict(_), TypeHint::Object(object)) => TypeHint::Object(object),
        (TypeHint::Float, TypeHint::Int) | (TypeHint::Int, TypeHint::Float) => TypeHint::Int,
        (TypeHint::Literal(first), TypeHint::Literal(second)) => {
            let common = first.iter().filter(|value| second.contains(value)).cloned().collect();
            TypeHint::Literal(common)
        }
        (TypeHint::Literal(values), other) | (other, TypeHint::Literal(values)) => {
            let fitting = values.iter().filter(|value| other.check(value).is_ok());
            TypeHint::Literal(fitting.cloned().collect())
        }
        (first, _) => first,
    }
}

fn both_objects(mut first: ObjectHint, second: ObjectHint) -> ObjectHint {
    for field in second.fields {
        match first.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => {
                known.hint = both(std::mem::take(&mut known.hint), field.hint);
                if field.presence == Presence::Required {
                    known.presence = Presence::Required;
                }
            }
            None => first.fields.push(field),
        }
    }
    if first.title.is_empty() {
        first.title = second.title;
    }
    // A part that allows no other keys does not know those of the other part, and nothing can be of
    // both types. That is hardly meant.
    first.rest = match (first.rest, second.rest) {
        (Some(first), Some(second)) => Some(Box::new(both(*first, *second))),
        (rest, None) | (None, rest) => rest,
    };
    first
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

/// Returns the names of the properties that have to be there.
fn required(schema: &Map<String, Json>) -> Vec<&str> {
    let names = schema.get("required").and_then(Json::as_array);
    names.map(|names| names.iter().filter_map(Json::as_str).collect()).unwrap_or_default()
}

fn value(json: &Json) -> Value {
    crate::data::value::to_value(json).unwrap_or(Value::None)
}

fn text(schema: &Map<String, Json>, key: &str) -> String {
    schema.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Json) -> TypeHint {
        Reader::new(schema).hint(schema, 0)
    }

    fn checked(schema: &Json, value: &Json) -> Result<(), String> {
        read(schema).check(&super::value(value))
    }

    #[test]
    fn objects_have_their_properties() {
        let schema = json!({
            "title": "Page",
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "author": {"type": "object", "properties": {"x-y": {"type": "integer"}}},
            },
            "required": ["title"],
            "additionalProperties": false,
        });
        let author = ObjectHint::new("").optional("x-y", TypeHint::Int);
        let page = ObjectHint::new("Page")
            .optional("author", TypeHint::Object(author))
            .required("title", TypeHint::Str)
            .closed();
        let TypeHint::Object(mut object) = read(&schema) else { panic!() };
        object.fields.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(object, page);
        assert!(checked(&schema, &json!({"title": "x", "author": {"x-y": 1, "z": 2}})).is_ok());
        for wrong in [json!({}), json!({"title": "x", "z": 1}), json!({"title": "x", "author": 1})]
        {
            assert!(checked(&schema, &wrong).is_err(), "{wrong}");
        }
        let null = json!({"type": ["object", "null"], "properties": {"a": {"type": "integer"}}});
        assert!(
            checked(&null, &json!(null)).is_ok() && checked(&null, &json!({"a": "x"})).is_err()
        );
        assert_eq!(read(&json!({"type": "object"})).to_string(), "dict");
        let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert!(checked(&empty, &json!({"a": 1})).is_err() && checked(&empty, &json!({})).is_ok());
        let typed = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(read(&typed).to_string(), "dict[str, int]");
    }

    #[test]
    fn parts_are_merged() {
        let schema = json!({
            "definitions": {"Base": {
                "type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"],
                "additionalProperties": false,
            }},
            "allOf": [
                {"$ref": "#/definitions/Base"},
                {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
                {"required": ["c"]},
            ],
        });
        let TypeHint::Object(object) = read(&schema) else { panic!() };
        let expected =
            ObjectHint::new("Base").required("a", TypeHint::Int).optional("b", TypeHint::Str);
        assert_eq!(object, expected);
        let literal = json!({"allOf": [{"enum": [1, "x", null]}, {"type": "string"}]});
        assert_eq!(read(&literal).to_string(), "Literal['x']");
        // Alternatives beside properties say more than a hint can.
        let beside = json!({
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        });
        assert!(checked(&beside, &json!({"a": "x"})).is_ok());
    }

    #[test]
    fn tuples_are_lists_of_any_of_their_items() {
        let pair = json!([{"type": "string"}, {"type": "integer"}]);
        for schema in [
            json!({"type": "array", "prefixItems": pair, "items": false}),
            json!({"type": "array", "prefixItems": pair, "maxItems": 2}),
            json!({"type": "array", "items": pair, "additionalItems": false}),
            json!({"type": "array", "prefixItems": [pair[0]], "items": pair[1]}),
        ] {
            assert_eq!(read(&schema).to_string(), "list[str | int]", "{schema}");
        }
        assert_eq!(read(&json!({"type": "array", "prefixItems": pair})).to_string(), "list");
    }

    #[test]
    fn references_lead_to_other_parts_of_the_schema_only() {
        let schema = json!({
            "$defs": {"A": {"$ref": "#/$defs/B~1c"}, "B/c": {"type": "integer"}},
            "properties": {
                "a": {"$ref": "#/$defs/A"},
                "b": {"$ref": "https://example.com/schema.json"},
                "c": {"$ref": "file:///etc/passwd"},
                "d": {"$ref": "#/$defs/Nothing"},
                "e": {"$ref": "#/properties/a"},
                "f": {"$ref": "other.json#/$defs/A"},
            },
        });
        let TypeHint::Object(object) = read(&schema) else { panic!() };
        let shown: Vec<String> =
            object.fields.iter().map(|field| format!("{}{}", field.name, field.hint)).collect();
        assert_eq!(shown, ["aint", "bAny", "cAny", "dAny", "eint", "fAny"]);
    }

    #[test]
    fn recursive_and_exploding_schemas_end() {
        let tree = json!({
            "$defs": {"Tree": {"type": "object", "properties": {
                "left": {"$ref": "#/$defs/Tree"},
                "right": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"$ref": "#"}]},
            }}},
            "$ref": "#/$defs/Tree",
        });
        let TypeHint::Object(object) = read(&tree) else { panic!() };
        assert_eq!((object.shown(), object.fields.len()), ("Tree", 2));
        assert_eq!(read(&json!({"$ref": "#"})), TypeHint::Any);
        // Each level has the next one twice.
        let level = |n: usize| {
            let next = json!({"$ref": format!("#/$defs/L{}", n + 1)});
            json!({"type": "object", "properties": {"a": next, "b": next}, "required": ["b"]})
        };
        let levels: Map<String, Json> = (0..60).map(|n| (format!("L{n}"), level(n))).collect();
        let bomb = json!({"$defs": levels, "$ref": "#/$defs/L0"});
        let size = format!("{:?}", read(&bomb)).len();
        assert!(size < 2_000_000, "{size}");
        let mut deep = json!({"type": "integer"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep, "allOf": [{"type": "array"}]});
        }
        assert!(read(&deep).to_string().starts_with("list[list["));
    }
}
