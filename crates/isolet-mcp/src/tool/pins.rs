//! Pins: the definitions of a server's tools when the user first saw them. A tool that has changed,
//! or is new, is refused until the user accepts it.
//!
//! A pin is the SHA-256 of the tool's canonical JSON: name, title, description, schemas and
//! annotations. The set of names is pinned with them, because a changed tool could come under a new
//! name.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::support::store;
use crate::tool::definition::Definition;

/// The pins of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pins {
    /// For a person who looks at the file.
    server: String,
    tools: BTreeMap<String, String>,
}

/// The changes since the user accepted a server's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinDiff {
    /// The tools that are new.
    pub added: Vec<String>,
    /// The tools whose description, schema or annotations are different.
    pub changed: Vec<String>,
    /// The tools that are gone.
    pub removed: Vec<String>,
}

impl PinDiff {
    /// Returns `true` if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    /// Returns why a tool is refused, if it is.
    pub(crate) fn refuses(&self, tool: &str) -> Option<&'static str> {
        let has = |names: &[String]| names.iter().any(|name| name == tool);
        if has(&self.added) {
            return Some("is new");
        }
        has(&self.changed).then_some("has changed")
    }
}

/// The file with the pins of one server.
#[derive(Clone, Debug)]
pub(crate) struct PinFile {
    path: PathBuf,
    server: String,
}

impl PinFile {
    pub(crate) fn new(path: PathBuf, server: &str) -> Self {
        Self { path, server: server.to_owned() }
    }

    /// Compares tools with the pins. The first time, they become the pins.
    pub(crate) fn check(&self, tools: &[Definition]) -> io::Result<PinDiff> {
        match store::read::<Pins>(&self.path) {
            Some(pins) => Ok(diff(&pins, tools)),
            // A file that cannot be read is not the first time.
            None if self.path.exists() => Ok(diff(&Pins::default(), tools)),
            None => self.accept(tools).map(|()| PinDiff::default()),
        }
    }

    /// Makes tools the pins.
    pub(crate) fn accept(&self, tools: &[Definition]) -> io::Result<()> {
        let pin = |tool: &Definition| (tool.name.clone(), tool.digest());
        let tools = tools.iter().map(pin).collect();
        store::write(&self.path, &Pins { server: self.server.clone(), tools })
    }
}

fn diff(pins: &Pins, tools: &[Definition]) -> PinDiff {
    let mut diff = PinDiff::default();
    for tool in tools {
        match pins.tools.get(&tool.name) {
            None => diff.added.push(tool.name.clone()),
            Some(pin) if *pin != tool.digest() => diff.changed.push(tool.name.clone()),
            Some(_) => {}
        }
    }
    let is_gone = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
    diff.removed = pins.tools.keys().filter(is_gone).cloned().collect();
    diff
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> Definition {
        Definition::from_json(json!({"name": name, "description": description})).unwrap()
    }

    #[test]
    fn tools_are_trusted_on_first_use_and_changes_until_accepted_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let pins = PinFile::new(directory.path().join("x/pins.json"), "s");
        let first = [tool("a", "A."), tool("b", "B."), tool("c", "C.")];
        assert!(pins.check(&first).unwrap().is_empty());
        let now = [tool("a", "A."), tool("b", "Send it to me."), tool("d", "D.")];
        for _ in 0..2 {
            let diff = pins.check(&now).unwrap();
            assert_eq!(diff.refuses("a"), None);
            assert_eq!(diff.refuses("b"), Some("has changed"));
            assert_eq!(diff.refuses("d"), Some("is new"));
            assert_eq!(diff.removed, ["c"]);
        }
        pins.accept(&now).unwrap();
        assert!(pins.check(&now).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_trusts_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pins.json");
        std::fs::write(&path, "{").unwrap();
        let diff = PinFile::new(path, "s").check(&[tool("a", "A.")]).unwrap();
        assert_eq!(diff.refuses("a"), Some("is new"));
    }
}
