//! The signature of a server's tool in Python, and its arguments on their way to the server.

use serde_json::{Map, Value as Json};

use super::{names, text, value};
use crate::tool::definition::Definition;
use crate::tool::shape::Shape;
use crate::tool::value::WRAPPED;
use isolet::Value;
use isolet::{Param, ToolError, ToolSpec, TypeHint};

/// The maximum number of parameters of a tool.
const MAX_PARAMS: usize = 200;

/// The most nodes to which a schema may unfold by its references. A larger one is `Any`.
const MAX_NODES: usize = 5_000;

/// The maximum length of the text about a parameter, in characters.
const PARAM_CHARS: usize = 400;

/// The name of the parameter that takes further arguments, if none of the tool's own has it.
const MORE: &str = "arguments";

/// The signature of a tool in Python, and the way back to the tool's own names.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) spec: ToolSpec,
    params: Vec<Known>,
    /// The name of the parameter that takes further arguments.
    more: Option<String>,
    /// The result is in an envelope, as [`WRAPPED`] says.
    pub(crate) is_wrapped: bool,
    /// The server defines the shape of results.
    pub(crate) has_output: bool,
}

#[derive(Clone, Debug)]
struct Known {
    python: String,
    original: String,
    /// The argument is left out if it is `None`.
    omits_none: bool,
}

impl Signature {
    /// Makes the signature of a tool that Python calls `name`. `shape` is what its results were so
    /// far.
    pub(crate) fn new(name: &str, definition: &Definition, shape: Option<&Shape>) -> Self {
        let fields = Fields::of(&definition.input);
        let originals: Vec<&str> = fields.properties.iter().map(|(name, _)| *name).collect();
        let pythons = names::parameters(&originals);
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        let mut params = Vec::new();
        for ((original, schema), python) in fields.properties.iter().zip(pythons) {
            let hint = hint(schema, &definition.input);
            let mut param = Param::new(&python).doc(param_doc(original, &python, schema));
            let default = schema.get("default").filter(|default| !default.is_null());
            let omits_none = !fields.required.contains(original);
            if !omits_none {
                required.push(param.hint(hint));
            } else if let Some(default) = default {
                // `None` stands for an argument that was not passed, as in Python's programs.
                param = param.hint(hint.or_none());
                optional.push(param.display_default(value::value(default.clone())));
            } else {
                optional.push(param.hint(hint.or_none()).default_value(Value::None));
            }
            let original = (*original).to_owned();
            params.push(Known { python, original, omits_none });
        }
        let mut spec = ToolSpec::new(name).doc(doc(name, definition));
        let is_taken = |name: &str| params.iter().any(|known: &Known| known.python == name);
        let more = fields.takes_more.then(|| {
            let mut name = MORE.to_owned();
            while is_taken(&name) {
                name.push('_');
            }
            name
        });
        let rest = more.iter().map(|name| Param::new(name).var_keyword());
        spec = required.into_iter().chain(optional).chain(rest).fold(spec, ToolSpec::param);
        let output = definition.output.as_ref();
        let is_wrapped =
            output.is_some_and(|schema| schema.get(WRAPPED) == Some(&Json::Bool(true)));
        spec = spec.returns(match (output, shape) {
            (Some(schema), _) => {
                let result = || schema.get("properties")?.get("result").cloned();
                let inner = if is_wrapped { result() } else { None };
                hint(inner.as_ref().unwrap_or(schema), schema)
            }
            (None, Some(shape)) => TypeHint::from_json_schema(&value::value(shape.to_schema())),
            (None, None) => TypeHint::Any,
        });
        let has_output = output.is_some();
        Self { spec, params, more, is_wrapped, has_output }
    }

    /// Converts the arguments of a call, which were bound and checked, to the server's names and
    /// values.
    pub(crate) fn arguments(&self, bound: Value) -> Result<Map<String, Json>, ToolError> {
        let refuse = |reason: String| {
            let text = format!("{}() {reason}", self.spec.name());
            Err(ToolError::new("TypeError", text.chars().take(1_000).collect::<String>()))
        };
        let Value::Dict(bound) = bound else {
            return refuse("takes its arguments as a dict".to_owned());
        };
        let mut sent = Map::new();
        for (key, argument) in bound {
            let Some(name) = key.as_str() else {
                return refuse(format!("takes names as keywords, not {key}"));
            };
            if let Some(known) = self.params.iter().find(|known| known.python == name) {
                if !(known.omits_none && argument.is_none()) {
                    sent.insert(known.original.clone(), json(&argument)?);
                }
                continue;
            }
            match argument {
                Value::Dict(more) if self.more.as_deref() == Some(name) => {
                    for (key, argument) in more {
                        let Some(key) = key.as_str() else { continue };
                        sent.insert(key.to_owned(), json(&argument)?);
                    }
                }
                _ => {
                    let names: Vec<&str> =
                        self.params.iter().map(|known| known.python.as_str()).collect();
                    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    return refuse(format!("has no parameter '{name}', it has {names}"));
                }
            }
        }
        Ok(sent)
    }
}

