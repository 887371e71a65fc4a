//! The conditions of `cfg`, and what a target says of them.

use std::collections::BTreeSet;
use std::fmt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, Meta, Token};

/// A condition, as `cfg` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cfg {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    /// A name, such as `unix`.
    Name(String),
    /// A name and its value, such as `target_os = "linux"`.
    Is(String, String),
}

impl Cfg {
    /// Reads what is between the parentheses of `cfg`. Returns `None` if it is no condition.
    pub(super) fn of(meta: &Meta) -> Option<Self> {
        match meta {
            Meta::Path(path) => Some(Self::Name(path.get_ident()?.to_string())),
            Meta::NameValue(pair) => {
                let Expr::Lit(value) = &pair.value else { return None };
                let Lit::Str(text) = &value.lit else { return None };
                Some(Self::Is(pair.path.get_ident()?.to_string(), text.value()))
            }
            Meta::List(list) => {
                let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
                let parts = list.parse_args_with(parse).ok()?;
                let mut parts = parts.iter().map(Self::of).collect::<Option<Vec<_>>>()?;
                match list.path.get_ident()?.to_string().as_str() {
                    "all" => Some(Self::All(parts)),
                    "any" => Some(Self::Any(parts)),
                    "not" if parts.len() == 1 => Some(Self::Not(Box::new(parts.remove(0)))),
                    _ => None,
                }
            }
        }
    }

    /// Whether it asks for something that differs between targets.
    pub(super) fn is_of_target(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::is_of_target),
            Self::Not(part) => part.is_of_target(),
            Self::Name(name) => matches!(name.as_str(), "unix" | "windows"),
            Self::Is(name, _) => name.starts_with("target_"),
        }
    }

    pub(super) fn holds(&self, target: &Target) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(target)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(target)),
            Self::Not(part) => !part.holds(target),
            Self::Name(_) | Self::Is(..) => target.facts.contains(&self.to_string()),
        }
    }
}

impl fmt::Display for Cfg {
    /// Writes it as rustc's list of a target has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name, parts: &[Self]| {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            write!(f, "{name}({})", parts.join(", "))
        };
        match self {
            Self::All(parts) => list(f, "all", parts),
            Self::Any(parts) => list(f, "any", parts),
            Self::Not(part) => write!(f, "not({part})"),
            Self::Name(name) => f.write_str(name),
            Self::Is(name, value) => write!(f, "{name}=\"{value}\""),
        }
    }
}

/// A target, and what is true of a build for it with all features that packages have.
#[derive(Debug)]
pub(super) struct Target {
    facts: BTreeSet<String>,
}

impl Target {
    /// Asks rustc, which knows targets whose standard library is not installed too.
    pub(super) fn new(name: &str) -> Result<Self> {
        let said = Command::new("rustc").args(["--print", "cfg", "--target", name]).output();
        let said = said.context("cannot run `rustc`")?;
        ensure!(said.status.success(), "rustc does not know the target `{name}`");
        let said = String::from_utf8(said.stdout).context("rustc printed no UTF-8")?;
        let features = ["engine", "server", "jupyter", "download"];
        let features = features.map(|feature| format!("feature=\"{feature}\""));
        Ok(Self { facts: said.lines().map(str::to_owned).chain(features).collect() })
    }

    #[cfg(test)]
    pub(super) fn made_up(facts: &[&str]) -> Self {
        Self { facts: facts.iter().map(|fact| (*fact).to_owned()).collect() }
    }

    pub(super) fn has(&self, fact: &str) -> bool {
        self.facts.contains(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cfg(text: &str) -> Option<Cfg> {
        Cfg::of(&syn::parse_str(text).unwrap())
    }

    #[test]
    fn a_condition_is_what_the_target_says() {
        let target = Target::made_up(&["unix", "target_os=\"linux\"", "feature=\"engine\""]);
        for (text, holds) in [
            ("unix", true),
            ("windows", false),
            ("target_os = \"linux\"", true),
            ("not(target_os = \"linux\")", false),
            ("all(unix, feature = \"engine\")", true),
            ("all(unix, test)", false),
            ("any(windows, not(test))", true),
            ("all()", true),
        ] {
            assert_eq!(cfg(text).unwrap().holds(&target), holds, "{text}");
        }
        assert!(cfg("all(feature = \"a\", not(unix))").unwrap().is_of_target());
        assert!(!cfg("any(test, feature = \"a\")").unwrap().is_of_target());
        assert_eq!(cfg("version(\"1.95\")"), None);
    }

    #[test]
    fn rustc_knows_targets_without_their_library() {
        let target = Target::new("aarch64-apple-darwin").unwrap();
        assert!(target.has("target_os=\"macos\"") && target.has("unix") && !target.has("windows"));
        assert!(Target::new("no-such-target").is_err());
    }
}
