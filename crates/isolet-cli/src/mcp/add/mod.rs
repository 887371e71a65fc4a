//! `isolet mcp add`: writes isolet into the file of a client, which starts it from then on.

mod diff;
mod file;
mod halves;
mod json;
mod moved;
mod toml;
mod via;
mod yaml;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Command;
use isolet_mcp::Client;
use serde_json::{Map, Value};

use self::file::File;
use self::json::Json;
use self::moved::Moved;
use self::toml::Toml;
use self::via::Via;
use self::yaml::Yaml;
use super::servers;
use crate::kit::environment::environment;
use crate::show::print::print;
use isolet_support::text::strictly;

/// Options that make no sense in a client's file, and why.
const REFUSED: [(&str, &str); 2] = [
    ("--http", "the client speaks to isolet on its standard input and output"),
    ("--token-file", "the client speaks to isolet on its standard input and output"),
];

#[derive(clap::Args)]
pub(super) struct Added {
    /// The client: claude-desktop, claude-code, cursor, vscode, codex, gemini-cli, windsurf, zed,
    /// cline or goose
    #[arg(value_parser = servers::client)]
    client: Client,
    /// Options of `isolet mcp` that the client starts it with, such as `-- --with numpy`. Paths
    /// have to be absolute
    #[arg(last = true)]
    options: Vec<String>,
    /// What the client calls isolet
    #[arg(long, value_name = "NAME", default_value = "isolet", value_parser = name)]
    name: String,
    /// Replace another entry of this name
    #[arg(long)]
    replace: bool,
    /// Write into the file that the client has in the project in the current directory, such as
    /// `.cursor/mcp.json`. Its entry starts the `isolet` that is on `PATH`
    #[arg(long, conflicts_with = "move_servers")]
    project: bool,
    /// Move the client's other servers into this file and let isolet read it, so that the model
    /// has their tools from isolet only. Those that isolet cannot use stay
    #[arg(long, value_name = "FILE")]
    move_servers: Option<PathBuf>,
    /// Print what would change, and change nothing
    #[arg(long)]
    print: bool,
    /// Print the file for a client on Windows or macOS instead, which starts isolet by `wsl`, in a
    /// `container` of Docker, or by `podman`
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        hide_possible_values = true,
        conflicts_with_all = CHANGES
    )]
    via: Option<Via>,
    /// The image of the container
    #[arg(long, requires = "via", default_value = via::IMAGE, value_parser = via::image)]
    image: String,
}

/// What changes a file, or says how.
const CHANGES: [&str; 4] = ["replace", "project", "move_servers", "print"];

fn name(text: &str) -> Result<String, String> {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if text.is_empty() || !text.chars().all(is_known) {
        return Err("a name has letters, digits, `-` and `_` only".to_owned());
    }
    Ok(text.to_owned())
}

/// The servers of a client's file.
enum Document {
    Json(Json),
    Toml(Toml),
    Yaml(Yaml),
}

/// `command` is the definition of isolet's command line.
pub(super) fn add(args: &Added, assets: Option<&Path>, command: Command) -> Result<ExitCode> {
    check(&args.options, command)?;
    if let Some(via) = args.via {
        return print(&strictly(&via.file(args)?));
    }
    let (name, client) = (&args.name, args.client.name());
    let environment = environment();
    let path = if args.project {
        project_file(args.client)?
    } else {
        args.client.file(&environment).with_context(|| {
            format!("where `{client}` has its file is unknown, set `HOME` to your home directory")
        })?
    };
    let file = File::read(&path)?;
    let shown = path.display();
    let in_file = |reason: String| anyhow::anyhow!("`{shown}`: {reason}");
    let mut document = Document::parse(args.client, file.text()).map_err(in_file)?;
    let moved = match &args.move_servers {
        Some(to) => Some(Moved::plan(args.client, &file, to, name, &environment)?),
        None => None,
    };
    let words = words(args, assets, moved.as_ref())?;
    let entry = entry(args.client, name, &words);
    match document.servers().get(name) {
        Some(there) if starts(there).as_ref() == Some(&words) => {}
        Some(there) if !args.replace => bail!(
            "`{shown}` has another `{name}`, which starts `{}` and not `{}`; `--replace` replaces \
             it, and `--name` gives the new one another name",
            starts(there).map_or_else(|| "no command".to_owned(), |words| words.join(" ")),
            words.join(" ")
        ),
        _ => document.set(name, &entry).map_err(in_file)?,
    }
    for server in moved.iter().flat_map(Moved::servers) {
        document.remove(server).map_err(in_file)?;
    }
    let text = document.text().map_err(in_file)?;
    let is_same = text == file.text();
    let mut said = if is_same {
        format!("`{name}` is in `{shown}` already, nothing changes there\n")
    } else {
        diff::show(&path, file.exists().then(|| file.text()), &text)
    };
    if args.print {
        said.extend(moved.as_ref().map(Moved::difference));
        return print(&strictly(&moved::masked(said, args.client, file.text())));
    }
    said = moved::masked(said, args.client, file.text());
    if let Some(moved) = &moved {
        said.push_str(&moved.write()?);
    }
    if !is_same {
        let backup = file.replace(&text)?;
        let _ = writeln!(said, "\nwrote `{name}` into `{shown}`");
        if let Some(backup) = backup {
            let _ = writeln!(said, "the file as it was: `{}`", backup.display());
        }
        let _ = writeln!(said, "restart {client}: it reads the file when it starts");
    }
    print(&strictly(&said))
}

