//! Results of calls as Python has them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value as Json;

use crate::support::json;
use crate::tool::text;
use isolet::ToolError;
use isolet::{Value, to_value};

/// The mark of a schema whose result is wrapped as `{"result": …}`.
pub(crate) const WRAPPED: &str = "x-fastmcp-wrap-result";

/// The maximum length of an error's text, in characters.
const ERROR_CHARS: usize = 4_000;

/// The most values of JSON in a text that is read as JSON. The limit of the answer's own values
/// counts a text as one.
const TEXT_VALUES: usize = 1_000_000;

/// Takes a result out of its envelope. `wrapped` says that the tool's schema has [`WRAPPED`].
pub(crate) fn unwrap(result: CallToolResult, wrapped: bool) -> Result<Value, ToolError> {
    if result.is_error == Some(true) {
        return Err(ToolError::new("ToolError", error_text(&result)));
    }
    if let Some(structured) = result.structured_content {
        return Ok(value(unwrapped(structured, wrapped)));
    }
    let mut blocks = result.content;
    let single = if blocks.len() == 1 { blocks.pop() } else { None };
    match single {
        Some(ContentBlock::Text(content))
            if json::values(content.text.as_bytes()) > TEXT_VALUES =>
        {
            Ok(content.text.into())
        }
        Some(ContentBlock::Text(content)) => Ok(match serde_json::from_str(&content.text) {
            Ok(json @ (Json::Object(_) | Json::Array(_))) => value(json),
            // A number or a quoted text is more often a text that happens to look like one.
            _ => content.text.into(),
        }),
        Some(block) => Ok(from_block(block)),
        None if blocks.is_empty() => Ok(Value::None),
        None => Ok(Value::List(blocks.into_iter().map(from_block).collect())),
    }
}

/// Converts JSON of a server.
pub(crate) fn value(json: Json) -> Value {
    match json {
        Json::Null => Value::None,
        Json::Bool(flag) => Value::Bool(flag),
        Json::String(text) => Value::Str(text),
        Json::Array(items) => Value::List(items.into_iter().map(value).collect()),
        Json::Object(items) => {
            Value::Dict(items.into_iter().map(|(key, item)| (key.into(), value(item))).collect())
        }
        number @ Json::Number(_) => to_value(&number).unwrap_or_default(),
    }
}

fn unwrapped(structured: Json, wrapped: bool) -> Json {
    match structured {
        Json::Object(mut fields) if wrapped && fields.len() == 1 => {
            fields.remove("result").unwrap_or(Json::Object(fields))
        }
        other => other,
    }
}

fn from_block(block: ContentBlock) -> Value {
    match block {
        ContentBlock::Text(content) => content.text.into(),
        ContentBlock::Image(content) => blob(content.mime_type, content.data, None),
        ContentBlock::Audio(content) => blob(content.mime_type, content.data, None),
        ContentBlock::Resource(content) => match content.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let mut fields = vec![("uri".into(), uri.into()), ("text".into(), text.into())];
                fields.extend(mime_type.map(|mime| ("mime".into(), mime.into())));
                Value::Dict(fields)
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob: data, .. } => {
                let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                blob(mime, data, Some(uri))
            }
            _ => Value::None,
        },
        ContentBlock::ResourceLink(link) => {
            let mut fields: Vec<(Value, Value)> =
                vec![("uri".into(), link.uri.into()), ("name".into(), link.name.into())];
            fields.extend(link.title.map(|title| ("title".into(), title.into())));
            fields.extend(link.description.map(|text| ("description".into(), text.into())));
            fields.extend(link.mime_type.map(|mime| ("mime".into(), mime.into())));
            fields.extend(link.size.map(|size| ("size".into(), size.into())));
            Value::Dict(fields)
        }
        _ => Value::None,
    }
}

