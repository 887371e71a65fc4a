//! `isolet mcp`: a server of the Model Context Protocol that runs Python in sessions. See
//! `docs/reference/mcp.md`.

mod add;
mod manage;
mod model;
mod sandboxes;
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Command;
use rustix::process::Signal;
use tokio::signal::unix::SignalKind;

use self::sandboxes::ByOptions;
use crate::args::policy::PolicyArgs;
use crate::args::value_parsers;
use crate::kit::audit;
use crate::kit::heap;
use crate::kit::person;
use crate::kit::signals;
use isolet_mcp::server::{self, Bounds, HttpSettings, Listener, OnCall, Settings, StoreSettings};
use isolet_support::journal::Journal;
use isolet_support::skills::{self, Skill};
use isolet_support::socket::Address;

/// The most threads that run guests at the same time, beyond which calls wait.
const RUNNING_THREADS: usize = 512;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
// A client starts the server in a directory of its own, and what its guests need are secrets.
#[command(mut_arg("here", |argument| argument.hide_short_help(true)))]
#[command(mut_arg("env", |argument| argument.hide_short_help(true)))]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    action: Option<manage::Action>,
    /// Serve HTTP at this address, or at unix:PATH, instead of a pipe
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Server")]
    http: Option<Address>,
    /// Read the token that clients of `--http` have to send from a file
    ///
    /// Without it isolet makes one and prints it.
    #[arg(long, value_name = "FILE", requires = "http", help_heading = "Server")]
    #[arg(hide_short_help = true)]
    token_file: Option<PathBuf>,
    /// Accept requests that a browser sends from pages of this origin, such as
    /// `https://app.example.com:443`, besides those of localhost
    #[arg(long, value_name = "ORIGIN", requires = "http", help_heading = "Server")]
    #[arg(hide_short_help = true)]
    allow_origin: Vec<String>,
    /// Accept requests to this host name, besides localhost and the loopback addresses
    #[arg(long, value_name = "NAME", requires = "http", help_heading = "Server")]
    #[arg(hide_short_help = true)]
    allow_host: Vec<String>,
    /// How long a session is kept that nobody uses
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30m",
        value_parser = value_parsers::duration,
        hide_short_help = true,
        help_heading = "Server"
    )]
    session_ttl: Duration,
    /// Maximum number of sessions. A new one takes the place of the one not used for longest
    #[arg(long, value_name = "COUNT", default_value_t = 32, help_heading = "Server")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    #[arg(hide_short_help = true)]
    max_sessions: usize,
    /// Keep sessions that nobody uses in this directory instead of ending them
    ///
    /// They sleep there. The next call with the handle wakes one, also after a restart of the
    /// server.
    #[arg(long, value_name = "DIR", help_heading = "Server", hide_short_help = true)]
    session_store: Option<PathBuf>,
    /// How long a session may sleep
    #[arg(
        long,
        value_name = "TIME",
        default_value = "7d",
        hide_short_help = true,
        value_parser = value_parsers::duration,
        requires = "session_store",
        help_heading = "Server"
    )]
    store_ttl: Duration,
    /// Maximum size of all sessions that sleep. Those that have slept for longest make room
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "1GiB",
        hide_short_help = true,
        value_parser = value_parsers::bytes,
        requires = "session_store",
        help_heading = "Server"
    )]
    store_size: u64,
    /// Maximum length of each part of a result: output, value, traceback
    ///
    /// The whole output is then a resource.
    #[arg(long, value_name = "CHARACTERS", default_value_t = 24_000, help_heading = "Server")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(200..=400_000))]
    #[arg(hide_short_help = true)]
    result_chars: usize,
    /// How long the user has to answer whether a call is allowed
    ///
    /// The code waits meanwhile, and its time stands still.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        hide_short_help = true,
        value_parser = value_parsers::duration,
        help_heading = "Other servers"
    )]
    approval_timeout: Duration,
    /// Maximum time of the other servers' tools in a run, which `--timeout` does not include
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1h",
        value_parser = value_parsers::duration,
        hide_short_help = true,
        help_heading = "Other servers"
    )]
    host_timeout: Duration,
    /// Give the client a tool `run_shell`
    ///
    /// It runs commands in the sessions of `run_python`.
    #[arg(long, help_heading = "Server")]
    shell: bool,
    /// Give the client a tool `write_file`
    ///
    /// It writes a file of up to 16 MiB into a session.
    #[arg(long, help_heading = "Server", hide_short_help = true)]
    uploads: bool,
    /// Give the client a tool `run_skill` for the skills in this directory
    ///
    /// Agent Skills are its directories with a SKILL.md. The guest sees them read-only at /skills.
    /// Can be given several times.
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    skills: Vec<PathBuf>,
    #[command(flatten)]
    servers: servers::ServerArgs,
    #[command(flatten)]
    model: model::ModelArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

