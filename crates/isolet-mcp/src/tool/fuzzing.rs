//! Tools of an MCP server: their definitions, and the results of calls.

use std::collections::HashSet;

use isolet::fuzzing::measured;
use isolet::internals::{is_identifier, is_invisible};
use isolet::{Value, tool_stub};
use rmcp::model::{CallToolResult, Tool};
use serde_json::Value as Json;

use super::definition::{Definition, canonical};
use super::shape::Shape;
use super::signature::Signature;
use super::{names, text, value};

/// How many times its length a definition or a result may take, and what it may take besides:
/// types of 1024 schemas for each of 200 parameters.
const FACTOR: usize = 2000;
const FIXED: usize = 16 << 20;
/// The most parameters of a tool.
const MAX_PARAMS: usize = 201;

/// Reads JSON, by the first byte, as a tool, as a result, or as a list of names. A definition that
/// is kept is read as the same again, and Python takes its signature whatever the server says; a
/// result becomes a value, and its shape is bounded; different names stay different.
pub fn mcp_tool(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let Ok(json) = serde_json::from_slice::<Json>(data) else { return };
    match kind % 3 {
        0 => definition(json, data.len()),
        1 => result(json, data.len()),
        _ => named(&json),
    }
}

fn definition(json: Json, length: usize) {
    if let Ok(tool) = serde_json::from_value::<Tool>(json.clone()) {
        let _ = Definition::from_tool(&tool);
    }
    let Some(definition) = Definition::from_json(json) else { return };
    let written = serde_json::to_value(&definition).unwrap_or_default();
    let again = serde_json::from_value::<Definition>(written.clone());
    assert!(again.as_ref().is_ok_and(|again| *again == definition), "{again:?}");
    assert_eq!(again.ok().map(|again| again.digest()), Some(definition.digest()));
    let mut text = String::new();
    canonical(&written, &mut text);
    assert_eq!(serde_json::from_str::<Json>(&text).ok(), Some(written));
    let (signature, used) = measured(|| Signature::new("tool", &definition, None));
    assert!(used.peak <= FACTOR * length + FIXED, "{length} bytes took {used:?}");
    let valid = signature.spec.validate();
    assert!(valid.is_ok(), "{valid:?}");
    is_clean(&signature.spec.docstring());
    let stub = tool_stub("server", "", &[&signature.spec]);
    assert!(stub.matches("def ").count() >= 1, "{stub}");
    let arguments = signature.arguments(Value::Dict(Vec::new()));
    assert!(arguments.is_ok_and(|arguments| arguments.is_empty()));
}

/// A text of a server shows all that it has.
fn is_clean(text: &str) {
    let hidden = |c: char| c != '\n' && (c.is_control() || is_invisible(c));
    assert!(!text.contains(hidden), "{text:?}");
}

fn result(json: Json, length: usize) {
    let Ok(result) = serde_json::from_value::<CallToolResult>(json) else { return };
    let is_error = result.is_error == Some(true);
    for wrapped in [false, true] {
        let copy = result.clone();
        let (unwrapped, used) = measured(|| value::unwrap(copy, wrapped));
        assert!(used.peak <= FACTOR * length + FIXED, "{length} bytes took {used:?}");
        assert_eq!(unwrapped.is_err(), is_error);
        match unwrapped {
            Ok(value) => has_shape(&value),
            Err(error) => is_clean(&error.to_string()),
        }
    }
}

fn has_shape(value: &Value) {
    let shape = Shape::of(value);
    assert_eq!(shape.merged(&shape), shape);
    let text = serde_json::to_string(&shape).unwrap_or_default();
    assert_eq!(serde_json::from_str::<Shape>(&text).ok().as_ref(), Some(&shape));
    assert!(text.len() <= 200 * 100, "{text}");
    let schema = value::value(shape.to_schema());
    let hint = isolet::TypeHint::from_json_schema(&schema).to_string();
    assert!(!hint.contains('\n'), "{hint:?}");
}

fn named(json: &Json) {
    let texts = json.as_array().into_iter().flatten().filter_map(Json::as_str);
    let originals: HashSet<&str> = texts.take(MAX_PARAMS).collect();
    let originals: Vec<&str> = originals.into_iter().collect();
    let turned: Vec<&str> = originals.iter().rev().copied().collect();
    for make in [names::assign, names::parameters] {
        let made = make(&originals);
        assert!(made.iter().all(|name| is_identifier(name)), "{made:?}");
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), originals.len(), "{made:?}");
        let mut again = make(&turned);
        again.reverse();
        assert_eq!(again, made);
    }
    let modules = names::modules(originals.iter().copied());
    assert!(modules.iter().all(|name| is_identifier(name)), "{modules:?}");
    for original in originals {
        let clean = text::clean(original);
        is_clean(&clean);
        assert!(text::summary(original).chars().count() <= text::SIGNATURE_CHARS);
        assert!(clean.len() <= original.len());
    }
}
