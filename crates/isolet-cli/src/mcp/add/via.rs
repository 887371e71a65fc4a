//! `isolet mcp add CLIENT --via HOW`: the file of a client on a system that isolet does not run on.
//! There the client starts it in the Windows Subsystem for Linux, or in a container.

use std::env;

use anyhow::Result;
use isolet_mcp::System;

use super::{Added, Document, entry, text_of};
use crate::kit::environment::environment;

/// The image that `docker build` makes by `deploy/container/README.md`.
pub(super) const IMAGE: &str = concat!("isolet:", env!("CARGO_PKG_VERSION"));

/// What runs isolet for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Via {
    /// The Windows Subsystem for Linux
    Wsl,
    /// A container of Docker
    #[value(alias = "docker")]
    Container,
    /// A container of Podman
    Podman,
}

/// Takes the name of an image.
pub(super) fn image(name: &str) -> Result<String, String> {
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        return Err("it is no name of an image".to_owned());
    }
    Ok(name.to_owned())
}

impl Via {
    /// Returns the client's file with isolet alone, and where it belongs.
    pub(super) fn file(self, args: &Added) -> Result<String> {
        let client = args.client;
        let systems: &[(System, &str)] = match self {
            Self::Wsl => &[(System::Windows, "Windows")],
            Self::Container | Self::Podman => {
                &[(System::MacOs, "macOS"), (System::Windows, "Windows"), (System::Linux, "Linux")]
            }
        };
        let mut document = Document::parse(client, "").map_err(anyhow::Error::msg)?;
        document
            .set(&args.name, &entry(client, &args.name, &self.words(args)?))
            .map_err(anyhow::Error::msg)?;
        let text = document.text().map_err(anyhow::Error::msg)?;
        let places = systems.iter().map(|(system, name)| {
            let file = client.shown_file(*system);
            format!("  {name:<8}{file}\n")
        });
        let (client, places) = (client.name(), places.collect::<String>());
        let mounts = match self {
            Self::Wsl => "",
            Self::Container | Self::Podman => {
                "Directories that options name are the container's: add `-v` to its arguments.\n"
            }
        };
        Ok(format!(
            "Add this to the file of {client}, and restart it:\n{places}{mounts}\n{}\n",
            text.trim_end()
        ))
    }

    /// Returns the command line that the client has to start.
    fn words(self, args: &Added) -> Result<Vec<String>> {
        let line: Vec<String> = match self {
            Self::Wsl => wsl()?,
            Self::Container => container("docker", &args.image),
            Self::Podman => container("podman", &args.image),
        };
        Ok(line.into_iter().chain(["mcp".to_owned()]).chain(args.options.iter().cloned()).collect())
    }
}

/// Starts the program in the directory of the installer, or on `PATH`: `wsl` has no login shell,
/// whose `PATH` would have that directory. Without quotation marks, which the command lines of
/// Windows change; instead, the shell splits no words and expands no patterns. It loses
/// empty words, which no option of `isolet mcp` needs.
const IN_WSL: &str = "set -f; IFS=; PATH=~/.local/bin:$PATH; exec $0 $@";

/// Starts this program if it runs there, and otherwise the one that is installed there.
fn wsl() -> Result<Vec<String>> {
    let environment = environment();
    let name = environment.get("WSL_DISTRO_NAME").filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Ok(owned(&["wsl", "--exec", "sh", "-c", IN_WSL, "isolet"]));
    };
    // `--exec`: without a shell there, which would read the options again.
    let program = text_of(&env::current_exe()?)?;
    Ok(owned(&["wsl", "--distribution", name, "--exec", &program]))
}

fn container(program: &str, image: &str) -> Vec<String> {
    let options = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
    let run = [program, "run", "-i", "--rm"].into_iter().chain(options);
    run.chain(["--entrypoint", "isolet", image]).map(str::to_owned).collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
