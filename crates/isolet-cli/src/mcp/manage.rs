//! The subcommands of `isolet mcp`, for the people who set servers up: `add`, `check`, `stubs`,
//! `call` and `pin`.

use crate::kit::engine::open_engine;
use crate::show::outcome::show_outcome;
use crate::show::print::print;
use std::fmt::Write as _;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Command;
use isolet::{Cell, Engine, Limits, Outcome, Sandbox, SandboxBuilder, ToolError, ToolSpec, Value};
use isolet_mcp::{Ask, Decision, Hub, PinDiff, ToolInfo, Verdict};

use super::add;
use super::servers::ServerArgs;
use crate::show::exit;
use crate::show::progress;
use crate::show::terminal;
use isolet_mcp::server::stubs;
use isolet_support::json;
use isolet_support::json_text;
use isolet_support::quoted::quoted;
use isolet_support::text::on_one_line;

#[derive(clap::Subcommand)]
pub(super) enum Action {
    /// Write isolet into the file of a client, which starts it from then on
    Add(add::Added),
    /// Start every server, and print what its tools are and what is wrong
    Check(Checked),
    /// Print the functions of the servers' tools as Python stubs
    Stubs(Stubs),
    /// Call a tool as code would, by the same rules. Questions are answered with yes
    Call(Called),
    /// Print which tools have changed since the servers were first used, or accept them
    Pin(Pinned),
}

#[derive(clap::Args)]
pub(super) struct Checked {
    /// Accept the servers of `--import` and `--import-project` that are new or have changed
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    servers: ServerArgs,
}

#[derive(clap::Args)]
pub(super) struct Stubs {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    servers: ServerArgs,
}

#[derive(clap::Args)]
pub(super) struct Called {
    /// The tool
    #[arg(value_name = "SERVER.TOOL")]
    tool: String,
    /// Its arguments; a value that is JSON counts as that, any other as a text
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    servers: ServerArgs,
}

#[derive(clap::Args)]
pub(super) struct Pinned {
    /// Accept the tools that this server has now
    #[arg(long, value_name = "SERVER")]
    accept: Vec<String>,
    #[command(flatten)]
    servers: ServerArgs,
}

/// `command` is the definition of isolet's command line.
pub(super) fn manage(action: Action, assets: Option<&Path>, command: Command) -> Result<ExitCode> {
    match action {
        Action::Add(args) => add::add(&args, assets, command),
        Action::Check(args) => {
            if args.accept {
                args.servers.accept_imported()?;
            }
            check(&hub(&args.servers)?)
        }
        Action::Stubs(args) => print_stubs(&hub(&args.servers)?, args.server.as_deref()),
        Action::Call(args) => call(&hub(&args.servers)?, &args.tool, &args.arguments, assets),
        Action::Pin(args) => pin(&hub(&args.servers)?, &args.accept),
    }
}

fn hub(servers: &ServerArgs) -> Result<Hub> {
    let builder = servers.hub()?;
    let builder = builder
        .context("there are no servers; `--config` names a file of servers, `--server` a server")?;
    // The user makes the calls here.
    Ok(builder.approver(|_: Ask| Decision::Once).build()?)
}

/// Waits for a hub, which works on a separate thread.
fn wait<T>(future: impl Future<Output = Result<T, ToolError>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the event loop cannot start: {error}"))?;
    let done = runtime.block_on(future);
    done.map_err(|error| error.message().to_owned())
}

fn check(hub: &Hub) -> Result<ExitCode> {
    let mut status = ExitCode::SUCCESS;
    let mut out = io::stdout().lock();
    for server in hub.servers() {
        let name = &server.name;
        match wait(hub.check(name)) {
            Ok(report) => {
                let seconds = report.duration.as_secs_f64();
                let said = if report.name.is_empty() { "no name" } else { &report.name };
                let mut line = format!(
                    "{name}: {said}, protocol {}, {} tools, {seconds:.1} s, `import {}`",
                    report.protocol, report.tools, server.module
                );
                if report.left_out > 0 {
                    let _ = write!(line, "; {} tools left out", report.left_out);
                }
                writeln!(out, "{}", on_one_line(&line))?;
                for tool in wait(hub.describe(name)).map_err(anyhow::Error::msg)? {
                    writeln!(out, "  {:<14}{}", decision(&tool), on_one_line(&tool.name))?;
                }
                if !report.pins.is_empty() {
                    status = ExitCode::from(exit::FAILED);
                    write!(out, "{}", changes(name, &report.pins))?;
                }
            }
            Err(reason) => {
                status = ExitCode::from(exit::FAILED);
                let name = on_one_line(name);
                writeln!(out, "{name}: error: {}", on_one_line(&reason))?;
            }
        }
    }
    Ok(status)
}