fn blob(mime: String, data: String, uri: Option<String>) -> Value {
    // Invalid base64 is passed on as it came, so that the program can look at it.
    let data = STANDARD.decode(&data).map_or(Value::Str(data), Value::Bytes);
    let mut fields = vec![("mime".into(), mime.into()), ("data".into(), data)];
    fields.extend(uri.map(|uri| ("uri".into(), uri.into())));
    Value::Dict(fields)
}

fn error_text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(content) => Some(content.text.as_str()),
        _ => None,
    });
    let mut said = texts.collect::<Vec<_>>().join("\n");
    if said.trim().is_empty() {
        said = match &result.structured_content {
            Some(structured) => structured.to_string(),
            None => "the tool failed and gave no reason".to_owned(),
        };
    }
    text::cut(&text::clean(&said), ERROR_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(json: Json) -> Result<Value, ToolError> {
        unwrap(serde_json::from_value(json).unwrap(), false)
    }

    fn text(text: &str) -> Json {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn json_of_too_many_values_in_a_text_stays_a_text() {
        let json = |values: usize| format!("[{}0]", "{},".repeat((values - 2) / 2));
        let found = result(json!({"content": [text(&json(TEXT_VALUES))]})).unwrap();
        assert!(matches!(found, Value::List(_)));
        let many = json(TEXT_VALUES + 2);
        let found = result(json!({"content": [text(&many)]})).unwrap();
        assert_eq!(found.as_str(), Some(&*many));
    }

    #[test]
    fn a_result_is_taken_out_of_its_envelope() {
        let png = json!({"type": "image", "data": "AQID", "mimeType": "image/png"});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        let blob = json!({"type": "resource", "resource":
            {"uri": "x://b", "mimeType": "a/b", "blob": "AQ=="}});
        let image = Value::dict([("mime", "image/png".into()), ("data", Value::bytes([1, 2, 3]))]);
        for (given, expected) in [
            (json!({"content": []}), Value::None),
            (json!({"content": [text("hi")]}), "hi".into()),
            (
                json!({"content": [text("[1, {\"a\": null}]")]}),
                Value::List(vec![1.into(), Value::dict([("a", Value::None)])]),
            ),
            (json!({"content": [text("42")]}), "42".into()),
            (
                json!({"content": [text("x")], "structuredContent": {"n": 1.5}}),
                Value::dict([("n", 1.5)]),
            ),
            (json!({"content": [png]}), image.clone()),
            (json!({"content": [text("a"), png]}), Value::List(vec!["a".into(), image])),
            (json!({"content": [link]}), Value::dict([("uri", "file:///a"), ("name", "a")])),
            (
                json!({"content": [blob]}),
                Value::dict([
                    ("mime", "a/b".into()),
                    ("data", Value::bytes([1])),
                    ("uri", Value::from("x://b")),
                ]),
            ),
        ] {
            assert_eq!(result(given.clone()), Ok(expected), "{given}");
        }
    }

    #[test]
    fn the_wrapper_of_fastmcp_is_removed_if_the_schema_says_so() {
        let given =
            || serde_json::from_value(json!({"structuredContent": {"result": [1]}})).unwrap();
        assert_eq!(unwrap(given(), true), Ok(Value::List(vec![1.into()])));
        let kept = Value::dict([("result", Value::List(vec![1.into()]))]);
        assert_eq!(unwrap(given(), false), Ok(kept));
    }

    #[test]
    fn a_failure_of_the_tool_is_an_exception_with_its_text() {
        let failed = |json: Json| result(json).unwrap_err().to_string();
        let said = json!({"isError": true, "content": [text("no \u{1b}[1msuch\u{200b} page")]});
        assert_eq!(failed(said), "ToolError: no such page");
        let structured = json!({"isError": true, "structuredContent": {"code": 4}});
        assert_eq!(failed(structured), "ToolError: {\"code\":4}");
        let nothing = json!({"isError": true, "content": []});
        assert_eq!(failed(nothing), "ToolError: the tool failed and gave no reason");
    }
}
