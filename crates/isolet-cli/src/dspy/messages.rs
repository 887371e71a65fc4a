//! The JSON-RPC messages of DSPy's protocol, one per line.

use isolet::profile::json_dumps;
use isolet::profile::python_interpreter::{InterpreterError, Output};
use isolet::{Param, PyException, TypeHint, Value};
use isolet_service::core::in_options;
use serde::Deserialize;

use isolet_support::json_text as json;

/// Codes of JSON-RPC itself. The client ends the session when it receives one.
pub(super) const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INTERNAL_ERROR: i32 = -32603;
/// The application's code for `RuntimeError`.
pub(super) const RUNTIME_ERROR: i32 = -32007;

/// A message from the client: a request, a notification, or the answer to a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct Incoming {
    #[serde(default)]
    pub(super) jsonrpc: Value,
    #[serde(default)]
    pub(super) id: Value,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Params,
    #[serde(default)]
    pub(super) result: Option<ToolResult>,
    #[serde(default)]
    pub(super) error: Option<ToolFailure>,
}

/// The parameters of all methods; each method uses some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    pub(super) code: String,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) host_path: String,
    pub(super) virtual_path: String,
    pub(super) tools: Vec<ToolEntry>,
    pub(super) outputs: Vec<FieldEntry>,
}

/// A tool, in the old or the new form.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ToolEntry {
    Name(String),
    Spec {
        name: String,
        #[serde(default)]
        parameters: Vec<FieldEntry>,
    },
}

/// A parameter of a tool or of `SUBMIT`.
#[derive(Debug, Deserialize)]
pub(super) struct FieldEntry {
    pub(super) name: String,
    #[serde(default, rename = "type")]
    type_name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    default: Option<Value>,
}

/// The result of a tool: text, or JSON as text.
#[derive(Debug, Deserialize)]
pub(super) struct ToolResult {
    pub(super) value: Value,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
}

/// An exception that a tool raised.
#[derive(Debug, Deserialize)]
pub(super) struct ToolFailure {
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: FailureData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FailureData {
    #[serde(rename = "type")]
    pub(super) type_name: Option<String>,
}

/// Distinguishes a default of `null` from no default.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Converts parameters to a form that Python can define. A parameter without a default that follows
/// one with a default is keyword-only, as it was in the client's function, and so are those after
/// it.
pub(super) fn params(entries: Vec<FieldEntry>) -> Vec<Param> {
    let (mut optional, mut keyword_only) = (false, false);
    let param = |entry: FieldEntry| {
        let param = Param::new(entry.name).annotation(hint(entry.type_name.as_deref()));
        keyword_only |= optional && entry.default.is_none();
        optional |= entry.default.is_some();
        let param = match entry.default {
            Some(default) => param.default_value(default),
            None => param,
        };
        if keyword_only { param.keyword_only() } else { param }
    };
    entries.into_iter().map(param).collect()
}

fn hint(type_name: Option<&str>) -> TypeHint {
    match type_name {
        Some("str") => TypeHint::Str,
        Some("int") => TypeHint::Int,
        Some("float") => TypeHint::Float,
        Some("bool") => TypeHint::Bool,
        Some("list") => TypeHint::List(Box::new(TypeHint::Any)),
        Some("dict") => TypeHint::Dict(Box::new(TypeHint::Any)),
        Some("NoneType") => TypeHint::None,
        _ => TypeHint::Any,
    }
}

fn dict<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Dict(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn version() -> (&'static str, Value) {
    ("jsonrpc", "2.0".into())
}

/// Returns a successful response.
pub(super) fn result(id: Value, result: Value) -> String {
    json_dumps(&dict([version(), ("result", result), ("id", id)]))
}

/// Returns an error response.
pub(super) fn error(id: Value, code: i32, message: &str) -> String {
    let message = in_options(message);
    let error = dict([("code", i64::from(code).into()), ("message", message.into())]);
    json_dumps(&dict([version(), ("error", error), ("id", id)]))
}

/// Returns the response to a successful `execute`.
pub(super) fn output(id: Value, output: Output) -> String {
    let (kind, value) = match output {
        Output::Final(fields) => ("final", fields),
        Output::Stdout(text) => ("output", text.into()),
        Output::Value(value) => ("output", value),
        other => ("output", format!("{other:?}").into()),
    };
    result(id, dict([(kind, value)]))
}

/// Returns the response to a failed `execute`.
pub(super) fn failure(id: Value, error: InterpreterError) -> String {
    let exception = match error {
        InterpreterError::Execution(exception) => exception,
        // The client takes this code as the end of the session, which has indeed ended.
        other => return self::error(id, INTERNAL_ERROR, &other.to_string()),
    };
    let code = code_of(&exception.type_name);
    let (message, args) = described(&exception);
    let data = dict([("type", exception.type_name.into()), ("args", args)]);
    let error =
        dict([("code", i64::from(code).into()), ("message", message.into()), ("data", data)]);
    json_dumps(&dict([version(), ("error", error), ("id", id)]))
}

/// Returns the exception's text and its args. The client shows the args if there are any.
fn described(exception: &PyException) -> (String, Value) {
    let traceback = exception.traceback.trim();
    match exception.type_name.as_str() {
        "SyntaxError" => (traceback.to_owned(), Value::List(Vec::new())),
        // Its only argument is the JavaScript error, which JSON cannot represent.
        "JsException" => (format!("PythonError: {traceback}"), Value::List(Vec::new())),
        _ => {
            let args = exception.args_json.as_deref().and_then(|text| json::parse(text).ok());
            let message = || Value::List(vec![exception.message.as_str().into()]);
            (traceback.to_owned(), args.unwrap_or_else(message))
        }
    }
}

fn code_of(type_name: &str) -> i32 {
    match type_name {
        "SyntaxError" => -32000,
        "NameError" => -32001,
        "TypeError" => -32002,
        "ValueError" => -32003,
        "AttributeError" => -32004,
        "IndexError" => -32005,
        "KeyError" => -32006,
        "RuntimeError" => RUNTIME_ERROR,
        "CodeInterpreterError" => -32008,
        _ => -32099,
    }
}

/// Returns the request with which the client calls a tool.
pub(super) fn tool_call(id: &str, name: &str, kwargs: Value) -> String {
    let params = dict([("name", name.into()), ("kwargs", kwargs)]);
    json_dumps(&dict([
        version(),
        ("method", "tool_call".into()),
        ("params", params),
        ("id", id.into()),
    ]))
}
