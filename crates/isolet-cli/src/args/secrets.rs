//! The command's options about secrets.

use anyhow::{Result, anyhow, bail};
use isolet::{Permissions, Secret};
use isolet_support::template::{Origin, Template};
use isolet_support::text::on_one_line;

use crate::kit::environment::environment;

/// The secrets that a guest may use without seeing them.
#[derive(clap::Args)]
pub(crate) struct SecretArgs {
    /// Let requests to a host have a secret that the guest does not see
    ///
    /// The guest's variable NAME has a placeholder, and requests to the hosts have the secret in
    /// its place. VALUE may be `${env:VARIABLE}`, `${file:PATH}` or `${command:COMMAND}`. Further
    /// hosts come after commas.
    #[arg(long, value_name = "NAME=VALUE@HOST", value_parser = parse)]
    secret: Vec<SecretArg>,
    /// Put the secret NAME into bodies of requests, too
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    secret_in_body: Vec<String>,
}

/// A secret, as it is written.
#[derive(Clone)]
struct SecretArg {
    name: String,
    /// The secret, or where it is.
    value: String,
    hosts: Vec<String>,
}

/// Parses `NAME=VALUE@HOST`, with further hosts after commas. The value may contain `@`.
fn parse(text: &str) -> Result<SecretArg, String> {
    let parts = text.split_once('=').and_then(|(name, rest)| {
        let (value, hosts) = rest.rsplit_once('@')?;
        let is_there = [name, value, hosts].iter().all(|part| !part.is_empty());
        is_there.then_some((name, value, hosts))
    });
    let form = "it is not of the form NAME=VALUE@HOST, as 'KEY=${env:KEY}@api.example.com' is";
    let (name, value, hosts) = parts.ok_or(form)?;
    let hosts = hosts.split(',').map(|host| host.trim().to_owned()).collect();
    Ok(SecretArg { name: name.to_owned(), value: value.to_owned(), hosts })
}

impl SecretArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.secret.is_empty()
    }

    /// Returns the names of the variables.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.secret.iter().map(|secret| &secret.name)
    }

    /// Adds the secrets to permissions. Reads the files and runs the commands.
    pub(super) fn grant(&self, mut permissions: Permissions) -> Result<Permissions> {
        let is_unknown = |name: &&String| !self.names().any(|known| known == *name);
        if let Some(name) = self.secret_in_body.iter().find(is_unknown) {
            let name = on_one_line(name);
            bail!("`--secret-in-body {name}` needs a `--secret` of this name");
        }
        if self.is_empty() {
            return Ok(permissions);
        }
        let environment = environment();
        for SecretArg { name, value, hosts } in &self.secret {
            let filled = Template::parse(value, &environment, Origin::Own)
                .and_then(|template| template.fill(&environment));
            let filled = filled.map_err(|error| {
                anyhow!("the value of `--secret` for `{}`: {error}", on_one_line(name))
            })?;
            let mut secret = hosts.iter().fold(Secret::new(filled.text), Secret::host);
            if self.secret_in_body.contains(name) {
                secret = secret.in_bodies();
            }
            permissions = permissions.secret(name, secret)?;
        }
        Ok(permissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_people_write_it() {
        let parsed = |text| {
            let SecretArg { name, value, hosts } = parse(text).ok().unwrap();
            format!("{name} {value} {}", hosts.join(" "))
        };
        assert_eq!(parsed("K=${env:K}@a.test"), "K ${env:K} a.test");
        assert_eq!(parsed("K=a=b@c@a.test, b.test:8443"), "K a=b@c a.test b.test:8443");
        assert_eq!(parsed("K=v@http://localhost:8000"), "K v http://localhost:8000");
        assert!(["K", "K=v", "=v@h", "K=@h", "K=v@"].iter().all(|text| parse(text).is_err()));
    }
}