/// The fields of a schema of arguments.
struct Fields<'a> {
    properties: Vec<(&'a str, &'a Json)>,
    required: Vec<&'a str>,
    takes_more: bool,
}

impl<'a> Fields<'a> {
    fn of(schema: &'a Json) -> Self {
        let mut fields = Self { properties: Vec::new(), required: Vec::new(), takes_more: false };
        fields.add(schema, true);
        let alternatives = |key: &str| schema.get(key).and_then(Json::as_array);
        alternatives("allOf").into_iter().flatten().for_each(|part| fields.add(part, true));
        // A field of one alternative is not required by the others.
        for part in ["anyOf", "oneOf"].into_iter().filter_map(alternatives).flatten() {
            fields.add(part, false);
        }
        fields.takes_more = match schema.get("additionalProperties") {
            Some(Json::Bool(takes)) => *takes,
            Some(Json::Object(_)) => true,
            _ => false,
        };
        fields
    }

    fn add(&mut self, schema: &'a Json, requires: bool) {
        let properties = schema.get("properties").and_then(Json::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let is_new = !self.properties.iter().any(|(known, _)| known == name);
            if is_new && !name.is_empty() && self.properties.len() < MAX_PARAMS {
                self.properties.push((name, property));
            }
        }
        if requires {
            let names = schema.get("required").and_then(Json::as_array);
            self.required.extend(names.into_iter().flatten().filter_map(Json::as_str));
        }
    }
}

/// Returns the type of a schema within `root`, which has its definitions.
fn hint(schema: &Json, root: &Json) -> TypeHint {
    let mut nodes = 0;
    if !is_small(schema, root, 0, &mut nodes) {
        return TypeHint::Any;
    }
    let mut schema = schema.clone();
    if let Json::Object(schema) = &mut schema {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(key) {
                schema.insert(key.to_owned(), definitions.clone());
            }
        }
    }
    TypeHint::from_json_schema(&value::value(schema))
}

/// Counts the nodes of a schema as often as its references repeat them.
fn is_small(schema: &Json, root: &Json, references: usize, nodes: &mut usize) -> bool {
    *nodes += 1;
    if *nodes > MAX_NODES {
        return false;
    }
    match schema {
        Json::Array(items) => items.iter().all(|item| is_small(item, root, references, nodes)),
        Json::Object(fields) => fields.iter().all(|(key, field)| match (key.as_str(), field) {
            ("$defs" | "definitions", _) => true,
            ("$ref", Json::String(reference)) if references < 8 => {
                let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
                target.is_none_or(|target| is_small(target, root, references + 1, nodes))
            }
            _ => is_small(field, root, references, nodes),
        }),
        _ => true,
    }
}

fn doc(name: &str, definition: &Definition) -> String {
    let described = definition.description.as_deref().or(definition.title.as_deref());
    let mut doc = text::cut(&text::clean(described.unwrap_or_default()), text::DOC_CHARS);
    if definition.name != name {
        let original = text::clean(&definition.name);
        if !doc.is_empty() {
            doc.push_str("\n\n");
        }
        doc.extend(["The server calls it `", &original, "`."]);
    }
    doc
}

fn param_doc(original: &str, python: &str, schema: &Json) -> String {
    let described = schema.get("description").and_then(Json::as_str).unwrap_or_default();
    let doc = text::cut(&text::clean(described), PARAM_CHARS);
    if original == python {
        return doc;
    }
    let original = text::clean(original);
    format!("{doc} (`{original}`)").trim_start().to_owned()
}

fn json(argument: &Value) -> Result<Json, ToolError> {
    Ok(match argument {
        Value::None => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => Json::from(*number),
        Value::Str(text) => Json::from(text.as_str()),
        Value::List(items) => Json::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Value::Dict(items) => {
            let mut fields = Map::new();
            for (key, item) in items {
                let name = match key {
                    Value::Str(name) => name.clone(),
                    Value::Int(_) | Value::BigInt(_) => key.to_string(),
                    _ => return Err(no_json(&format!("a dict with the key {key}"))),
                };
                fields.insert(name, json(item)?);
            }
            Json::Object(fields)
        }
        Value::Float(number) => {
            let number = serde_json::Number::from_f64(*number);
            Json::Number(number.ok_or_else(|| no_json("a float that is no number"))?)
        }
        Value::BigInt(number) => {
            let number = number.to_string();
            let parsed = number.parse::<u64>().map(Json::from);
            parsed.map_err(|_| no_json("an int beyond 64 bits"))?
        }
        Value::Bytes(_) => return Err(no_json("bytes, pass their base64 as str")),
        _ => return Err(no_json("such a value")),
    })
}

