//! Reads the entries of a configuration. Keys that are another client's are ignored; a wrong type
//! of a known key is an error that names the key.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::server::{ServerConfig, Transport};
use super::{Environment, Origin};
use isolet_support::template::Template;

/// Returns the entries of the servers by name.
pub(super) fn entries(
    root: &Map<String, Json>,
) -> Result<impl Iterator<Item = (&str, &Json)> + use<'_>, String> {
    let mut found = Vec::new();
    for key in ["mcpServers", "servers"] {
        match root.get(key) {
            None => {}
            Some(Json::Object(servers)) => found.push(servers),
            Some(other) => {
                return Err(format!("`{key}` is {}, it has to be an object", kind(other)));
            }
        }
    }
    Ok(found.into_iter().flatten().map(|(name, entry)| (name.as_str(), entry)))
}

/// Reads a server. Returns `None` if it is isolet itself, which would call itself for ever.
pub(super) fn server(
    name: &str,
    entry: &Json,
    environment: &Environment,
    origin: Origin,
) -> Result<Option<ServerConfig>, String> {
    let Json::Object(entry) = entry else {
        return Err(format!("it is {}, it has to be an object", kind(entry)));
    };
    if name.is_empty() {
        return Err("its name is empty".to_owned());
    }
    let entry = Entry { keys: entry, environment, origin };
    let transport = entry.transport()?;
    if is_isolet(&transport) {
        return Ok(None);
    }
    let mut server = ServerConfig::new(name.to_owned(), transport);
    server.environment = environment.clone();
    // Some clients have the one key, others the other.
    server.disabled = entry.flag("disabled")? || entry.optional_flag("enabled")? == Some(false);
    if let Some(rules) = entry.keys.get("isolet") {
        let Json::Object(rules) = rules else {
            return Err(format!("`isolet` is {}, it has to be an object", kind(rules)));
        };
        let rules = Entry { keys: rules, ..entry };
        let in_rules = |reason: String| format!("in `isolet`, {reason}");
        server.allow = rules.texts("allow").map_err(in_rules)?;
        server.ask = rules.texts("ask").map_err(in_rules)?;
        server.deny = rules.texts("deny").map_err(in_rules)?;
        server.max_calls = rules.count("maxCalls").map_err(in_rules)?;
        let bytes = rules.count("maxAnswerBytes").map_err(in_rules)?;
        server.max_answer_bytes = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        server.timeout = rules.duration("timeout").map_err(in_rules)?;
        server.trust_hints = rules.flag("trustHints").map_err(in_rules)?;
        // A policy that is misspelt would be weaker than the one that was meant.
        let known = ["allow", "ask", "deny", "maxAnswerBytes", "maxCalls", "timeout", "trustHints"];
        if let Some(key) = rules.keys.keys().find(|key| !known.contains(&key.as_str())) {
            let known = known.join(", ");
            return Err(in_rules(format!("`{key}` is unknown, the keys are {known}")));
        }
    }
    Ok(Some(server))
}

/// Returns the kind of a value of JSON, for a message.
pub(super) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// Reads a file of `NAME=VALUE` lines.
pub(super) fn env_file(path: &Path) -> Result<Vec<(String, String)>, String> {
    let shown = path.display();
    let text = super::read_file(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("line {} of `{shown}` is not NAME=VALUE", index + 1));
        };
        let value = value.trim();
        let unquoted = ['"', '\''].iter().find_map(|quote| {
            value.strip_prefix(*quote).and_then(|value| value.strip_suffix(*quote))
        });
        variables.push((name.trim().to_owned(), unquoted.unwrap_or(value).to_owned()));
    }
    Ok(variables)
}

fn is_isolet(transport: &Transport) -> bool {
    let Transport::Stdio { program, arguments, .. } = transport else { return false };
    let name = program.raw().rsplit(['/', '\\']).next().unwrap_or_default();
    matches!(name, "isolet" | "isolet.exe") && arguments.iter().any(|word| word.raw() == "mcp")
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    keys: &'a Map<String, Json>,
    environment: &'a Environment,
    origin: Origin,
}