/// Checks that isolet starts with these options.
fn check(options: &[String], command: Command) -> Result<()> {
    let line = ["isolet", "mcp"].into_iter().chain(options.iter().map(String::as_str));
    let shown = options.join(" ");
    if let Some((option, reason)) = REFUSED
        .into_iter()
        .find(|(option, _)| options.iter().any(|word| word.split('=').next() == Some(*option)))
    {
        bail!("`{option}` is of no use in `{shown}`: {reason}");
    }
    match command.try_get_matches_from(line) {
        Ok(matches) => match matches.subcommand() {
            Some(("mcp", server)) if server.subcommand().is_none() => Ok(()),
            _ => bail!("`{shown}` after `--` is a command, it has to be options of `isolet mcp`"),
        },
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let reason = first.strip_prefix("error: ").unwrap_or("they print something and end");
            bail!("`isolet mcp` does not start with the options `{shown}`: {reason}")
        }
    }
}

/// Returns the client's file in the project in the current directory.
fn project_file(client: Client) -> Result<PathBuf> {
    let project = std::env::current_dir().and_then(fs::canonicalize);
    let project = project.context("where the current directory is cannot be found out")?;
    let path = client.project_file(&project).with_context(|| {
        let all = Client::ALL.into_iter().filter(|client| client.project_file(&project).is_some());
        let names: Vec<&str> = all.map(Client::name).collect();
        let (name, names) = (client.name(), names.join(", "));
        format!("`{name}` has no file in projects; those that have one are {names}")
    })?;
    // A link in a project may lead to a file of the user's.
    let mut there = path.as_path();
    while there.symlink_metadata().is_err() {
        there = there.parent().unwrap_or(&project);
    }
    let real = fs::canonicalize(there)
        .with_context(|| format!("cannot find out where `{}` leads", there.display()))?;
    if !real.starts_with(&project) {
        bail!(
            "`{}` leads to `{}`, which is not in the project; replace the link by a file",
            there.display(),
            real.display()
        );
    }
    Ok(path)
}

/// Returns the command line that the client has to start.
fn words(args: &Added, assets: Option<&Path>, moved: Option<&Moved>) -> Result<Vec<String>> {
    let program = if args.project {
        // Others who have the project have isolet elsewhere.
        "isolet".to_owned()
    } else {
        let program = std::env::current_exe();
        text_of(&program.context("where isolet itself is cannot be found out")?)?
    };
    let mut words = vec![program, "mcp".to_owned()];
    // A client starts isolet in the client's directory, not in this one.
    for (option, path) in [("--assets", assets), ("--config", moved.map(Moved::path))] {
        if let Some(path) = path {
            let path = std::path::absolute(path)?;
            words.extend([option.to_owned(), text_of(&path)?]);
        }
    }
    words.extend(args.options.iter().cloned());
    Ok(words)
}

fn text_of(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("`{}` is not UTF-8, a client cannot name it", path.display()))
}

fn entry(client: Client, name: &str, words: &[String]) -> Value {
    let mut entry = Map::new();
    let (program, arguments) = words.split_at(1);
    if client == Client::Goose {
        let text = |text: &str| Value::from(text);
        entry.insert("enabled".to_owned(), true.into());
        entry.insert("type".to_owned(), text("stdio"));
        entry.insert("name".to_owned(), text(name));
        entry.insert("description".to_owned(), text("Python in a sandbox"));
        entry.insert("cmd".to_owned(), program.concat().into());
        entry.insert("args".to_owned(), arguments.into());
        // Goose's own default, in seconds.
        entry.insert("timeout".to_owned(), 300.into());
        return Value::Object(entry);
    }
    if matches!(client, Client::VsCode | Client::ClaudeCode) {
        entry.insert("type".to_owned(), "stdio".into());
    }
    if client == Client::Zed {
        entry.insert("source".to_owned(), "custom".into());
    }
    entry.insert("command".to_owned(), program.concat().into());
    entry.insert("args".to_owned(), arguments.into());
    Value::Object(entry)
}

/// Returns the command line of an entry, if it has one. Other keys are the user's, such as which
/// tools need no question.
fn starts(entry: &Value) -> Option<Vec<String>> {
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let mut words = vec![texts(entry.get("command").or(entry.get("cmd"))?)?];
    if let Some(arguments) = entry.get("args") {
        words.extend(arguments.as_array()?.iter().map(texts).collect::<Option<Vec<_>>>()?);
    }
    Some(words)
}

impl Document {
    fn parse(client: Client, text: &str) -> Result<Self, String> {
        Ok(match (client, client.servers_key()) {
            (_, Some(key)) => Self::Json(Json::parse(text, key)?),
            (Client::Goose, None) => Self::Yaml(Yaml::parse(text)?),
            (_, None) => Self::Toml(Toml::parse(text)?),
        })
    }

    fn servers(&self) -> Map<String, Value> {
        match self {
            Self::Json(json) => json.servers(),
            Self::Toml(toml) => toml.servers(),
            Self::Yaml(yaml) => yaml.servers(),
        }
    }

    fn set(&mut self, name: &str, entry: &Value) -> Result<(), String> {
        match self {
            Self::Json(json) => json.set(name, entry),
            Self::Toml(toml) => toml.set(name, entry),
            Self::Yaml(yaml) => yaml.set(name, entry),
        }
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        match self {
            Self::Json(json) => json.remove(name),
            Self::Toml(toml) => toml.remove(name),
            Self::Yaml(yaml) => yaml.remove(name),
        }
    }

    fn text(&self) -> Result<String, String> {
        match self {
            Self::Json(json) => json.text(),
            Self::Toml(toml) => toml.text(),
            Self::Yaml(yaml) => yaml.text(),
        }
    }
}
