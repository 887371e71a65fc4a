//! Edits Goose's file of YAML. All that is not the servers' stays as it is.

use std::ops::Range;

use isolet_support::yaml::{Entry, Kind, Mapping, Node};
use serde_json::{Map, Value};

/// The map of the servers.
const KEY: &str = "extensions";

/// How far an entry is indented where nothing says it.
const STEP: usize = 2;

/// A file with servers, to be edited.
pub(super) struct Yaml {
    text: String,
    /// The expected content of the file after the edits.
    expected: Value,
}

impl Yaml {
    /// Reads a text. `Err` describes the mistake and shows nothing of the text, which may have
    /// secrets.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), expected: value(text)? })
    }

    /// Returns the servers.
    pub(super) fn servers(&self) -> Map<String, Value> {
        self.expected[KEY].as_object().cloned().unwrap_or_default()
    }

    /// Sets a server.
    pub(super) fn set(&mut self, name: &str, entry: &Value) -> Result<(), String> {
        self.expected[KEY][name] = entry.clone();
        let root = root(&self.text)?;
        let Some(root) = root else {
            let block = format!("{KEY}:\n{}", block(name, entry, STEP, STEP));
            self.insert(self.text.len(), &block);
            return Ok(());
        };
        let Kind::Map(root) = &root.kind else { return Err(wrong_kind("it")) };
        match root.get(KEY) {
            None if root.is_flow => self.append_flow(root, KEY, &single(name, entry)),
            None => {
                let indent = root.entries.first().map_or(0, |first| column(&self.text, first));
                let inner = block(name, entry, indent + STEP, STEP);
                let block = format!("{:indent$}{KEY}:\n{inner}", "");
                self.insert(end_of_document(&self.text, root), &block);
            }
            Some(servers) => self.set_in(servers, name, entry)?,
        }
        Ok(())
    }

    fn set_in(&mut self, servers: &Entry, name: &str, entry: &Value) -> Result<(), String> {
        let place = servers.value.place.clone();
        match &servers.value.kind {
            Kind::Map(map) if map.is_flow && !map.entries.is_empty() => match map.get(name) {
                Some(there) => {
                    let place = there.value.place.clone();
                    if place.is_empty() {
                        return Err(by_hand());
                    }
                    self.text.replace_range(place, &entry.to_string());
                }
                None => self.append_flow(map, name, entry),
            },
            Kind::Map(map) if !map.is_flow => {
                let indent = map.entries.first().map_or(STEP, |first| column(&self.text, first));
                let text = block(name, entry, indent, step(&self.text, map, indent));
                let place = match map.get(name) {
                    Some(there) => self.cut(there)?,
                    None => end_of(&self.text, place.end, indent),
                };
                self.insert(place, &text);
            }
            // A map without entries, or null.
            Kind::Map(_) | Kind::Scalar(_) => {
                let indent = column(&self.text, servers) + STEP;
                let mut end = servers.place.end;
                if !place.is_empty() {
                    let before = &self.text[..place.start];
                    let start = before.trim_end_matches([' ', '\t']).len();
                    self.text.replace_range(start..place.end, "");
                    end = start;
                }
                let place = end_of_line(&self.text, end);
                self.insert(place, &block(name, entry, indent, STEP));
            }
            Kind::List(_) => return Err(wrong_kind(&format!("`{KEY}`"))),
        }
        Ok(())
    }

    /// Removes a server. The comments around it stay.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), String> {
        if let Some(servers) = self.expected[KEY].as_object_mut() {
            servers.remove(name);
        }
        let root = root(&self.text)?;
        let Some(Kind::Map(root)) = root.map(|root| root.kind) else { return Ok(()) };
        let Some(Kind::Map(map)) = root.get(KEY).map(|servers| &servers.value.kind) else {
            return Ok(());
        };
        let Some(at) = map.entries.iter().position(|entry| entry.key == name) else {
            return Ok(());
        };
        let there = &map.entries[at];
        if !map.is_flow {
            self.cut(there)?;
            return Ok(());
        }
        let end = there.value.place.end.max(there.place.end);
        // With the comma between it and one of the others.
        let place = match (at.checked_sub(1), map.entries.get(at + 1)) {
            (_, Some(next)) => there.place.start..next.place.start,
            (Some(before), None) => {
                let before = &map.entries[before];
                before.value.place.end.max(before.place.end)..end
            }
            (None, None) => there.place.start..end,
        };
        self.text.replace_range(place, "");
        Ok(())
    }

    /// Returns the text after the edits. `Err` says why the file cannot be edited.
    pub(super) fn text(&self) -> Result<String, String> {
        if value(&self.text).as_ref() == Ok(&self.expected) {
            return Ok(self.text.clone());
        }
        Err(by_hand())
    }

    /// Puts lines at the start of a line.
    fn insert(&mut self, place: usize, lines: &str) {
        let is_open = self.text[..place].chars().next_back().is_some_and(|last| last != '\n');
        let mut lines = if is_open { format!("\n{lines}") } else { lines.to_owned() };
        if self.text.contains("\r\n") {
            lines = lines.replace('\n', "\r\n");
        }
        self.text.insert_str(place, &lines);
    }

    fn append_flow(&mut self, map: &Mapping, key: &str, value: &Value) {
        let member = format!("{}: {value}", Value::from(key));
        if let Some(last) = map.entries.last() {
            let end = last.value.place.end.max(last.place.end);
            self.text.insert_str(end, &format!(", {member}"));
        } else {
            // A root without entries: `text` finds out where it cannot be.
            let at = self.text.find('{').map_or(self.text.len(), |at| at + 1);
            self.text.insert_str(at, &member);
        }
    }

    /// Removes the lines of an entry. Returns where they began.
    fn cut(&mut self, entry: &Entry) -> Result<usize, String> {
        let Range { start, end } = lines(&self.text, entry)?;
        self.text.replace_range(start..end, "");
        Ok(start)
    }
}