impl McpArgs {
    /// Returns `true` if a subcommand is given, so that the command does not serve.
    pub(crate) fn is_chore(&self) -> bool {
        self.action.is_some()
    }

    /// Returns how clients reach the server by HTTP, if that is asked for.
    fn http_settings(&mut self) -> Option<HttpSettings> {
        Some(HttpSettings {
            address: self.http.take()?,
            token_file: self.token_file.take(),
            hosts: std::mem::take(&mut self.allow_host),
            origins: std::mem::take(&mut self.allow_origin),
        })
    }

    /// Returns the settings of the server, and the log of `--audit`.
    fn settings(mut self, assets: Option<&Path>) -> Result<(Settings, Option<Arc<Journal>>)> {
        let log = self.policy.permissions.open_journal()?;
        let mut skills: Vec<Skill> = Vec::new();
        for directory in &self.skills {
            for skill in skills::read_all(directory)? {
                if let Some(other) = skills.iter().find(|other| other.name == skill.name) {
                    let (name, first) = (&skill.name, other.directory.display());
                    bail!(
                        "two skills are named `{name}`: in `{first}` and `{}`",
                        directory.display()
                    );
                }
                let guest = skill.guest_directory();
                self.policy.permissions.show_at(&skill.directory, guest)?;
                skills.push(skill);
            }
        }
        let on_call = log
            .clone()
            .map(|log| -> OnCall { Box::new(move |call| _ = log.append(&audit::call_line(call))) });
        let store = self.session_store.map(|directory| StoreSettings {
            directory,
            ttl: self.store_ttl,
            max_bytes: self.store_size,
        });
        let settings = Settings {
            bounds: Bounds {
                session_ttl: self.session_ttl,
                max_sessions: self.max_sessions,
                result_chars: self.result_chars,
                approval_timeout: self.approval_timeout,
            },
            store,
            hub: self.servers.hub()?,
            llm: self.model.llm()?,
            shell: self.shell,
            uploads: self.uploads,
            skills,
            on_call,
            sandboxes: Box::new(ByOptions {
                policy: self.policy,
                host_time: self.host_timeout,
                assets: assets.map(Path::to_path_buf),
            }),
        };
        Ok((settings, log))
    }
}

/// Serves one client on standard input and output, or many by HTTP.
/// `command` is the definition of isolet's command line.
pub(crate) fn mcp(mut args: McpArgs, assets: Option<&Path>, command: Command) -> Result<ExitCode> {
    if let Some(action) = args.action.take() {
        return manage::manage(action, assets, command);
    }
    args.policy
        .permissions
        .refuse_export("`isolet mcp`, whose sessions have no end to wait for")?;
    args.policy.permissions.check_out_of_reach(&[
        ("the sessions of `--session-store`", args.session_store.as_deref()),
        ("the log of `--audit`", args.policy.permissions.audit_path()),
        ("the token of `--token-file`", args.token_file.as_deref()),
        ("the key of `--llm-key-file`", args.model.key_file()),
    ])?;
    for file in args.servers.config_files() {
        let own = [("the servers of `--config`", Some(file.as_path()))];
        args.policy.permissions.check_out_of_reach(&own)?;
    }
    let listener = if let Some(settings) = args.http_settings() {
        heap::give_back_large_blocks();
        Some(Listener::open(settings)?)
    } else {
        person::tell(
            "the Model Context Protocol",
            "A client starts it: `isolet mcp add CLIENT` writes it into the client's file.",
        )?;
        None
    };
    let (settings, log) = args.settings(assets)?;
    // One thread for all messages, so that calls of a session take their turns in order. Guests run
    // on others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(RUNNING_THREADS)
        .thread_name("isolet-mcp")
        .enable_all()
        .build()
        .context("the event loop cannot start")?;
    let served = runtime.block_on(server::serve(settings, listener, until_terminated()));
    if let Some(log) = log {
        log.end();
    }
    // A thread may be in a run that takes long to end. The workers end with this process.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

/// Waits for the signals that end the server.
async fn until_terminated() -> Result<()> {
    let mut terminated = tokio::signal::unix::signal(SignalKind::terminate())
        .context("the signal SIGTERM is not noticed")?;
    // Whoever has started it so that the end of the terminal does not end it, means that.
    let mut hung_up = (!signals::is_ignored(Signal::HUP))
        .then(|| tokio::signal::unix::signal(SignalKind::hangup()))
        .transpose()
        .context("the signal SIGHUP is not noticed")?;
    let hung_up = async {
        match &mut hung_up {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminated.recv() => Ok(()),
        () = hung_up => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted.context("Ctrl-C is not noticed"),
    }
}
