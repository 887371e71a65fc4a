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
    pub const ALL: [Self; 5] =
        [Self::ClaudeDesktop, Self::ClaudeCode, Self::Cursor, Self::VsCode, Self::Codex];

    /// Returns the name that options use, such as `claude-code`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
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
    if client != Client::ClaudeCode {
        return Ok(owned(read::entries(&root)?));
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

fn owned<'a>(entries: impl Iterator<Item = (&'a str, &'a Json)>) -> Map<String, Json> {
    entries.map(|(name, entry)| (name.to_owned(), entry.clone())).collect()
}
