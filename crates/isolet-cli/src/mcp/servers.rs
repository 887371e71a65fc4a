//! The options about other servers, whose tools the code may call.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use isolet_mcp::{Client, Config, Environment, HubBuilder, Origin, Rule, ServerConfig, Skipped};

use crate::args::value_parsers;
use crate::kit::environment::environment;
use crate::show::terminal;
use isolet_support::text::strictly;

/// Tools of other MCP servers as Python functions.
#[derive(clap::Args)]
#[command(next_help_heading = "Other servers")]
pub(super) struct ServerArgs {
    /// Let the code call the tools of the servers in this file
    ///
    /// It is like those of other clients: `{"mcpServers": {...}}`.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// The same for the servers of another client, such as claude-desktop
    ///
    /// Clients are claude-desktop, claude-code, cursor, vscode, codex, gemini-cli, windsurf, zed,
    /// cline and goose. Servers that are new or have changed have to be accepted first:
    /// `isolet mcp check`.
    #[arg(long, value_name = "CLIENT", value_parser = client)]
    import: Vec<Client>,
    /// The same for the servers in a client's file of the project in the current directory
    ///
    /// Such a file is `.cursor/mcp.json`. Clients are claude-code, cursor, vscode, codex,
    /// gemini-cli and zed. The servers have to be accepted in each project.
    #[arg(long, value_name = "CLIENT", value_parser = client, hide_short_help = true)]
    import_project: Vec<Client>,
    /// The same for one server: NAME=URL, or NAME= and a command
    ///
    /// The command may have arguments. Those with spaces are quoted as for a shell, which is not
    /// run.
    #[arg(long = "server", value_name = "NAME=COMMAND")]
    single: Vec<String>,
    /// Allow calls without asking, such as 'github.get_*'
    ///
    /// Of several rules that match a tool, a denial comes before a question, and that before a
    /// permission.
    #[arg(long, value_name = "SERVER.TOOL")]
    allow_tool: Vec<String>,
    /// Ask the user before each call, which is the default
    #[arg(long, value_name = "SERVER.TOOL", hide_short_help = true)]
    ask_tool: Vec<String>,
    /// Deny calls
    #[arg(long, value_name = "SERVER.TOOL")]
    deny_tool: Vec<String>,
    /// Maximum time of a call, for servers whose configuration has none
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = value_parsers::duration)]
    #[arg(hide_short_help = true)]
    call_timeout: Duration,
    /// Maximum size of an answer, for servers whose configuration has no `maxAnswerBytes`
    #[arg(long, value_name = "SIZE", default_value = "2MiB", value_parser = value_parsers::bytes)]
    #[arg(hide_short_help = true)]
    max_answer: u64,
    /// Call tools also if their definitions are others than when the server was first used
    #[arg(long, hide_short_help = true)]
    no_pin: bool,
}

pub(super) fn client(name: &str) -> Result<Client, String> {
    Client::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Client::ALL.into_iter().map(Client::name).collect();
        format!("there is no client `{name}`, there are {}", names.join(", "))
    })
}

/// Describes a server in one line for a terminal. The text may be a stranger's.
fn shown(server: &ServerConfig) -> String {
    let mut text = format!("{}: {}", server.name(), server.shown());
    let settings = server.settings();
    if !settings.is_empty() {
        let _ = write!(text, " ({})", settings.join(", "));
    }
    strictly(&text.replace('\n', " "))
}

impl ServerArgs {
    /// Accepts the servers of `--import` and `--import-project`, after showing them.
    pub(super) fn accept_imported(&self) -> Result<()> {
        if !self.imports() {
            bail!(
                "`--accept` is for servers of other clients: add `--import` or `--import-project`"
            );
        }
        let config = self.imported(&environment())?;
        for server in config.unaccepted(None)? {
            writeln!(std::io::stderr(), "accepted {}", shown(server))?;
        }
        Ok(config.accept(None)?)
    }

