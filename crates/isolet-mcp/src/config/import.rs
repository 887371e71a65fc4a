//! The servers that other clients of MCP have been given.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value as Json, json};

use super::{Config, Environment, Origin, System, codex, goose, object, read, read_file};
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
    /// Goose: the extensions that are servers.
    Goose,
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
    pub const ALL: [Self; 10] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Windsurf,
        Self::Zed,
        Self::Cline,
        Self::Goose,
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
            Self::Goose => "goose",
        }
    }

    /// Returns the key of the servers in the client's file of JSON; `None` if it is TOML or YAML.
    #[must_use]
    pub fn servers_key(self) -> Option<&'static str> {
        match self {
            Self::Codex | Self::Goose => None,
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
            Self::Zed if environment.system() == System::MacOs => {
                Some(home()?.join(".config/zed/settings.json"))
            }
            Self::Zed => Some(environment.settings()?.join("zed").join("settings.json")),
            Self::Cline => {
                let storage = "Code/User/globalStorage/saoudrizwan.claude-dev/settings";
                Some(environment.settings()?.join(storage).join("cline_mcp_settings.json"))
            }
            Self::Goose => {
                let named = environment.directory("GOOSE_PATH_ROOT");
                let directory = match named {
                    Some(root) => root.join("config"),
                    None if environment.system() == System::Windows => {
                        environment.settings()?.join("Block/goose/config")
                    }
                    None => environment.configuration()?.join("goose"),
                };
                Some(directory.join("config.yaml"))
            }
        }
    }

    /// Returns the place of the client's file on a system, for people: `~` and Windows' variables
    /// stand for the directories of a user who is not known.
    #[must_use]
    pub fn shown_file(self, system: System) -> String {
        const HOME: &str = "/home-directory";
        const SETTINGS: &str = "/settings-directory";
        let variables = [("HOME", HOME), ("APPDATA", SETTINGS)];
        let file = self.file(&Environment::new(variables).on(system)).unwrap_or_default();
        let file = file.to_string_lossy().replace(SETTINGS, "%APPDATA%");
        match system {
            System::Windows => file.replace(HOME, "%USERPROFILE%").replace('/', "\\"),
            _ => file.replace(HOME, "~"),
        }
    }

    /// Returns the place of the client's file in a project, such as `.cursor/mcp.json`; `None` if
    /// the client has none.
    #[must_use]
    pub fn project_file(self, project: &Path) -> Option<PathBuf> {
        let file = match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::GeminiCli => ".gemini/settings.json",
            Self::Zed => ".zed/settings.json",
            Self::ClaudeDesktop | Self::Windsurf | Self::Cline | Self::Goose => return None,
        };
        Some(project.join(file))
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
    read_servers(client, &path, environment, project)
}

pub(super) fn import_project(
    client: Client,
    environment: &Environment,
    project: &Path,
) -> Result<(Config, Vec<Skipped>), Error> {
    let refuse = |message: String| Error::new(ErrorKind::Config, message);
    let shown = project.display();
    let project = fs::canonicalize(project).map_err(|error| {
        refuse(format!("cannot read the project `{shown}`: {error}")).with_source(error)
    })?;
    let path = client.project_file(&project).ok_or_else(|| {
        let all = Client::ALL.into_iter().filter(|client| client.project_file(&project).is_some());
        let names: Vec<&str> = all.map(Client::name).collect();
        let (name, names) = (client.name(), names.join(", "));
        refuse(format!("`{name}` has no file in projects; those that have one are {names}"))
    })?;
    let text = project.to_str().ok_or_else(|| {
        refuse(format!("the name of the project `{shown}` is not UTF-8, a file cannot name it"))
    })?;
    let environment =
        environment.clone().with("workspaceFolder", text).with("CLAUDE_PROJECT_DIR", text);
    let (mut config, skipped) = read_servers(client, &path, &environment, None)?;
    for server in &mut config.servers {
        server.of_project(&project, text);
    }
    Ok((config, skipped))
}

fn read_servers(
    client: Client,
    path: &Path,
    environment: &Environment,
    project: Option<&Path>,
) -> Result<(Config, Vec<Skipped>), Error> {
    let refuse = |message: String| Error::new(ErrorKind::Config, message);
    let text = match read_file(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => {
            let (shown, name) = (path.display(), client.name());
            let message = format!("cannot read `{shown}` of `{name}`: {error}");
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
    match client {
        Client::Codex => return codex::servers(text),
        Client::Goose => return goose::servers(text),
        _ => {}
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