impl Entry<'_> {
    fn transport(&self) -> Result<Transport, String> {
        let named = self.text("type")?.or(self.text("transport")?);
        let (command, url) = (self.template("command")?, self.template("url")?);
        match (named, command, url) {
            (Some("sse"), ..) => Err("its type is `sse`, which MCP has given up; isolet speaks \
                                      stdio and http, many servers have both"
                .to_owned()),
            (Some("stdio") | None, Some(program), None) => Ok(Transport::Stdio {
                program,
                arguments: self.templates("args")?,
                env: self.named_templates("env")?,
                env_file: self.template("envFile")?,
                directory: self.template("cwd")?,
            }),
            (Some("http" | "streamable-http" | "streamableHttp") | None, None, Some(url)) => {
                Ok(Transport::Http { url, headers: self.named_templates("headers")? })
            }
            (Some("stdio"), None, _) => Err("its type is `stdio`, it needs `command`".to_owned()),
            (Some("http" | "streamable-http" | "streamableHttp"), _, None) => {
                Err("its type is `http`, it needs `url`".to_owned())
            }
            (None, None, None) => Err("it has neither `command` nor `url`".to_owned()),
            (None | Some("stdio" | "http" | "streamable-http" | "streamableHttp"), ..) => {
                Err("it has both `command` and `url`, it needs one of them".to_owned())
            }
            (Some(other), ..) => {
                Err(format!("its type is `{other}`, the types are stdio and http"))
            }
        }
    }

    fn get(&self, key: &str) -> Option<&Json> {
        self.keys.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(key, other, "a text")),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        self.optional_flag(key).map(Option::unwrap_or_default)
    }

    fn optional_flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Json::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong(key, other, "true or false")),
        }
    }

    fn count(&self, key: &str) -> Result<Option<u64>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or_else(|| wrong(key, value, "a whole number"))
            }
        }
    }

    fn duration(&self, key: &str) -> Result<Option<Duration>, String> {
        let wanted = "a time such as \"30s\", \"500ms\" or \"2m\"";
        match self.get(key) {
            None => Ok(None),
            Some(Json::String(text)) => match duration(text) {
                Some(duration) => Ok(Some(duration)),
                None => Err(format!("`{key}` is `{text}`, it has to be {wanted}")),
            },
            Some(other) => Err(wrong(key, other, wanted)),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let wanted = "a list of texts";
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| {
                    format!("`{key}` has an item that is no text, it has to be {wanted}")
                }),
            Some(other) => Err(wrong(key, other, wanted)),
        }
    }

    fn template(&self, key: &str) -> Result<Option<Template>, String> {
        self.text(key)?.map(|text| self.parse(key, text)).transpose()
    }

    fn templates(&self, key: &str) -> Result<Vec<Template>, String> {
        self.texts(key)?.iter().map(|text| self.parse(key, text)).collect()
    }

    fn named_templates(&self, key: &str) -> Result<BTreeMap<String, Template>, String> {
        let wanted = "an object of texts";
        let items = match self.get(key) {
            None => return Ok(BTreeMap::new()),
            Some(Json::Object(items)) => items,
            Some(other) => return Err(wrong(key, other, wanted)),
        };
        let mut templates = BTreeMap::new();
        for (name, value) in items {
            // Some clients accept values that a person writes without quotes.
            let text = match value {
                Json::String(text) => text.clone(),
                Json::Number(_) | Json::Bool(_) => value.to_string(),
                other => return Err(wrong(&format!("{key}.{name}"), other, "a text")),
            };
            templates.insert(name.clone(), self.parse(&format!("{key}.{name}"), &text)?);
        }
        Ok(templates)
    }

    fn parse(&self, key: &str, text: &str) -> Result<Template, String> {
        Template::parse(text, self.environment, self.origin)
            .map_err(|reason| format!("in `{key}`, {reason}"))
    }
}

fn wrong(key: &str, value: &Json, wanted: &str) -> String {
    format!("`{key}` is {}, it has to be {wanted}", kind(value))
}

/// Reads a number and its unit.
fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let number: f64 = text[..at].parse().ok()?;
    let unit = match text[at..].trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok().filter(|time| !time.is_zero())
}
