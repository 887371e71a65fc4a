//! The configured servers and how to reach each: isolet's own file and those of other clients.

mod accepted;
mod codex;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod goose;
mod import;
mod jsonc;
mod read;
pub(crate) mod redact;
mod server;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value as Json};

pub use import::{Client, Skipped};
pub(crate) use server::Reached;
pub use server::ServerConfig;

use isolet::{Error, ErrorKind};
use isolet_support::json_rpc;
pub use isolet_support::template::{Environment, Origin, Secret, System};

/// The maximum size of a configuration, in bytes. Claude Code keeps its histories in it.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A list of servers, sorted by name.
///
/// ```
/// use isolet_mcp::{Config, Environment, Origin};
///
/// let text = r#"{"mcpServers": {
///     // comments and trailing commas are accepted
///     "files": {"command": "mcp-server-files", "args": ["/data"],
///               "isolet": {"allow": ["read_*"], "deny": ["delete_*"], "timeout": "30s"}},
/// }}"#;
/// let environment = Environment::new([("PATH", "/usr/bin")]);
/// let config = Config::parse(text, "isolet.mcp.json", &environment, Origin::Own)?;
/// assert_eq!(config.servers()[0].name(), "files");
/// # Ok::<(), isolet::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Config {
    servers: Vec<ServerConfig>,
}

impl Config {
    /// Makes an empty configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a file: `mcpServers` as most clients have it, or `servers` as VS Code has it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the file cannot be read, or names the server and the key that are
    /// wrong.
    pub fn read(
        path: impl AsRef<Path>,
        environment: &Environment,
        origin: Origin,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let text = read_file(path).map_err(|error| {
            let message = format!("cannot read `{shown}`: {error}");
            Error::new(ErrorKind::Config, message).with_source(error)
        })?;
        Self::parse(&text, &shown, environment, origin)
    }

    /// Reads a text in the form that [`read`](Self::read) describes. `file` is its name in errors.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn parse(
        text: &str,
        file: &str,
        environment: &Environment,
        origin: Origin,
    ) -> Result<Self, Error> {
        let refuse = |reason| Error::new(ErrorKind::Config, format!("`{file}`: {reason}"));
        let mut config = Self::default();
        let root = object(text).map_err(refuse)?;
        if !root.contains_key("mcpServers") && !root.contains_key("servers") {
            return Err(refuse("it has neither `mcpServers` nor `servers`".to_owned()));
        }
        for (name, entry) in read::entries(&root).map_err(refuse)? {
            match read::server(name, entry, environment, origin) {
                Ok(Some(server)) => config.add(server),
                Ok(None) => {}
                Err(reason) => return Err(refuse(format!("the server `{name}`: {reason}"))),
            }
        }
        Ok(config)
    }

    /// Reads the servers of another client: those of the user, and those that Claude Code keeps for
    /// the directory `project`. A client without a file has no servers.
    ///
    /// Servers that isolet cannot use are skipped, with a reason each.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the file cannot be read.
    pub fn import(
        client: Client,
        environment: &Environment,
        project: Option<&Path>,
    ) -> Result<(Self, Vec<Skipped>), Error> {
        import::import(client, environment, project)
    }

    /// Reads the servers in the file that another client has in a project, such as
    /// `.cursor/mcp.json`. A project without the file has no servers. `${workspaceFolder}` and
    /// `${CLAUDE_PROJECT_DIR}` are the project.
    ///
    /// The file is the project's, and not the user's: what is [accepted](Self::accept) of it is
    /// accepted for this project only.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the client has no file in projects, or it cannot be read.
    pub fn import_project(
        client: Client,
        environment: &Environment,
        project: &Path,
    ) -> Result<(Self, Vec<Skipped>), Error> {
        import::import_project(client, environment, project)
    }

    /// Adds a server. It replaces one of the same name.
    pub fn add(&mut self, server: ServerConfig) {
        match self.servers.binary_search_by(|other| other.name().cmp(server.name())) {
            Ok(at) => self.servers[at] = server,
            Err(at) => self.servers.insert(at, server),
        }
    }

    /// Adds the servers of another configuration. They replace those of the same names.
    pub fn merge(&mut self, other: Self) {
        other.servers.into_iter().for_each(|server| self.add(server));
    }

    /// Returns the servers, sorted by name.
    pub fn servers(&self) -> &[ServerConfig] {
        &self.servers
    }
}

impl Extend<ServerConfig> for Config {
    fn extend<T: IntoIterator<Item = ServerConfig>>(&mut self, servers: T) {
        servers.into_iter().for_each(|server| self.add(server));
    }
}

/// Parses a text as an object of JSON, with comments. `Err` describes the mistake and shows nothing
/// of the text, which may have secrets.
fn object(text: &str) -> Result<Map<String, Json>, String> {
    // JavaScript writes halves of surrogate pairs, which are no characters.
    let text = json_rpc::mended(jsonc::to_json(text).into_bytes()).unwrap_or_else(|(text, _)| text);
    match serde_json::from_slice(&text) {
        Ok(Json::Object(root)) => Ok(root),
        Ok(other) => Err(format!("it is {}, it has to be an object", read::kind(&other))),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            Err(format!("it is no JSON, look at line {line}, column {column}"))
        }
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    let bytes = fs::metadata(path)?.len();
    if bytes > MAX_BYTES {
        let message = format!("it has {bytes} bytes, the limit is {MAX_BYTES}");
        return Err(io::Error::other(message));
    }
    fs::read_to_string(path)
}
