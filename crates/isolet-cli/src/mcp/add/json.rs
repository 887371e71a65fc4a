//! Edits a client's file of JSON with comments. All that is not the servers' stays as it is.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};

use serde_json::{Map, Value};

use super::halves::Halves;

/// A file with servers, to be edited.
pub(super) struct Json {
    root: CstRootNode,
    halves: Halves,
    key: &'static str,
    /// The expected content of the file after the edits.
    expected: Value,
}

/// The syntax that the editors of these files accept, and nothing beyond it.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

impl Json {
    /// Reads a text whose servers are in the object `key`. `Err` describes the mistake and shows
    /// nothing of the text, which may have secrets.
    pub(super) fn parse(text: &str, key: &'static str) -> Result<Self, String> {
        let text = if text.trim().is_empty() { "" } else { text };
        let (halves, text) = Halves::replaced(text)?;
        let root = root(&text)?;
        let object = |value: Option<Value>, what: &str| match value {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(_) => Err(format!("{what} is no object, it has to be one")),
        };
        let mut expected = object(root.to_serde_value(), "it")?;
        let servers = object(expected.get(key).cloned(), &format!("`{key}`"))?;
        expected.insert(key.to_owned(), Value::Object(servers));
        Ok(Self { root, halves, key, expected: Value::Object(expected) })
    }

    /// Reads a file of isolet's own, which may have its servers as VS Code has them.
    pub(super) fn parse_own(text: &str) -> Result<Self, String> {
        let text_of_json = Halves::replaced(text).map(|(_, text)| text).unwrap_or_default();
        let root = root(&text_of_json).ok().and_then(|root| root.to_serde_value());
        let has = |key: &str| root.as_ref().is_some_and(|root| root.get(key).is_some());
        let is_of_vscode = has("servers") && !has("mcpServers");
        Self::parse(text, if is_of_vscode { "servers" } else { "mcpServers" })
    }

    /// Returns the servers under both keys that isolet reads.
    pub(super) fn all_servers(&self) -> Map<String, Value> {
        let servers = |key: &str| self.expected.get(key).and_then(Value::as_object).cloned();
        let both = ["mcpServers", "servers"].into_iter().filter_map(servers);
        both.flatten().collect()
    }

    /// Returns the servers.
    pub(super) fn servers(&self) -> Map<String, Value> {
        self.expected[self.key].as_object().cloned().unwrap_or_default()
    }

    /// Sets a server.
    pub(super) fn set(&mut self, name: &str, entry: &Value) -> Result<(), String> {
        let servers = self.object()?;
        match servers.get(name) {
            Some(there) => there.set_value(input(entry)),
            None => drop(servers.append(name, input(entry))),
        }
        self.expected[self.key][name] = entry.clone();
        Ok(())
    }

    /// Removes a server.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), String> {
        if let Some(there) = self.object()?.get(name) {
            there.remove();
        }
        if let Some(servers) = self.expected[self.key].as_object_mut() {
            // The order of the others is of no account when values are compared.
            servers.remove(name);
        }
        Ok(())
    }

    /// Returns the text after the edits. `Err` says why the file cannot be edited.
    pub(super) fn text(&self) -> Result<String, String> {
        let text = self.root.to_string();
        // Of a key that is there twice, one is edited and the other counts.
        if root(&text)?.to_serde_value().as_ref() != Some(&self.expected) {
            return Err(format!(
                "isolet cannot edit it, perhaps because `{}` or a server is there twice; write \
                 the entry that `--print` shows for an empty file by hand",
                self.key
            ));
        }
        Ok(self.halves.restored(&text))
    }

    fn object(&self) -> Result<CstObject, String> {
        let root = self.root.object_value_or_create();
        let servers = root.and_then(|root| root.object_value_or_create(self.key));
        servers.ok_or_else(|| format!("`{}` is no object, it has to be one", self.key))
    }
}

fn root(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &OPTIONS).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        format!("it is no JSON, look at line {line}, column {column}")
    })
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> Result<String, String> {
        let mut json = Json::parse(text, "mcpServers")?;
        json.set("isolet", &serde_json::json!({"command": "/x\"\u{1}y", "args": ["mcp"]}))?;
        json.text()
    }

    /// Returns `true` if the new text is the old one with insertions.
    fn is_kept(old: &str, new: &str) -> bool {
        let mut new = new.chars();
        old.chars().filter(|c| !c.is_whitespace()).all(|letter| new.any(|other| other == letter))
    }

    #[test]
    fn everything_else_is_kept() {
        for text in [
            "",
            " \n\n",
            "{}",
            "// only a comment\n",
            "{\"a\":1}",
            "{\n\t\"a\": 1e400, // c\n\t/* d */\n}",
            "{\r\n  \"mcpServers\": {\r\n    \"x\": {\"command\": \"y\"} // k\r\n  }\r\n}\r\n",
            "{\"mcpServers\": { // empty\n}, \"z\": [1, 2,],}\n",
            "{\"mcpServers\": {\n \"x\": {} /* a */, /* b */ }}",
            "{\"z\": \"\\u00e9\\ud83d\\ude00 // no /* no */\", \"mcpServers\": {}}",
            "{\"\\ud83d\": 1, \"mcpServers\": {\"a\": {\"env\": {\"N\": \"\\uDC00x\"}}}}",
        ] {
            let new = added(text).unwrap();
            assert!(is_kept(text, &new), "{text}\n{new}");
            assert_eq!(added(&new).unwrap(), new);
        }
    }

    #[test]
    fn a_line_before_the_entry_keeps_its_comment() {
        let text =
            "{\n    \"mcpServers\": {\n        \"x\": {}, // keep\n        // end\n    },\n}\n";
        let new = added(text).unwrap();
        let at = new.find("        \"isolet\"").unwrap();
        let after = new.find("        // end").unwrap();
        assert_eq!(format!("{}{}", &new[..at], &new[after..]), text);
    }

    #[test]
    fn what_is_removed_leaves_the_comments_of_the_others() {
        let text = "{\"mcpServers\": {\n  // a\n  \"a\": 1, // 1\n  \"b\": 2, // 2\n  \"c\": 3\n}}";
        let mut json = Json::parse(text, "mcpServers").unwrap();
        json.remove("a").unwrap();
        json.remove("c").unwrap();
        json.remove("none").unwrap();
        let new = json.text().unwrap();
        assert!(new.contains("  \"b\": 2 // 2\n"), "{new}");
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (text, said) in [
            ("{", "it is no JSON, look at line 1"),
            ("{\n 'a': 1}", "it is no JSON, look at line 2"),
            ("{a: 1}", "it is no JSON"),
            ("{\"a\": 0x1}", "it is no JSON"),
            ("{\"a\": 1} {}", "it is no JSON"),
            ("[]", "it is no object"),
            ("null", "it is no object"),
            ("{\"mcpServers\": []}", "`mcpServers` is no object"),
            ("{\"mcpServers\": {}, \"mcpServers\": {}}", "isolet cannot edit it"),
            (
                "{\"mcpServers\": {\"isolet\": {}, \"isolet\": {}}, \"a\": 1}",
                "isolet cannot edit it",
            ),
        ] {
            let error = added(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(added(&deep).is_err());
    }

    #[test]
    fn what_never_ends_is_no_panic() {
        let text = "{\"mcpServers\": {\"ü\": [\"\\u12\\\"\", /* c */ 1.5e+3, // d\n true]},}\n";
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            for part in [&text[..end], &text[end..]] {
                let _ = added(part);
            }
        }
    }
}
