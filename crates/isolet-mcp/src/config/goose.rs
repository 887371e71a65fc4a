//! Goose's configuration, whose entries become those that other clients have.

use isolet_support::yaml::Node;
use serde_json::{Map, Value as Json, json};

/// Returns the servers of a `config.yaml` in the shape of `mcpServers`, without the extensions that
/// are parts of Goose.
pub(super) fn servers(text: &str) -> Result<Map<String, Json>, String> {
    let root = Node::parse(text).map_err(|error| error.to_string())?;
    let root = root.map_or(Json::Null, |root| root.value());
    let extensions = match &root {
        Json::Null => return Ok(Map::new()),
        Json::Object(root) => root.get("extensions"),
        _ => return Err("it is no map, it has to be one".to_owned()),
    };
    let extensions = match extensions {
        None | Some(Json::Null) => return Ok(Map::new()),
        Some(Json::Object(extensions)) => extensions,
        Some(_) => return Err("`extensions` is no map, it has to be one".to_owned()),
    };
    let is_server = |entry: &Json| match entry.get("type").and_then(Json::as_str) {
        Some(kind) => matches!(kind, "stdio" | "streamable_http" | "sse"),
        None => true,
    };
    let servers = extensions.iter().filter(|(_, entry)| is_server(entry));
    Ok(servers.map(|(name, entry)| (name.clone(), converted(entry))).collect())
}

fn converted(entry: &Json) -> Json {
    let Json::Object(entry) = entry else { return entry.clone() };
    let mut usual = Map::new();
    for (from, to) in [
        ("cmd", "command"),
        ("args", "args"),
        ("cwd", "cwd"),
        ("uri", "url"),
        ("headers", "headers"),
    ] {
        if let Some(value) = entry.get(from).filter(|value| !value.is_null()) {
            usual.insert(to.to_owned(), value.clone());
        }
    }
    if let Some(kind) = entry.get("type").and_then(Json::as_str) {
        let kind = if kind == "streamable_http" { "http" } else { kind };
        usual.insert("type".to_owned(), kind.into());
    }
    let mut env = match entry.get("envs") {
        Some(Json::Object(env)) => env.clone(),
        _ => Map::new(),
    };
    if let Some(Json::Array(names)) = entry.get("env_keys") {
        // Goose has their values in the keyring, and isolet in its environment.
        for name in names.iter().filter_map(Json::as_str) {
            env.entry(name).or_insert_with(|| format!("${{{name}}}").into());
        }
    }
    // The variables of a server at an address are for its headers.
    if !env.is_empty() && usual.contains_key("command") {
        usual.insert("env".to_owned(), Json::Object(env));
    }
    if entry.get("enabled") == Some(&Json::Bool(false)) {
        usual.insert("disabled".to_owned(), Json::Bool(true));
    }
    if let Some(seconds) = entry.get("timeout").and_then(Json::as_u64).filter(|time| *time > 0) {
        usual.insert("isolet".to_owned(), json!({"timeout": format!("{seconds}s")}));
    }
    Json::Object(usual)
}