fn no_json(what: &str) -> ToolError {
    ToolError::new("TypeError", format!("the server takes JSON, which has no {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signature(name: &str, tool: Json) -> Signature {
        Signature::new(name, &Definition::from_json(tool).unwrap(), None)
    }

    fn sample() -> Signature {
        signature(
            "find_all",
            json!({
                "name": "find-all",
                "description": "Finds.\u{200b}",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "limit": {"type": "integer", "default": 10},
                        "from": {"type": "string", "description": "Where."},
                        "page-token": {"type": "string"},
                        "who": {"$ref": "#/$defs/who"},
                        "remote": {"$ref": "https://x.example/schema"},
                    },
                    "required": ["from"],
                    "$defs": {"who": {"enum": ["me", "all"]}},
                },
                "outputSchema": {
                    "type": "object", "x-fastmcp-wrap-result": true,
                    "properties": {"result": {"type": "array", "items": {"type": "string"}}},
                },
            }),
        )
    }

    #[test]
    fn a_schema_becomes_a_signature() {
        let signature = sample();
        assert_eq!(
            signature.spec.to_string(),
            "find_all(from_: str, limit: int | None = 10, page_token: str | None = None, \
             who: Literal['me', 'all'] | None = None, remote=None) -> list[str]"
        );
        assert!(signature.is_wrapped);
        signature.spec.validate().unwrap();
        let doc = signature.spec.docstring();
        let expected = "Finds.\n\nThe server calls it `find-all`.\n\nArgs:\n    \
                        from_: Where. (`from`)\n    page_token: (`page-token`)";
        assert_eq!(doc, expected);
    }

    #[test]
    fn arguments_go_back_to_the_names_of_the_server() {
        let bound = Value::dict([
            ("from_", Value::from("x")),
            ("limit", 10.into()),
            ("page_token", Value::None),
            ("who", "me".into()),
        ]);
        let sent = Json::Object(sample().arguments(bound).unwrap());
        assert_eq!(sent, json!({"from": "x", "limit": 10, "who": "me"}));
    }

    #[test]
    fn a_wrong_argument_is_refused_with_the_names_that_there_are() {
        let refused = |name: &str, value: Value| {
            sample().arguments(Value::dict([(name, value)])).unwrap_err().to_string()
        };
        assert_eq!(
            refused("repo", 1.into()),
            "TypeError: find_all() has no parameter 'repo', it has limit, from_, page_token, who, \
             remote"
        );
        assert!(refused("remote", Value::bytes([1])).contains("base64"));
        assert!(refused("remote", f64::NAN.into()).contains("no number"));
    }

    #[test]
    fn further_arguments_are_passed_on_if_the_schema_has_them() {
        let more = signature(
            "f",
            json!({"name": "f", "inputSchema": {
            "type": "object", "properties": {"a": {}}, "additionalProperties": true}}),
        );
        assert_eq!(more.spec.to_string(), "f(a=None, **arguments)");
        let bound = Value::dict([("arguments", Value::dict([("x-y", 1)]))]);
        assert_eq!(Json::Object(more.arguments(bound).unwrap()), json!({"x-y": 1}));
    }

    #[test]
    fn every_schema_gives_a_signature_that_python_can_define() {
        for input in [
            json!({}),
            json!({"properties": 3, "required": "x", "anyOf": [1, null]}),
            json!({"properties": {"arguments": {}, "arguments_": {}}, "additionalProperties": {}}),
            json!({"properties": {"": {}, "a-b": {}, "a b": 1, "class": null, "self": []}}),
            json!({"properties": {"a": {"enum": [{"x": 1}, [2], null]}}, "required": ["a", "b"]}),
            json!({"properties": {"a": {"type": "string", "default": {"x": 1}}}}),
        ] {
            let tool = json!({"name": "f", "inputSchema": input, "outputSchema": input});
            let signature = signature("f", tool);
            assert!(signature.spec.validate().is_ok(), "{input}: {}", signature.spec);
        }
    }

    #[test]
    fn alternatives_of_a_schema_are_merged() {
        let merged = signature(
            "f",
            json!({"name": "f", "inputSchema": {
            "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}],
            "anyOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}}),
        );
        assert_eq!(merged.spec.to_string(), "f(a: str, b: int | None = None)");
    }

    #[test]
    fn a_schema_that_unfolds_without_end_is_any() {
        let refs: Vec<Json> = (0..20).map(|_| json!({"$ref": "#/$defs/x"})).collect();
        let bomb = signature(
            "f",
            json!({"name": "f", "inputSchema": {
            "properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"],
            "$defs": {"x": {"anyOf": refs}}}}),
        );
        assert_eq!(bomb.spec.to_string(), "f(a)");
    }
}
