//! Edits Codex's file of TOML. All that is not the servers' stays as it is.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Array, Document, DocumentMut, Item, Table};

/// The table of the servers.
const KEY: &str = "mcp_servers";

/// A file with servers, to be edited.
pub(super) struct Toml {
    text: String,
    /// The expected content of the file after the edits.
    expected: Value,
}

impl Toml {
    /// Reads a text. `Err` describes the mistake and shows nothing of the text, which may have
    /// secrets.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), expected: value(text)? })
    }

    /// Returns the servers.
    pub(super) fn servers(&self) -> Map<String, Value> {
        self.expected[KEY].as_object().cloned().unwrap_or_default()
    }

    /// Sets a server, of texts and lists of texts.
    pub(super) fn set(&mut self, name: &str, entry: &Value) -> Result<(), String> {
        let mut table = Table::new();
        for (key, value) in entry.as_object().into_iter().flatten() {
            table.insert(key, item(value));
        }
        let parsed = Document::parse(self.text.clone()).map_err(|_| no_toml())?;
        match parsed.get(KEY) {
            None => self.insert(self.text.len(), true, name, table),
            Some(Item::Table(servers)) => match servers.get(name) {
                None => {
                    let place = end_of(servers, &self.text).unwrap_or(self.text.len());
                    self.insert(place, true, name, table);
                }
                Some(Item::Table(there)) if !there.is_dotted() => {
                    let place = self.cut(there).unwrap_or(self.text.len());
                    self.insert(place, false, name, table);
                }
                Some(_) => self.edit(name, Some(table))?,
            },
            Some(_) => self.edit(name, Some(table))?,
        }
        self.expected[KEY][name] = entry.clone();
        Ok(())
    }

    /// Removes a server, with the comments in its lines and between them.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), String> {
        let parsed = Document::parse(self.text.clone()).map_err(|_| no_toml())?;
        match parsed.get(KEY).and_then(|servers| servers.as_table_like()?.get(name)) {
            None => {}
            Some(Item::Table(table)) if !table.is_dotted() => drop(self.cut(table)),
            Some(_) => self.edit(name, None)?,
        }
        if let Some(servers) = self.expected[KEY].as_object_mut() {
            servers.remove(name);
        }
        Ok(())
    }

    /// Returns the text after the edits. `Err` says why the file cannot be edited.
    pub(super) fn text(&self) -> Result<String, String> {
        if value(&self.text).as_ref() != Ok(&self.expected) {
            return Err(format!("isolet cannot edit its `{KEY}`, write the entry by hand"));
        }
        Ok(self.text.clone())
    }

    /// Puts a table with a header at the start of a line, with an empty line around it.
    fn insert(&mut self, place: usize, is_apart: bool, name: &str, table: Table) {
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.insert(name, Item::Table(table));
        let mut document = DocumentMut::new();
        document.insert(KEY, Item::Table(servers));
        let (before, after) = self.text.split_at(place);
        let is_windows = self.text.contains("\r\n");
        let mut block = document.to_string();
        if !before.is_empty() && !before.ends_with('\n') {
            block.insert_str(0, "\n\n");
        } else if is_apart && !before.is_empty() && !ends_empty(before) {
            block.insert(0, '\n');
        }
        if after.lines().next().is_some_and(|line| !line.trim().is_empty()) {
            block.push('\n');
        }
        if is_windows {
            block = block.replace('\n', "\r\n");
        }
        self.text.insert_str(place, &block);
    }

    /// Removes a table with a header. Returns where it began.
    fn cut(&mut self, table: &Table) -> Option<usize> {
        let mut cuts = Vec::new();
        tables(table, &mut cuts);
        cuts.sort_by_key(|cut| cut.start);
        // A table without a header of its own has the place of the first one in it.
        cuts.dedup_by(|next, cut| {
            let overlaps = next.start < cut.end;
            if overlaps {
                cut.end = cut.end.max(next.end);
            }
            overlaps
        });
        let mut start = None;
        for cut in cuts.into_iter().rev() {
            let cut = lines(&self.text, cut);
            start = Some(cut.start);
            self.text.replace_range(cut, "");
        }
        start
    }

    /// Sets or removes a server in a table without headers. The spaces in it may change.
    fn edit(&mut self, name: &str, table: Option<Table>) -> Result<(), String> {
        let mut document: DocumentMut = self.text.parse().map_err(|_| no_toml())?;
        let servers = document.get_mut(KEY).and_then(Item::as_table_like_mut);
        let servers = servers.ok_or_else(wrong_kind)?;
        match table {
            Some(table) => {
                let value = Item::Value(table.into_inline_table().into());
                servers.insert(name, value);
            }
            None => drop(servers.remove(name)),
        }
        let ends = self.text.matches('\n').count();
        let windows_ends = self.text.matches("\r\n").count();
        let text = document.to_string();
        // The editor knows one end of lines only.
        self.text = match windows_ends {
            0 => text,
            _ if windows_ends == ends => text.replace("\r\n", "\n").replace('\n', "\r\n"),
            _ => {
                return Err(format!(
                    "{windows_ends} of its {ends} lines end in CRLF and the others in LF, save it \
                     with the same ends everywhere"
                ));
            }
        };
        Ok(())
    }
}