fn by_hand() -> String {
    format!("isolet cannot edit its `{KEY}`, write the entry by hand")
}

fn wrong_kind(what: &str) -> String {
    format!("{what} is no map, it has to be one")
}

fn root(text: &str) -> Result<Option<Node>, String> {
    Node::parse(text).map_err(|error| error.to_string())
}

/// Returns the value of a text, with a map of servers.
fn value(text: &str) -> Result<Value, String> {
    let mut root = match root(text)? {
        None => Value::Object(Map::new()),
        Some(root) => root.value(),
    };
    if !root.is_object() {
        return Err(wrong_kind("it"));
    }
    match root.get(KEY) {
        None | Some(Value::Null) => root[KEY] = Value::Object(Map::new()),
        Some(Value::Object(_)) => {}
        Some(_) => return Err(wrong_kind(&format!("`{KEY}`"))),
    }
    Ok(root)
}

/// Returns an entry in lines of its own. `step` is how far its keys are from its name.
fn block(name: &str, entry: &Value, indent: usize, step: usize) -> String {
    let inner = indent + step;
    let mut lines = vec![format!("{:indent$}{}:", "", scalar(&name.into()))];
    for (key, value) in entry.as_object().into_iter().flatten() {
        match value.as_array().filter(|items| !items.is_empty()) {
            None => lines.push(format!("{:inner$}{key}: {}", "", scalar(value))),
            Some(items) => {
                lines.push(format!("{:inner$}{key}:", ""));
                lines.extend(items.iter().map(|item| format!("{:inner$}- {}", "", scalar(item))));
            }
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns a value in one line: as a plain text if nobody could read that as another one, else as
/// JSON, which YAML has in it.
fn scalar(value: &Value) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "/._ -".contains(letter);
    match value.as_str() {
        Some(text)
            if text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
                && !text.ends_with(' ')
                && text.chars().all(is_safe)
                && !is_word(text) =>
        {
            text.to_owned()
        }
        _ => value.to_string(),
    }
}

/// Whether some version of YAML has another value for a text.
fn is_word(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn single(name: &str, entry: &Value) -> Value {
    let mut servers = Map::new();
    servers.insert(name.to_owned(), entry.clone());
    Value::Object(servers)
}

/// Returns how far an entry is from the start of its line, in bytes.
fn column(text: &str, entry: &Entry) -> usize {
    entry.place.start - start_of_line(text, entry.place.start)
}

/// Returns how far the keys of the entries are from the entries, as the first one has it.
fn step(text: &str, map: &Mapping, indent: usize) -> usize {
    let first = map.entries.iter().find_map(|entry| match &entry.value.kind {
        Kind::Map(inner) if !inner.is_flow => inner.entries.first(),
        _ => None,
    });
    let step = first.map_or(0, |first| column(text, first).saturating_sub(indent));
    if step == 0 { STEP } else { step }
}

/// Returns the whole lines of an entry. `Err` if it shares the first one with something else.
fn lines(text: &str, entry: &Entry) -> Result<Range<usize>, String> {
    let start = start_of_line(text, entry.place.start);
    if !text[start..entry.place.start].trim().is_empty() {
        return Err(by_hand());
    }
    let value = &entry.value.place;
    let end = if value.is_empty() { entry.place.end } else { value.end };
    Ok(start..end_of_lines(text, end))
}

/// Returns where a map ends, past the comments directly below that belong to it.
fn end_of(text: &str, end: usize, indent: usize) -> usize {
    let mut end = end_of_lines(text, end);
    loop {
        let line = &text[end..end_of_line(text, end)];
        let comment = line.trim_start_matches(' ');
        if !comment.starts_with('#') || line.len() - comment.len() < indent {
            return end;
        }
        end += line.len();
    }
}

/// Returns where a root ends: the end of the text, but for a mark of the document's end.
fn end_of_document(text: &str, root: &Mapping) -> usize {
    let last = root.entries.last();
    let last = last.map_or(0, |last| last.place.end.max(last.value.place.end));
    let mark = text.get(last..).and_then(|rest| rest.find("\n..."));
    mark.map_or(text.len(), |at| last + at + 1)
}

/// Returns the end of the line in which a value ends. That of a text in lines of its own is at the
/// start of the next one.
fn end_of_lines(text: &str, end: usize) -> usize {
    if text[..end].ends_with('\n') { end } else { end_of_line(text, end) }
}

fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

fn start_of_line(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |before| before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry() -> Value {
        json!({"enabled": true, "type": "stdio", "cmd": "/x \"y", "args": ["mcp", "--a: b"],
               "timeout": 300})
    }

    fn added(text: &str) -> Result<String, String> {
        let mut yaml = Yaml::parse(text)?;
        yaml.set("isolet", &entry())?;
        yaml.text()
    }

    const LINES: &str = "  isolet:\n    enabled: true\n    type: stdio\n    cmd: \"/x \\\"y\"\n    \
                         args:\n    - mcp\n    - \"--a: b\"\n    timeout: 300\n";

    #[test]
    fn everything_else_is_kept() {
        let fetch = "  fetch: # mine\n    cmd: 'uvx'\n    args: [a, \"b\"]\n    # args: []\n";
        for (before, after) in [
            ("# top\nGOOSE_MODEL: m # c\nextensions:\n", ""),
            (&format!("extensions:\n{fetch}"), "\n# end\nGOOSE_MODE: auto\n"),
            (&format!("---\nextensions:\n\n{fetch}  # of the map\n"), "# of the root\nz: 1\n"),
            ("extensions:\n  a:\n    d: |\n      text\n      # text\n", "z: >-\n  x\n"),
            ("extensions:\n  a:\n  b: null\n", "# c\nz:\n"),
            ("extensions: # all\n", "z: 1\n"),
        ] {
            for end in ["\n", "\r\n"] {
                let text = format!("{before}{after}").replace('\n', end);
                let new = added(&text).unwrap();
                assert_eq!(new, format!("{before}{LINES}{after}").replace('\n', end), "{text}");
                assert_eq!(added(&new).unwrap(), new);
                let mut yaml = Yaml::parse(&new).unwrap();
                yaml.remove("isolet").unwrap();
                assert_eq!(yaml.text().unwrap(), text);
            }
        }
    }

    #[test]
    fn a_file_without_servers_gets_them() {
        let all = format!("extensions:\n{LINES}");
        for (text, new) in [
            ("", all.clone()),
            ("# only\n", format!("# only\n{all}")),
            ("a: 1", format!("a: 1\n{all}")),
            ("a: 1\n# end\n", format!("a: 1\n# end\n{all}")),
            ("a: 1\n...\n", format!("a: 1\n{all}...\n")),
            ("extensions: {} # c\nb: 2\n", format!("extensions: # c\n{LINES}b: 2\n")),
            ("extensions: ~\nb: 2\n", format!("extensions:\n{LINES}b: 2\n")),
            ("extensions:\n", all.clone()),
        ] {
            assert_eq!(added(text), Ok(new), "{text}");
        }
    }

    #[test]
    fn maps_with_brackets_keep_them() {
        let json = entry().to_string();
        for (text, new) in [
            (
                "extensions: {a: {cmd: x}} # c\n",
                format!("extensions: {{a: {{cmd: x}}, \"isolet\": {json}}} # c\n"),
            ),
            (
                "{\"a\": 1, \"extensions\": {\"b\": 2,}}\n",
                format!("{{\"a\": 1, \"extensions\": {{\"b\": 2, \"isolet\": {json},}}}}\n"),
            ),
            ("{a: 1}", format!("{{a: 1, \"extensions\": {{\"isolet\":{json}}}}}")),
            ("{}", format!("{{\"extensions\": {{\"isolet\":{json}}}}}")),
            (
                "extensions: {isolet: {cmd: y}, b: 2}\n",
                format!("extensions: {{isolet: {json}, b: 2}}\n"),
            ),
        ] {
            assert_eq!(added(text), Ok(new), "{text}");
        }
        for (text, left) in [
            ("extensions: {a: 1, b: 2, c: 3}\n", "extensions: {a: 1, c: 3}\n"),
            ("extensions: {b: 2, c: 3}\n", "extensions: {c: 3}\n"),
            ("extensions: {a: 1, b: 2}\n", "extensions: {a: 1}\n"),
            ("extensions: {b: 2}\n", "extensions: {}\n"),
        ] {
            let mut yaml = Yaml::parse(text).unwrap();
            yaml.remove("b").unwrap();
            assert_eq!(yaml.text().as_deref(), Ok(left));
        }
    }

    #[test]
    fn an_entry_is_replaced_in_its_place() {
        let b = "    b:\n        cmd: x\n";
        let text = format!(
            "extensions:\n    # mine\n    isolet: # k\n        cmd: old\n        # in\n{b}"
        );
        let new = added(&text).unwrap();
        assert!(new.starts_with("extensions:\n    # mine\n    isolet:\n        enabled: true\n"));
        assert!(
            new.ends_with("        timeout: 300\n        # in\n    b:\n        cmd: x\n"),
            "{new}"
        );
        let mut yaml = Yaml::parse(&text).unwrap();
        yaml.remove("b").unwrap();
        yaml.remove("none").unwrap();
        assert_eq!(yaml.text().unwrap(), text.replace(b, ""));
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (text, said) in [
            ("a: 1\nb: [\n", "it is no YAML, look at line"),
            ("- a\n", "it is no map"),
            ("extensions: 3\n", "`extensions` is no map"),
            ("extensions: [a]\n", "`extensions` is no map"),
            ("extensions: &x\n  a: 1\nb: *x\n", "it has an alias"),
            ("extensions: {}\nextensions: {}\n", "it has a key twice"),
            ("extensions:\n  ? isolet\n  : x\n", "isolet cannot edit its `extensions`"),
        ] {
            let error = added(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }

    #[test]
    fn what_never_ends_is_no_panic() {
        let text =
            "extensions:\n  \"ü\": {a: [1, 'd'], # c\n    b: |\n  }\n  isolet:\n   - x\n? z\n: g\n";
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            for part in [&text[..end], &text[end..]] {
                let _ = added(part);
                if let Ok(mut yaml) = Yaml::parse(part) {
                    let _ = yaml.remove("isolet").and_then(|()| yaml.text());
                }
            }
        }
    }

    #[test]
    fn texts_that_yaml_reads_as_something_else_are_quoted() {
        for (text, shown) in [
            ("mcp", "mcp"),
            ("/a b/c.d", "/a b/c.d"),
            ("--with", "\"--with\""),
            ("No", "\"No\""),
            ("1", "\"1\""),
            ("a: b", "\"a: b\""),
            ("", "\"\""),
            ("a ", "\"a \""),
        ] {
            assert_eq!(scalar(&text.into()), shown);
        }
    }
}