    /// Whether it has servers of other clients, which have to be accepted.
    fn imports(&self) -> bool {
        !self.import.is_empty() || !self.import_project.is_empty()
    }

    /// Returns the files of `--config`.
    pub(super) fn config_files(&self) -> &[PathBuf] {
        &self.config
    }

    fn imported(&self, environment: &Environment) -> Result<Config> {
        let mut config = Config::new();
        for client in &self.import {
            let project = std::env::current_dir().ok();
            let read = Config::import(*client, environment, project.as_deref())?;
            config.merge(without_skipped(read)?);
        }
        for client in &self.import_project {
            let project = std::env::current_dir()?;
            let read = Config::import_project(*client, environment, &project)?;
            config.merge(without_skipped(read)?);
        }
        Ok(config)
    }

    /// Shows servers that the user has not seen. Returns the error that they are.
    fn tell_of_new(&self, servers: &[&ServerConfig]) -> Result<anyhow::Error> {
        for server in servers {
            writeln!(std::io::stderr(), "new: {}", shown(server))?;
        }
        let names: Vec<&str> = servers.iter().map(|server| server.name()).collect();
        let clients = self.import.iter().map(|client| format!("--import {}", client.name()));
        let of_project = |client: &Client| format!("--import-project {}", client.name());
        let all = clients.chain(self.import_project.iter().map(of_project));
        let options = all.collect::<Vec<_>>().join(" ");
        Ok(anyhow!(
            "`{options}` has servers that are new or have changed: {}; look at them, and then \
             accept them by `isolet mcp check {options} --accept`",
            names.join(", ")
        ))
    }

    /// Begins a hub of the servers; `None` if there are none.
    pub(super) fn hub(&self) -> Result<Option<HubBuilder>> {
        let environment = environment();
        let mut config = self.imported(&environment)?;
        if self.imports() {
            let new = config.unaccepted(None)?;
            if !new.is_empty() {
                return Err(self.tell_of_new(&new)?);
            }
        }
        for file in &self.config {
            config.merge(Config::read(file, &environment, Origin::Own)?);
        }
        let mut named: Vec<String> = Vec::new();
        for text in &self.single {
            let server = ServerConfig::from_text(text, &environment)?;
            let name = server.name().to_owned();
            if named.contains(&name) {
                bail!("`--server` is there twice for `{name}`, give each server a name of its own");
            }
            named.push(name);
            config.add(server);
        }
        if config.servers().iter().all(ServerConfig::is_disabled) {
            if let Some(rule) =
                self.allow_tool.iter().chain(&self.ask_tool).chain(&self.deny_tool).next()
            {
                bail!(
                    "there is a rule for `{rule}` and no server; `--config` names a file of \
                     servers, `--server` a server"
                );
            }
            return Ok(None);
        }
        let mut builder = isolet_mcp::Hub::builder()
            .config(config)
            .call_timeout(self.call_timeout)
            .max_answer_bytes(usize::try_from(self.max_answer).unwrap_or(usize::MAX))
            .on_log(|server, line| {
                let line = terminal::for_stderr(line).into_owned();
                // If standard error is closed, the line is lost.
                let _ = writeln!(std::io::stderr(), "[{server}] {line}");
            });
        for pattern in &self.deny_tool {
            builder = builder.rule(Rule::deny(pattern)?);
        }
        for pattern in &self.ask_tool {
            builder = builder.rule(Rule::ask(pattern)?);
        }
        for pattern in &self.allow_tool {
            builder = builder.rule(Rule::allow(pattern)?);
        }
        Ok(Some(if self.no_pin { builder.without_pins() } else { builder }))
    }
}

/// Names the servers that isolet cannot use, and returns the others.
fn without_skipped((config, skipped): (Config, Vec<Skipped>)) -> Result<Config> {
    for one in skipped {
        let text = format!("{}: {}", one.server, one.reason);
        let text = terminal::for_stderr(&text).into_owned();
        writeln!(std::io::stderr(), "warning: skipped the server {text}")?;
    }
    Ok(config)
}
