//! The servers that other clients of MCP have been given.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::environment::Environment;
use super::{Config, Origin, codex, object, read, read_file};
use isolet::{Error, ErrorKind};

/// A client of MCP whose servers isolet can take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Client {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code: the user's servers and those of a project in `~/.claude.json`. A project's
    /// `.mcp.json` is another file, which [`Config::read`] reads if it is named.
    ClaudeCode,
    /// Cursor: the user's servers.
    Cursor,
    /// VS Code: the user's servers.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI: the user's servers.
    GeminiCli,
    /// Windsurf.
    Windsurf,
    /// Zed: the servers in the user's settings. Those of extensions have no command there.
    Zed,
    /// Cline, the extension of VS Code.
    Cline,
}

/// A server that was not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The name of the server.
    pub server: String,
    /// Why isolet cannot use it.
    pub reason: String,
}

impl Client {
    /// All clients.
    pub const ALL: [Self; 9] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Windsurf,
        Self::Zed,
        Self::Cline,
    ];

    /// Returns the name that options use, such as `claude-code`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Cline => "cline",
        }
    }

    /// Returns the key of the servers in the client's file of JSON; `None` if it is TOML.
    #[must_use]
    pub fn servers_key(self) -> Option<&'static str> {
        match self {
            Self::Codex => None,
            Self::VsCode => Some("servers"),
            Self::Zed => Some("context_servers"),
            _ => Some("mcpServers"),
        }
    }

    /// Returns the client of a [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// Returns the place of the client's file, or `None` if the environment does not tell.
    #[must_use]
    pub fn file(self, environment: &Environment) -> Option<PathBuf> {
        let home = || environment.home();
        match self {
            Self::ClaudeDesktop => {
                Some(environment.settings()?.join("Claude").join("claude_desktop_config.json"))
            }
            Self::ClaudeCode => {
                let named = environment.directory("CLAUDE_CONFIG_DIR");
                Some(named.or_else(home)?.join(".claude.json"))
            }
            Self::Cursor => Some(home()?.join(".cursor").join("mcp.json")),
            Self::VsCode => {
                Some(environment.settings()?.join("Code").join("User").join("mcp.json"))
            }
            Self::Codex => {
                let named = environment.directory("CODEX_HOME");
                Some(named.or_else(|| Some(home()?.join(".codex")))?.join("config.toml"))
            }
            Self::GeminiCli => Some(home()?.join(".gemini").join("settings.json")),
            Self::Windsurf => Some(home()?.join(".codeium/windsurf/mcp_config.json")),
            Self::Zed if cfg!(target_os = "macos") => {
                Some(home()?.join(".config/zed/settings.json"))
            }
            Self::Zed => Some(environment.settings()?.join("zed").join("settings.json")),
            Self::Cline => {
                let storage = "Code/User/globalStorage/saoudrizwan.claude-dev/settings";
                Some(environment.settings()?.join(storage).join("cline_mcp_settings.json"))
            }
        }
    }

    /// Returns the user's servers in a text of the client's file, as the text of a file of isolet's
    /// own: `{"mcpServers": {...}}`. The entries are not checked. An empty text has no servers.
    ///
    /// ```
    /// use isolet_mcp::Client;
    ///
    /// let own = Client::Codex.to_own("[mcp_servers.files]\ncommand = \"mcp-server-files\"\n")?;
    /// assert_eq!(own, r#"{"mcpServers":{"files":{"command":"mcp-server-files"}}}"#);
    /// # Ok::<(), isolet::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the text is no file of the client's.
    pub fn to_own(self, text: &str) -> Result<String, Error> {
        let is_empty = text.trim().is_empty();
        let entries = if is_empty { Ok(Map::new()) } else { entries(self, text, None) };
        let entries = entries.map_err(|reason| {
            Error::new(ErrorKind::Config, format!("the file of `{}`: {reason}", self.name()))
        })?;
        Ok(json!({"mcpServers": entries}).to_string())
    }
}

pub(super) fn import(
    client: Client,
    environment: &Environment,
    project: Option<&Path>,
) -> Result<(Config, Vec<Skipped>), Error> {
    let refuse = |message: String| Error::new(ErrorKind::Config, message);
    let name = client.name();
    let path = client.file(environment).ok_or_else(|| {
        refuse(format!("where `{name}` has its file is unknown, `HOME` is not set"))
    })?;
    let text = match read_file(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => {
            let message = format!("cannot read `{}` of `{name}`: {error}", path.display());
            return Err(refuse(message).with_source(error));
        }
    };
    let entries = entries(client, &text, project)
        .map_err(|reason| refuse(format!("`{}`: {reason}", path.display())))?;
    let (mut config, mut skipped) = (Config::default(), Vec::new());
    for (server, entry) in entries {
        match read::server(&server, &entry, environment, Origin::Imported) {
            Ok(Some(read)) => config.add(read),
            Ok(None) => {
                let reason = "it is isolet itself".to_owned();
                skipped.push(Skipped { server, reason });
            }
            Err(reason) => skipped.push(Skipped { server, reason }),
        }
    }
    Ok((config, skipped))
}

fn entries(
    client: Client,
    text: &str,
    project: Option<&Path>,
) -> Result<Map<String, Json>, String> {
    if client == Client::Codex {
        return codex::servers(text);
    }
    let root = object(text)?;
    if let Client::Zed | Client::GeminiCli = client {
        // Their files have all other settings, too.
        let servers = client.servers_key().and_then(|key| root.get(key)?.as_object());
        let servers = servers.into_iter().flatten();
        return Ok(servers.map(|(name, entry)| (name.clone(), usual(entry))).collect());
    }
    if client != Client::ClaudeCode {
        let entries = read::entries(&root)?;
        return Ok(entries.map(|(name, entry)| (name.to_owned(), usual(entry))).collect());
    }
    // The file has all other settings of Claude Code, too.
    let servers = |root: &Map<String, Json>| match root.get("mcpServers") {
        Some(Json::Object(servers)) => servers.clone(),
        _ => Map::new(),
    };
    let mut all = servers(&root);
    let of_project = project
        .and_then(Path::to_str)
        .and_then(|project| root.get("projects")?.get(project.trim_end_matches('/'))?.as_object());
    all.extend(of_project.map(servers).unwrap_or_default());
    Ok(all)
}

/// Returns an entry with the keys that most clients have.
fn usual(entry: &Json) -> Json {
    let Json::Object(entry) = entry else { return entry.clone() };
    let mut usual = entry.clone();
    // Windsurf's and Gemini CLI's names of an address. Gemini CLI's `url` is one of events.
    for name in ["serverUrl", "httpUrl"] {
        if let Some(url) = usual.remove(name) {
            usual.entry("url").or_insert(url);
        }
    }
    // As Zed once had it.
    if let Some(Json::Object(command)) = entry.get("command") {
        usual.remove("command");
        usual.extend(command.iter().map(|(name, value)| {
            let name = if name == "path" { "command" } else { name };
            (name.to_owned(), value.clone())
        }));
    }
    Json::Object(usual)
}