/// Returns what becomes of a call of a tool.
fn decision(tool: &ToolInfo) -> &'static str {
    match tool.verdict {
        // Whatever the rules say.
        _ if tool.is_unaccepted => "not accepted",
        Verdict::Allow => "allowed",
        Verdict::Ask => "asked",
        Verdict::Deny => "denied",
    }
}

fn print_stubs(hub: &Hub, only: Option<&str>) -> Result<ExitCode> {
    let mut text = String::new();
    for server in hub.servers() {
        if only.is_some_and(|only| only != server.name && only != server.module) {
            continue;
        }
        let tools = wait(hub.tools(&server.name)).map_err(anyhow::Error::msg)?;
        let specs: Vec<&ToolSpec> = tools.iter().map(isolet::Tool::spec).collect();
        text.push_str(&stubs::format(&server.module, &specs));
    }
    if text.is_empty() {
        let names: Vec<String> = hub.servers().into_iter().map(|server| server.name).collect();
        bail!("there is no server `{}`, there are {}", only.unwrap_or_default(), names.join(", "));
    }
    print(&text)
}

/// The code of a call. Names and arguments are variables.
const CALL: &str = "tools.call(server, tool, arguments)";

fn call(hub: &Hub, tool: &str, arguments: &[String], assets: Option<&Path>) -> Result<ExitCode> {
    let (server, name) =
        tool.split_once('.').with_context(|| format!("`{tool}` is no SERVER.TOOL"))?;
    let tools = wait(hub.describe(server)).map_err(anyhow::Error::msg)?;
    let found = tools.iter().find(|one| one.name == name || one.python_name == name);
    let python = found.map_or(name, |found| found.python_name.as_str());
    let servers = hub.servers();
    let module = servers.iter().find(|one| one.name == server || one.module == server);
    let module = module.map_or(server, |module| module.module.as_str()).to_owned();
    let mut given = Vec::new();
    for argument in arguments {
        let (name, value) =
            argument.split_once('=').with_context(|| format!("`{argument}` is no NAME=VALUE"))?;
        let value = json_text::parse(value).unwrap_or_else(|_| Value::from(value));
        given.push((Value::from(name), value));
    }
    let engine = open_engine(assets, &[], |assets| {
        Ok(Engine::builder().assets(assets).on_notice(progress::notice).build()?)
    })?;
    let builder = Sandbox::builder(&engine).limits(Limits::default());
    let sandbox = hub.modules().into_iter().fold(builder, SandboxBuilder::module).build()?;
    let inputs = [
        ("server", Value::from(module)),
        ("tool", Value::from(python)),
        ("arguments", Value::Dict(given)),
    ];
    let ran = sandbox.blocking().session()?.run(Cell::new(CALL).inputs(inputs))?;
    if let Outcome::Completed(Some(value)) = ran.outcome() {
        json::print(&json::Json(value))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(exception) = ran.exception() {
        // The traceback is left out: it points into the call's code, which isolet has made.
        let line = format!("{}: {}", exception.type_name, exception.message);
        writeln!(io::stderr(), "{}", terminal::for_stderr(&line))?;
    } else {
        show_outcome(&ran, false)?;
    }
    Ok(exit::status(&ran))
}

fn pin(hub: &Hub, accept: &[String]) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut status = ExitCode::SUCCESS;
    for name in accept {
        let diff = wait(hub.accept(name)).map_err(anyhow::Error::msg)?;
        let what = if diff.is_empty() { "nothing had changed".to_owned() } else { summary(&diff) };
        writeln!(out, "{}: accepted; {}", on_one_line(name), on_one_line(&what))?;
    }
    if !accept.is_empty() {
        return Ok(status);
    }
    for server in hub.servers() {
        let diff = wait(hub.pin_diff(&server.name)).map_err(anyhow::Error::msg)?;
        if diff.is_empty() {
            writeln!(out, "{}: as accepted", on_one_line(&server.name))?;
        } else {
            status = ExitCode::from(exit::FAILED);
            write!(out, "{}", changes(&server.name, &diff))?;
        }
    }
    Ok(status)
}

fn changes(server: &str, diff: &PinDiff) -> String {
    let (said, quoted) = (summary(diff), quoted(server));
    // Names are the server's.
    on_one_line(&format!("{server}: {said}; `isolet mcp pin --accept {quoted}`")) + "\n"
}

fn summary(diff: &PinDiff) -> String {
    let kinds = [("new", &diff.added), ("changed", &diff.changed), ("gone", &diff.removed)];
    let kinds = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let kinds = kinds.map(|(kind, names)| format!("{kind}: {}", names.join(", ")));
    kinds.collect::<Vec<_>>().join("; ")
}
