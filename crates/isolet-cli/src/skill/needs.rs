//! What the scripts of a skill need, found by reading them in a session: packages and commands.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};
use isolet::blocking::Session;
use isolet::{Cell, Value};
use isolet_support::skills::Skill;
use serde::{Deserialize, Serialize};

/// Reads scripts, in the guest.
const READER: &str = include_str!("reader.py");

/// What a skill needs.
#[derive(Serialize)]
pub(super) struct Needs {
    name: String,
    scripts: BTreeMap<String, ScriptNeeds>,
    network: Network,
}

/// What a script needs: names, and whether they are there.
#[derive(Deserialize, Serialize)]
struct ScriptNeeds {
    packages: BTreeMap<String, bool>,
    commands: BTreeMap<String, bool>,
    /// Why the script cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Network {
    /// The skill does not ask for it.
    Unneeded,
    Allowed,
    Missing,
}

impl Needs {
    /// Reads the scripts in a session that sees the skill.
    pub(super) fn of(skill: &Skill, session: &mut Session, has_network: bool) -> Result<Self> {
        let scripts: Vec<Value> = skill.scripts().map(|(path, _)| path.into()).collect();
        let inputs =
            [("directory", skill.guest_directory().into()), ("scripts", Value::List(scripts))];
        let ran = session.run(Cell::new(READER).name("<skill>").inputs(inputs))?;
        let found = ran.value().cloned().with_context(|| {
            format!("the scripts of `{}` cannot be read: {}", skill.name, ran.stderr())
        })?;
        let network = match (skill.asks_for_network(), has_network) {
            (false, _) => Network::Unneeded,
            (true, true) => Network::Allowed,
            (true, false) => Network::Missing,
        };
        Ok(Self { name: skill.name.clone(), scripts: isolet::from_value(found)?, network })
    }

    /// Whether everything is there.
    pub(super) fn is_met(&self) -> bool {
        let is_met = |script: &ScriptNeeds| {
            let mut all = script.packages.values().chain(script.commands.values());
            script.error.is_none() && all.all(|is_there| *is_there)
        };
        self.network != Network::Missing && self.scripts.values().all(is_met)
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: a valid skill", self.name)?;
        if self.scripts.is_empty() {
            writeln!(f, "  no scripts")?;
        }
        for (path, script) in &self.scripts {
            writeln!(f, "  {path}")?;
            if let Some(error) = &script.error {
                writeln!(f, "    cannot be read: {error}")?;
            }
            list(f, "packages", &script.packages, "`--with` or `--allow-package` may name it")?;
            list(f, "commands", &script.commands, "no guest has it")?;
        }
        match self.network {
            Network::Unneeded => Ok(()),
            Network::Allowed => writeln!(f, "  network: allowed by the options"),
            Network::Missing => writeln!(f, "  network: missing (`--allow-net` allows a server)"),
        }
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    needs: &BTreeMap<String, bool>,
    hint: &str,
) -> fmt::Result {
    if needs.is_empty() {
        return Ok(());
    }
    let named = |(name, is_there): (&String, &bool)| {
        if *is_there { name.clone() } else { format!("{name} (missing: {hint})") }
    };
    let named: Vec<_> = needs.iter().map(named).collect();
    writeln!(f, "    {what}: {}", named.join(", "))
}
