//! `cargo xtask bump`: what a move to another `deno_core` or Pyodide changes, and the part of the
//! move that needs no judgement. `docs/contributing/bump.md` has the rest.

mod chores;
mod deno_core;
mod edits;
mod plan;
mod pyodide;
pub(crate) mod registry;
mod version;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use plan::Plan;
use version::Version;

/// What can be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    DenoCore,
    Pyodide,
}

impl Subject {
    const ALL: [Self; 2] = [Self::DenoCore, Self::Pyodide];

    fn name(self) -> &'static str {
        match self {
            Self::DenoCore => "deno_core",
            Self::Pyodide => "pyodide",
        }
    }

    fn pinned(self) -> Result<Version> {
        match self {
            Self::DenoCore => deno_core::pinned(),
            Self::Pyodide => pyodide::pinned(),
        }
    }

    /// Returns the newest release, as the registry has it.
    fn newest(self) -> Result<Version> {
        match self {
            Self::DenoCore => registry::newest_deno_core(),
            Self::Pyodide => {
                let releases = registry::pyodides()?.into_iter().filter(Version::is_release);
                releases.max().context("npm's registry has no release of `pyodide`")
            }
        }
    }

    /// Requires that there is such a version. The pinned one needs no registry.
    fn require(self, version: &Version) -> Result<()> {
        match self {
            Self::DenoCore => registry::require_deno_core(version),
            Self::Pyodide => {
                let is_there = registry::pyodides()?.contains(version);
                ensure!(is_there, "npm's registry has no `pyodide@{version}`");
                Ok(())
            }
        }
    }

    fn plan(self, to: &Version) -> Result<Plan> {
        match self {
            Self::DenoCore => deno_core::plan(to),
            Self::Pyodide => pyodide::plan(to),
        }
    }
}

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
struct Asked {
    subjects: Vec<Subject>,
    to: Option<Version>,
    is_dry: bool,
}

impl Asked {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut asked = Self { subjects: Vec::new(), to: None, is_dry: false };
        let mut args = args.iter();
        while let Some(&arg) = args.next() {
            match arg {
                "--dry-run" => asked.is_dry = true,
                "--to" => {
                    let version = args.next().context("`--to` needs a version")?;
                    asked.to = Some(Version::parse(version)?);
                }
                _ => match Subject::ALL.into_iter().find(|subject| subject.name() == arg) {
                    Some(subject) => asked.subjects.push(subject),
                    None => {
                        bail!("`{arg}` is neither `deno_core`, `pyodide`, `--to` nor `--dry-run`")
                    }
                },
            }
        }
        if asked.subjects.is_empty() {
            ensure!(asked.to.is_none(), "`--to` needs to know of what: `deno_core` or `pyodide`");
            ensure!(
                asked.is_dry,
                "name `deno_core` or `pyodide`: they are moved one after the other"
            );
            asked.subjects = Subject::ALL.to_vec();
        }
        ensure!(
            asked.subjects.len() == 1 || asked.is_dry,
            "one is moved after the other; name one"
        );
        Ok(asked)
    }
}

/// Prints the plan, and without `--dry-run` makes the edits.
pub(crate) fn run(args: &[&str]) -> Result<ExitCode> {
    let Asked { subjects, to, is_dry } = Asked::parse(args)?;
    for subject in subjects {
        let pinned = subject.pinned()?;
        let to = match &to {
            Some(to) => to.clone(),
            None => match subject.newest()? {
                newest if newest > pinned => newest,
                _ => {
                    say(&format!("{} {pinned} is pinned and the newest\n", subject.name()))?;
                    continue;
                }
            },
        };
        registry::require_newer(subject.name(), &pinned, &to)?;
        if to != pinned {
            subject.require(&to)?;
        }
        let plan = subject.plan(&to)?;
        edits::texts(&plan.edits)?;
        if !is_dry {
            edits::make(&plan.edits)?;
        }
        say(&plan.shown(is_dry))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Requires that the pinned versions are all that isolet relies on, which needs no network, and
/// tells of newer ones if the registries can be asked.
pub(crate) fn check() -> Result<ExitCode> {
    for subject in Subject::ALL {
        let (name, pinned) = (subject.name(), subject.pinned()?);
        let plan = subject.plan(&pinned)?;
        if !plan.is_empty() {
            say(&plan.shown(true))?;
            bail!("{name} {pinned} is pinned, and is not all that isolet relies on");
        }
        match subject.newest() {
            Ok(newest) if newest > pinned => {
                eprintln!("{name} {newest} is out: `cargo xtask bump {name} --dry-run`");
            }
            Ok(_) => eprintln!("{name} {pinned} is the newest"),
            Err(error) => eprintln!("whether there is a newer {name} is not known: {error:#}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes()).context("standard output is closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_what_is_moved() {
        let asked = Asked::parse(&["pyodide", "--to", "315.0.0", "--dry-run"]).unwrap();
        let to = Some(Version::parse("315.0.0").unwrap());
        assert_eq!(asked, Asked { subjects: vec![Subject::Pyodide], to, is_dry: true });
        assert_eq!(Asked::parse(&["--dry-run"]).unwrap().subjects, Subject::ALL);
        assert!(!Asked::parse(&["deno_core"]).unwrap().is_dry);
    }

    #[test]
    fn arguments_that_do_not_go_together_are_refused() {
        let refused = |args: &[&str]| Asked::parse(args).unwrap_err().to_string();
        let name = "name `deno_core` or `pyodide`: they are moved one after the other";
        assert_eq!(refused(&[]), name);
        assert_eq!(refused(&["deno_core", "pyodide"]), "one is moved after the other; name one");
        assert_eq!(refused(&["deno_core", "--to"]), "`--to` needs a version");
        assert_eq!(
            refused(&["deno_core", "--to", "new"]),
            "`new` is not a version such as `1.2.3`"
        );
        let to = "`--to` needs to know of what: `deno_core` or `pyodide`";
        assert_eq!(refused(&["--to", "1.2.3", "--dry-run"]), to);
        let other = "`v8` is neither `deno_core`, `pyodide`, `--to` nor `--dry-run`";
        assert_eq!(refused(&["v8"]), other);
    }
}
