//! Codex's configuration, whose entries become those that other clients have.

use serde_json::{Map, Value as Json, json};

/// Returns the servers of a `config.toml` in the shape of `mcpServers`.
pub(super) fn servers(text: &str) -> Result<Map<String, Json>, String> {
    // The error of the parser shows the line, which may have a secret.
    let root: toml::Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        format!("it is no TOML, look at line {line}")
    })?;
    let servers = match root.get("mcp_servers") {
        None => return Ok(Map::new()),
        Some(toml::Value::Table(servers)) => servers,
        Some(_) => return Err("`mcp_servers` is no table".to_owned()),
    };
    let entry = |(name, entry): (&String, &toml::Value)| {
        let entry = serde_json::to_value(entry).unwrap_or(Json::Null);
        (name.clone(), converted(entry))
    };
    Ok(servers.iter().map(entry).collect())
}

fn converted(entry: Json) -> Json {
    let Json::Object(mut entry) = entry else { return entry };
    if entry.get("enabled") == Some(&Json::Bool(false)) {
        entry.insert("disabled".to_owned(), Json::Bool(true));
    }
    if let Some(Json::Array(names)) = entry.remove("env_vars") {
        let names = names.iter().filter_map(Json::as_str);
        // Unset variables are not passed on.
        insert(&mut entry, "env", names.map(|name| (name.to_owned(), format!("${{{name}:-}}"))));
    }
    if let Some(Json::Object(headers)) = entry.remove("http_headers") {
        entry.insert("headers".to_owned(), Json::Object(headers));
    }
    if let Some(Json::Object(headers)) = entry.remove("env_http_headers") {
        let headers = headers.into_iter().filter_map(|(name, variable)| {
            Some((name, format!("${{env:{}}}", variable.as_str()?)))
        });
        insert(&mut entry, "headers", headers.collect::<Vec<_>>());
    }
    if let Some(Json::String(name)) = entry.remove("bearer_token_env_var") {
        let header = ("Authorization".to_owned(), format!("Bearer ${{env:{name}}}"));
        insert(&mut entry, "headers", [header]);
    }
    let mut rules = Map::new();
    if let Some(seconds) = entry.get("tool_timeout_sec").filter(|seconds| seconds.is_number()) {
        rules.insert("timeout".to_owned(), json!(format!("{seconds}s")));
    }
    if let Some(names) = entry.get("disabled_tools").filter(|names| names.is_array()) {
        rules.insert("deny".to_owned(), names.clone());
    }
    if !rules.is_empty() {
        entry.insert("isolet".to_owned(), Json::Object(rules));
    }
    Json::Object(entry)
}

fn insert(
    entry: &mut Map<String, Json>,
    key: &str,
    pairs: impl IntoIterator<Item = (String, String)>,
) {
    let target = entry.entry(key).or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(target) = target {
        target.extend(pairs.into_iter().map(|(name, value)| (name, Json::String(value))));
    }
}
