//! Files of other clients' configurations, which `isolet mcp add` edits.

#[path = "../../crates/isolet-cli/src/mcp/add/halves.rs"]
mod halves;
#[path = "../../crates/isolet-cli/src/mcp/add/json.rs"]
mod json;
#[path = "../../crates/isolet-cli/src/mcp/add/toml.rs"]
mod toml_file;

use isolet::fuzzing::measured;
use json::Json;
use serde_json::{Map, Value, json};
use toml_file::Toml;

/// How many times its length a file may take, and what it may take besides.
const FACTOR: usize = 4000;
const FIXED: usize = 1 << 20;
/// The server that is added.
const NAME: &str = "isolet";

/// Edits the bytes, by their first one, as JSON with comments or as TOML. A server that is set is
/// there, and the others are as before; one that is removed is gone; an error shows nothing of the
/// text.
pub fn client_config(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (edited, used) = measured(|| if kind % 2 == 0 { of_json(text) } else { of_toml(text) });
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    if let Err(reason) = edited {
        assert!(!reason.is_empty() && !reason.contains('\n') && reason.len() < 400, "{reason:?}");
    }
}

fn entry() -> Value {
    json!({"command": "isolet", "args": ["mcp", "it's", "a \"b\""]})
}

fn of_json(text: &str) -> Result<(), String> {
    let mut file = Json::parse(text, "mcpServers")?;
    let before = file.servers();
    let _ = file.all_servers();
    file.set(NAME, &entry())?;
    let with = Json::parse(&file.text()?, "mcpServers")?.servers();
    is_set(&before, &with);
    file.remove(NAME)?;
    let without = Json::parse(&file.text()?, "mcpServers")?.servers();
    is_removed(&before, &without);
    let _ = Json::parse_own(text)?;
    Ok(())
}

fn of_toml(text: &str) -> Result<(), String> {
    let mut file = Toml::parse(text)?;
    let before = file.servers();
    file.set(NAME, &entry())?;
    let with = Toml::parse(&file.text()?)?.servers();
    is_set(&before, &with);
    file.remove(NAME)?;
    let without = Toml::parse(&file.text()?)?.servers();
    is_removed(&before, &without);
    Ok(())
}

fn is_set(before: &Map<String, Value>, with: &Map<String, Value>) {
    assert_eq!(with.get(NAME), Some(&entry()));
    let others =
        |servers: &Map<String, Value>| servers.iter().filter(|(name, _)| *name != NAME).count();
    assert_eq!(others(before), others(with));
    assert!(before.iter().all(|(name, server)| name == NAME || with.get(name) == Some(server)));
}

fn is_removed(before: &Map<String, Value>, without: &Map<String, Value>) {
    assert_eq!(without.get(NAME), None);
    let is_kept =
        |(name, server): (&String, &Value)| name == NAME || without.get(name) == Some(server);
    assert!(before.iter().all(is_kept));
}
