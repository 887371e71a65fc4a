//! Records the servers of other clients that the user has accepted. A program that can write
//! another client's file must not start programs by way of isolet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Config, ServerConfig};
use crate::support::store;
use isolet::internals::data_dir;
use isolet::{Error, ErrorKind};

/// The keys of servers. A key follows everything that is started or reached, and the rules.
#[derive(Default, Serialize, Deserialize)]
struct Accepted {
    servers: BTreeSet<String>,
}

impl Config {
    /// Returns the servers that the user has not accepted by [`accept`](Self::accept), or that have
    /// changed since. Without those that are switched off. `file` is where the answers are kept;
    /// without it they are in the user's data directory.
    ///
    /// The command asks for this before it uses servers of [`import`](Self::import). A hub does
    /// not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the user has no data directory.
    pub fn unaccepted(&self, file: Option<&Path>) -> Result<Vec<&ServerConfig>, Error> {
        // An unreadable file accepts nothing.
        let accepted: Accepted = store::read(&place(file)?).unwrap_or_default();
        let is_new = |server: &&ServerConfig| {
            !server.is_disabled() && !accepted.servers.contains(&server.accepted_key())
        };
        Ok(self.servers().iter().filter(is_new).collect())
    }

    /// Notes that the user has seen these servers and accepts them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the file cannot be written.
    pub fn accept(&self, file: Option<&Path>) -> Result<(), Error> {
        let path = place(file)?;
        let mut accepted: Accepted = store::read(&path).unwrap_or_default();
        accepted.servers.extend(self.servers().iter().map(ServerConfig::accepted_key));
        store::write(&path, &accepted).map_err(|error| {
            let message = format!("cannot write `{}`: {error}", path.display());
            Error::new(ErrorKind::Config, message).with_source(error)
        })
    }
}

fn place(file: Option<&Path>) -> Result<PathBuf, Error> {
    match file {
        Some(file) => Ok(file.to_owned()),
        None => Ok(data_dir("mcp")?.join("imported.json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_new_until_it_is_accepted_and_again_when_it_changes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data/imported.json");
        let config = |servers: &[ServerConfig]| {
            let mut config = Config::new();
            config.extend(servers.iter().cloned());
            config
        };
        let new = |config: &Config| -> Vec<String> {
            let new = config.unaccepted(Some(&file)).unwrap();
            new.into_iter().map(|server| server.name().to_owned()).collect()
        };
        let one = ServerConfig::command("one", "x", ["y"]);
        let two = ServerConfig::http("two", "http://127.0.0.1:1/");
        let both = config(&[one.clone(), two.clone()]);
        assert_eq!(new(&both), ["one", "two"]);
        config(&[two]).accept(Some(&file)).unwrap();
        assert_eq!(new(&both), ["one"]);
        both.accept(Some(&file)).unwrap();
        assert!(new(&both).is_empty());
        for changed in [
            ServerConfig::command("one", "x", ["z"]),
            ServerConfig::command("other", "x", ["y"]),
            one.clone().allow("*"),
            one.clone().env("NODE_OPTIONS", "--require ./evil"),
        ] {
            assert_eq!(new(&config(&[changed])).len(), 1);
        }
        let mut disabled = ServerConfig::command("off", "x", ["y"]);
        disabled.disabled = true;
        assert!(new(&config(&[disabled])).is_empty());
        std::fs::write(&file, "{").unwrap();
        assert_eq!(new(&config(&[one])), ["one"]);
    }

    #[test]
    fn what_the_file_of_the_environment_says_counts() {
        let directory = tempfile::tempdir().unwrap();
        let (file, variables) = (directory.path().join("x.json"), directory.path().join("env"));
        let text = format!(
            "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"envFile\": {:?}}}}}}}",
            variables.to_str().unwrap()
        );
        let environment = crate::config::Environment::default();
        let config =
            Config::parse(&text, "x", &environment, crate::config::Origin::Imported).unwrap();
        std::fs::write(&variables, "MODE=quick").unwrap();
        config.accept(Some(&file)).unwrap();
        assert!(config.unaccepted(Some(&file)).unwrap().is_empty());
        std::fs::write(&variables, "NODE_OPTIONS=--require ./evil").unwrap();
        assert_eq!(config.unaccepted(Some(&file)).unwrap().len(), 1);
        std::fs::remove_file(&variables).unwrap();
        assert_eq!(config.unaccepted(Some(&file)).unwrap().len(), 1);
    }
}