fn no_toml() -> String {
    "it is no TOML".to_owned()
}

fn wrong_kind() -> String {
    format!("`{KEY}` is no table, it has to be one")
}

/// Returns the value of a text, with a table of servers.
fn value(text: &str) -> Result<Value, String> {
    let root: toml::Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        format!("it is no TOML, look at line {line}")
    })?;
    let mut root = serde_json::to_value(root).map_err(|_| no_toml())?;
    match root.get(KEY) {
        None => root[KEY] = Value::Object(Map::new()),
        Some(Value::Object(_)) => {}
        Some(_) => return Err(wrong_kind()),
    }
    Ok(root)
}

fn item(value: &Value) -> Item {
    match value {
        Value::Array(words) => {
            Item::Value(words.iter().filter_map(Value::as_str).collect::<Array>().into())
        }
        _ => toml_edit::value(value.as_str().unwrap_or_default()),
    }
}

/// Finds the places of a table with a header, and of those in it.
fn tables(table: &Table, found: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span().filter(|_| !table.is_dotted()) {
        found.push(header.start..last(table).max(header.end));
    }
    for (_, item) in table {
        match item {
            Item::Table(table) => tables(table, found),
            Item::ArrayOfTables(list) => list.iter().for_each(|table| tables(table, found)),
            Item::Value(_) | Item::None => {}
        }
    }
}

/// Returns the end of the last value below a header.
fn last(table: &Table) -> usize {
    let end = |(_, item): (&str, &Item)| match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(table) if table.is_dotted() => last(table),
        _ => 0,
    };
    table.iter().map(end).max().unwrap_or(0)
}

/// Returns where the tables of servers end, past the comments directly below. `None` if there is
/// no header of them.
fn end_of(servers: &Table, text: &str) -> Option<usize> {
    let mut places = Vec::new();
    tables(servers, &mut places);
    let last = places.into_iter().map(|place| place.end).max()?;
    let mut end = end_of_line(text, last);
    while text[end..].trim_start_matches([' ', '\t']).starts_with('#') {
        end = end_of_line(text, end);
    }
    Some(end)
}

/// Returns the whole lines of a place, and one empty line if there is one on both sides.
fn lines(text: &str, place: Range<usize>) -> Range<usize> {
    let start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let end = end_of_line(text, place.end);
    let next = end_of_line(text, end);
    let is_empty = |line: &str| line.trim().is_empty();
    let both = (start == 0 || ends_empty(&text[..start])) && is_empty(&text[end..next]);
    if both { start..next } else { start..end }
}

fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

