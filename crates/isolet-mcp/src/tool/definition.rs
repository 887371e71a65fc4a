//! The definition of a tool, as its server gives it.

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use unicode_normalization::UnicodeNormalization;

use isolet::internals::is_invisible;

/// The maximum size of a definition as JSON, in bytes. Larger ones are left out.
const MAX_BYTES: usize = 256 * 1024;

/// The maximum length of a tool's name, in bytes.
const MAX_NAME: usize = 256;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    pub(crate) input: Json,
    #[serde(default)]
    pub(crate) output: Option<Json>,
    #[serde(default)]
    pub(crate) annotations: Option<Json>,
}

impl Definition {
    /// Takes over a tool that was parsed.
    pub(crate) fn from_tool(tool: &Tool) -> Option<Self> {
        Self::from_json(serde_json::to_value(tool).ok()?)
    }

    /// Reads a tool of a list of which some tools are invalid. Returns `None` for these.
    pub(crate) fn from_json(tool: Json) -> Option<Self> {
        if tool.to_string().len() > MAX_BYTES {
            return None;
        }
        let Json::Object(mut tool) = tool else { return None };
        let mut text = |key: &str| match tool.remove(key) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        };
        let name = text("name")
            .filter(|name| !name.is_empty() && name.len() <= MAX_NAME && is_plain(name))?;
        let (title, description) = (text("title"), text("description"));
        let mut object = |key: &str| tool.remove(key).filter(Json::is_object);
        let input = object("inputSchema").unwrap_or_else(|| Json::Object(Map::new()));
        let (output, annotations) = (object("outputSchema"), object("annotations"));
        Some(Self { name, title, description, input, output, annotations })
    }

    /// Returns the size as JSON, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// Returns `true` if the server says that the tool changes nothing.
    pub(crate) fn says_read_only(&self) -> bool {
        let hint = self.annotations.as_ref().and_then(|hints| hints.get("readOnlyHint"));
        hint.and_then(Json::as_bool) == Some(true)
    }

    /// Returns the digest of everything that describes the tool, independent of the order of the
    /// keys.
    pub(crate) fn digest(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut text = String::new();
        canonical(&serde_json::to_value(self).unwrap_or(Json::Null), &mut text);
        let hex = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect()
    }
}

/// Returns `true` if a name is exactly as it looks: it has no invisible characters, and is no other
/// spelling of plain letters, which Python normalizes to the same name.
fn is_plain(name: &str) -> bool {
    let is_hidden = |letter: char| letter.is_control() || is_invisible(letter);
    !name.chars().any(is_hidden) && name.nfkc().eq(name.chars())
}

/// Writes JSON with sorted keys and no spaces.
pub(crate) fn canonical(json: &Json, to: &mut String) {
    match json {
        Json::Array(items) => {
            to.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    to.push(',');
                }
                canonical(item, to);
            }
            to.push(']');
        }
        Json::Object(items) => {
            let mut items: Vec<_> = items.iter().collect();
            items.sort_by_key(|(key, _)| key.as_str());
            to.push('{');
            for (at, (key, item)) in items.into_iter().enumerate() {
                if at > 0 {
                    to.push(',');
                }
                to.push_str(&Json::from(key.as_str()).to_string());
                to.push(':');
                canonical(item, to);
            }
            to.push('}');
        }
        scalar => to.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(json: Json) -> Option<Definition> {
        Definition::from_json(json)
    }

    #[test]
    fn the_digest_follows_the_meaning_and_not_the_order_of_keys() {
        let first =
            definition(json!({"name": "a", "inputSchema": {"x": 1, "y": {"b": 2, "a": 3}}}));
        let turned =
            definition(json!({"inputSchema": {"y": {"a": 3, "b": 2}, "x": 1}, "name": "a"}));
        let first = first.unwrap().digest();
        assert_eq!(first, turned.unwrap().digest());
        assert_eq!(first.len(), 64);
        for other in [
            json!({"name": "b", "inputSchema": {"x": 1, "y": {"b": 2, "a": 3}}}),
            json!({"name": "a", "description": "", "inputSchema": {"x": 1, "y": {"b": 2, "a": 3}}}),
            json!({"name": "a", "inputSchema": {"x": 1, "y": {"b": 2, "a": 4}}}),
        ] {
            assert_ne!(definition(other.clone()).unwrap().digest(), first, "{other}");
        }
    }

    #[test]
    fn an_invalid_tool_is_left_out() {
        let long = "x".repeat(MAX_BYTES);
        for invalid in [
            json!(3),
            json!({"description": "no name"}),
            json!({"name": ""}),
            json!({"name": "a\nb"}),
            json!({"name": "a\u{1b}[31mb"}),
            json!({"name": "a\u{202e}b"}),
            json!({"name": "\u{ff44}elete"}),
            json!({"name": "\u{fb01}nd"}),
            json!({"name": "a".repeat(MAX_NAME + 1)}),
            json!({"name": "a", "description": long}),
        ] {
            assert_eq!(definition(invalid), None);
        }
        assert!(definition(json!({"name": "a", "inputSchema": 3})).is_some());
        assert!(definition(json!({"name": "größe/x y"})).is_some());
    }
}
