//! `--move-servers`: takes the client's other servers over into a file of isolet's own, so that a
//! model sees their tools once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use isolet_mcp::{Client, Config, Environment, Origin, Skipped};
use serde_json::{Map, Value};

use super::diff;
use super::file::File;
use super::json::Json;

/// The servers to move, and the changed file.
pub(super) struct Moved {
    file: File,
    path: PathBuf,
    from: PathBuf,
    text: String,
    servers: Vec<String>,
    stay: Vec<Skipped>,
}

impl Moved {
    /// Finds the servers to move out of a client's file. `name` is isolet's own entry.
    pub(super) fn plan(
        client: Client,
        from: &File,
        to: &Path,
        name: &str,
        environment: &Environment,
    ) -> Result<Self> {
        let (shown, path) = (to.display(), std::path::absolute(to)?);
        let file = File::read(&path)?;
        if file.is(from) {
            bail!("`{shown}` is the file of `{}` itself, name another one", client.name());
        }
        // The user's servers. Those of single projects are of no use elsewhere.
        let (config, mut stay) = Config::import(client, environment, None)?;
        stay.retain(|skipped| skipped.server != name);
        let own: Value = serde_json::from_str(&client.to_own(from.text())?)?;
        let in_file = |reason: String| anyhow::anyhow!("`{shown}`: {reason}");
        let mut json = Json::parse_own(file.text()).map_err(in_file)?;
        let there = json.all_servers();
        let mut servers = Vec::new();
        for server in config.servers() {
            let server = server.name();
            let Some(entry) = own["mcpServers"].get(server) else { continue };
            if server == name {
                bail!(
                    "`{}` has another server `{name}` and would move it, `--name` gives isolet \
                     another name",
                    from.path().display()
                );
            }
            match there.get(server) {
                // A move that was not completed.
                Some(same) if same == entry => {}
                Some(_) => bail!(
                    "`{shown}` has another server `{server}` than `{}`, rename one of the two",
                    from.path().display()
                ),
                None => json.set(server, entry).map_err(in_file)?,
            }
            servers.push(server.to_owned());
        }
        if servers.is_empty() && !file.exists() {
            bail!(
                "`{}` has no server that isolet can use, leave `--move-servers` out",
                from.path().display()
            );
        }
        let text = json.text().map_err(in_file)?;
        // isolet would not start with a file that it cannot read.
        Config::parse(&text, &shown.to_string(), environment, Origin::Own)?;
        Ok(Self { file, path, from: from.path().to_owned(), text, servers, stay })
    }

    /// Returns the absolute path of isolet's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the servers that leave the client's file.
    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(String::as_str)
    }

    /// Returns what changes in isolet's file.
    pub(super) fn difference(&self) -> String {
        let mut text = String::new();
        if self.changes() {
            let old = self.file.exists().then(|| self.file.text());
            text.push_str(&diff::show(&self.path, old, &self.text));
        }
        self.tell_of_the_others(&mut text);
        text
    }

    /// Writes isolet's file. Returns the message for the user.
    pub(super) fn write(&self) -> Result<String> {
        let mut said = String::new();
        let shown = self.path.display();
        if self.changes() {
            let backup = self.file.replace(&self.text)?;
            let _ = write!(said, "\nmoved into `{shown}`: {}", self.servers.join(", "));
            if let Some(backup) = backup {
                let _ = write!(said, "; the file as it was: `{}`", backup.display());
            }
            let _ = writeln!(said, "\n`isolet mcp check --config {shown}` tries them");
        }
        self.tell_of_the_others(&mut said);
        Ok(said)
    }

    fn changes(&self) -> bool {
        !self.file.exists() || self.text != self.file.text()
    }

    fn tell_of_the_others(&self, text: &mut String) {
        for Skipped { server, reason, .. } in &self.stay {
            let _ = writeln!(text, "`{server}` stays in `{}`: {reason}", self.from.display());
        }
    }
}

/// Puts `[secret]` in the place of the values that clients pass to their servers, in a text for a
/// terminal.
pub(super) fn masked(text: String, client: Client, file: &str) -> String {
    let own = client.to_own(file).ok().and_then(|own| serde_json::from_str(&own).ok());
    let own: Value = own.unwrap_or_default();
    let entries = own["mcpServers"].as_object().into_iter().flat_map(Map::values);
    let mut secrets: Vec<String> = Vec::new();
    for entry in entries {
        for key in ["env", "headers"] {
            let values = entry[key].as_object().into_iter().flat_map(Map::values);
            for value in values.filter_map(Value::as_str).filter(|value| !is_plain(value)) {
                // As JSON and TOML write it, and without anything that had to be escaped.
                let quoted = Value::from(value).to_string();
                secrets.extend([quoted.trim_matches('"').to_owned(), value.to_owned()]);
            }
        }
    }
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.iter().fold(text, |text, secret| text.replace(secret, "[secret]"))
}

/// Returns `true` if a value is too short to be a secret, or is a variable.
fn is_plain(value: &str) -> bool {
    value.len() < 4 || (value.starts_with("${") && value.ends_with('}'))
}
