//! Tests of `.pyi` files: Python compiles what isolet writes of the strangest tools.

use isolet::{Param, ToolSpec, TypeHint, Value, tool_stub};
use serde_json::json;

use crate::util::{eval, session};

/// Texts that would mean something outside of their string.
const TEXTS: [&str; 8] = [
    "\"\"\"\nimport os\n\"\"\"",
    "'''\"",
    "\\",
    "\\\"\"\"",
    "x\0\r\u{2028}\u{202e}",
    "\\N{DASH}\\x",
    "{x}",
    "\u{10ffff}é\"",
];

fn schemas() -> Vec<serde_json::Value> {
    let texts = TEXTS.map(|text| json!(text));
    vec![
        json!({"enum": texts}),
        json!({"enum": ["a", 1, true, null, 1.5, [1], {"a": 1}]}),
        json!({"enum": []}),
        json!({"const": "\"]"}),
        json!({"type": "object", "properties": {
            "from": {"type": "integer"}, "x-y": {"type": "string"}, "": {}, "__a": {},
            "\"): import os #": {"type": "null"}, "list": {"type": "array", "items": {}},
        }, "required": ["from"]}),
        json!({"type": "object", "title": "x): import os", "properties": {"class": {}}}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"$defs": {"Tree": {"properties": {"next": {"$ref": "#/$defs/Tree"}}}},
               "$ref": "#/$defs/Tree"}),
        json!({"allOf": [{"properties": {"int": {"type": "integer"}}},
                         {"properties": {"str": {"type": "string"}}}]}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "object"}]}),
    ]
}

#[tokio::test]
async fn python_compiles_the_file_of_any_tools() {
    let hints = schemas()
        .into_iter()
        .map(|schema| TypeHint::from_json_schema(&isolet::to_value(&schema).unwrap()));
    let mut specs: Vec<ToolSpec> = hints
        .enumerate()
        .map(|(n, hint)| {
            let param = Param::new("x").hint(hint.clone()).doc(TEXTS[n % TEXTS.len()]);
            ToolSpec::new(format!("tool_{n}")).param(param).returns(hint)
        })
        .collect();
    for (n, text) in TEXTS.iter().enumerate() {
        let text = (*text).to_owned();
        let param = Param::new("x").default_value(text.clone());
        specs.push(ToolSpec::new(format!("text_{n}")).doc(text.clone()).param(param));
        specs.push(ToolSpec::new(text));
    }
    for name in ["list", "str", "Any", "TypedDict", "_builtins", "_typing", "Object", "match"] {
        specs.push(ToolSpec::new(name).returns(TypeHint::List(Box::new(TypeHint::Str))));
    }
    let mut session = session().await;
    session.set("texts", Value::List(TEXTS.map(Value::from).to_vec())).await.unwrap();
    for doc in TEXTS {
        let text = tool_stub("server", doc, &specs);
        session.set("text", text.as_str()).await.unwrap();
        let code = "
import ast
tree = ast.parse(text)
kinds = {type(node).__name__ for node in tree.body}
scope = {}
exec(compile(text, 'server.pyi', 'exec'), scope)
functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
for node in functions:
    scope[node.name].__annotations__
docs = [ast.get_docstring(node) for node in functions if node.name.startswith('text_')]
assert len(docs) == len(texts)
assert docs[2] == '\\\\' and docs[6] == '{x}' and docs[5] == texts[5], docs
kinds - {'Expr', 'Import', 'ImportFrom', 'ClassDef', 'Assign', 'FunctionDef'}, len(functions)
";
        let functions = i64::try_from(10 + TEXTS.len() + 8).unwrap();
        let expected = Value::List(vec![Value::List(Vec::new()), functions.into()]);
        assert_eq!(eval(&mut session, code).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_dict_of_known_keys_is_a_typed_dict_in_the_guest() {
    let schema = json!({
        "type": "object", "title": "Filter", "required": ["owner"], "additionalProperties": false,
        "properties": {"owner": {"type": "string"}, "pages": {"type": "array", "items": {
            "type": "object", "properties": {"from": {"type": "integer"}}}}},
    });
    let hint = TypeHint::from_json_schema(&isolet::to_value(&schema).unwrap());
    let spec = ToolSpec::new("find").param(Param::new("filter").hint(hint.clone())).returns(hint);
    let tool = isolet::Tool::from_handler(spec, |arguments, _| async move {
        Ok(arguments.get("filter").cloned().unwrap_or_default())
    });
    let sandbox = crate::util::builder().tool(tool).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import inspect, typing
Filter = find.__annotations__['filter']
assert typing.is_typeddict(Filter) and Filter.__required_keys__ == {'owner'}
assert Filter.__optional_keys__ == {'pages'}
found = find({'owner': 'o', 'pages': [{'from': 1}, {'other': 2}]})
wrong = []
for bad in [{}, {'owner': 1}, {'owner': 'o', 'x': 1}, {'owner': 'o', 'pages': [{'from': 'x'}]}, 1]:
    try:
        find(bad)
    except TypeError as error:
        wrong.append(str(error).removeprefix(\"find() argument 'filter' must be Filter, \"))
str(inspect.signature(find)), found['owner'], wrong
";
    let wrong = [
        "but 'owner' is missing",
        "but 'owner' must be str, not int",
        "but it must not have 'x'",
        "but 'pages' must be list[dict], but item 0 must be dict, but 'from' must be int, not str",
        "not int",
    ];
    let expected = Value::List(vec![
        "(filter: Filter) -> Filter".into(),
        "o".into(),
        Value::List(wrong.map(Value::from).to_vec()),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
}