fn ends_empty(text: &str) -> bool {
    text.ends_with("\n\n") || text.ends_with("\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> Result<String, String> {
        let mut toml = Toml::parse(text)?;
        toml.set("isolet", &serde_json::json!({"command": "/x\"\u{1}", "args": ["mcp", "a b"]}))?;
        toml.text()
    }

    #[test]
    fn everything_else_is_kept() {
        let entry = "[mcp_servers.isolet]\n";
        for text in [
            "",
            "model = \"m\"\n",
            "model = \"m\"",
            "[mcp_servers.x]\ncommand = 'a'\n# args = []\n[z]\n",
            "# c\n[mcp_servers.x]\ncommand = 'a' # k\n\n[z]\na=1\n# end\n",
            "a = nan\n# c\n[mcp_servers]\n\n[ mcp_servers . x ]\ncommand='q'\n",
            "[mcp_servers]\nx = {command = \"y\"}\n",
            "mcp_servers.x.command = \"y\"\nb = 1\n",
        ] {
            for text in [text.to_owned(), text.replace('\n', "\r\n")] {
                let new = added(&text).unwrap();
                let entry =
                    if text.contains('\r') { entry.replace('\n', "\r\n") } else { entry.into() };
                let at = new.find(&entry).unwrap();
                // The entry has three lines, and an empty one before or after it.
                let end = new[at..].match_indices('\n').nth(2).unwrap().0 + at + 1;
                let rest = format!("{}{}", &new[..at], &new[end..]);
                let lines = |text: &str| {
                    let lines = text.lines().filter(|line| !line.is_empty());
                    lines.collect::<Vec<_>>().join("\n")
                };
                assert_eq!(lines(&rest), lines(&text), "{new}");
                let ends = |end: &str| new.matches(end).count();
                assert!(!text.contains('\r') || ends("\r\n") == ends("\n"), "{new:?}");
                assert_eq!(added(&new).unwrap(), new);
            }
        }
        let inline = added("mcp_servers = {x = {command = \"y\"}} # c\n").unwrap();
        assert!(inline.starts_with("mcp_servers = {x = {command = \"y\"}, isolet = {"), "{inline}");
        assert!(inline.ends_with(" # c\n"), "{inline}");
    }

    #[test]
    fn an_entry_is_replaced_in_its_place() {
        let text = "# mine\n[mcp_servers.isolet] # h\ncommand = \"old\"\n\
                    [mcp_servers.isolet.env]\nA=\"1\"\n\n[z]\n";
        let new = added(text).unwrap();
        assert!(new.starts_with("# mine\n[mcp_servers.isolet]\ncommand = "), "{new}");
        assert!(new.ends_with("]\n\n[z]\n") && !new.contains("env"), "{new}");
    }

    #[test]
    fn an_entry_without_a_header_of_its_own_is_replaced() {
        let text = "mcp_servers.a.command = \"b\"\n[mcp_servers.isolet.env]\nA = \"1\"\n\
                    [mcp_servers.isolet.more.still]\nB = \"2\"\n[z]\n";
        let new = added(text).unwrap();
        assert!(new.starts_with("mcp_servers.a.command = \"b\"\n"), "{new}");
        assert!(new.ends_with("[z]\n") && !new.contains("env") && !new.contains("more"), "{new}");
        let mut toml = Toml::parse(text).unwrap();
        toml.remove("isolet").unwrap();
        assert_eq!(toml.text().unwrap(), "mcp_servers.a.command = \"b\"\n[z]\n");
    }

    #[test]
    fn what_is_removed_leaves_everything_else() {
        let before = "# top\n\n# about a\n";
        let a = "[mcp_servers.a] # t\ncommand = \"a\" # k\n# in\nenv.Y = \"2\"\n\n";
        let middle = "[z]\nb = 1\n\n";
        let more = "[mcp_servers.a.more]\nX = \"1\"\n";
        let after = "# end\n\n[mcp_servers.b]\nx=1\n";
        let mut toml = Toml::parse(&[before, a, middle, more, after].concat()).unwrap();
        toml.remove("a").unwrap();
        toml.remove("none").unwrap();
        assert_eq!(
            toml.text().unwrap().replace("\n\n", "\n"),
            [before, middle, after].concat().replace("\n\n", "\n")
        );
        toml.remove("b").unwrap();
        assert!(toml.text().unwrap().ends_with("# end\n\n"));
        for text in ["mcp_servers = {a = {command = \"y\"}, z = {}}\n", "mcp_servers.a.b = 1\n"] {
            let mut toml = Toml::parse(text).unwrap();
            toml.remove("a").unwrap();
            assert!(!toml.text().unwrap().contains('a'), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (text, said) in [
            ("a = 1\nb =\n", "it is no TOML, look at line 2"),
            ("mcp_servers = 3\n", "`mcp_servers` is no table"),
            ("[[mcp_servers]]\n", "`mcp_servers` is no table"),
            ("mcp_servers = {}\r\nb = 2\n", "1 of its 2 lines end in CRLF"),
        ] {
            let error = added(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
        assert!(added(&format!("a = {}", "[".repeat(100_000))).is_err());
    }

    #[test]
    fn what_never_ends_is_no_panic() {
        let text = "a.\"ü\" = \"\"\"x\n\"\"\" # c\n[mcp_servers.'b c'.d]\nx = [1, {y = 1.5}]\n";
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            for part in [&text[..end], &text[end..]] {
                let _ = added(part);
            }
        }
    }
}
