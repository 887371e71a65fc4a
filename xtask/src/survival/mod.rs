//! `cargo xtask survival`: what short programs that hurt an interpreter do to the process that
//! embeds it, to the session, and to the limit of time. For isolet and for others, in one run.

mod chart;
mod host;
mod page;
mod programs;
mod subjects;

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use self::host::{Host, Verdict};
use self::programs::{AT_ITS_END, Kind, Program};
use crate::bench::machine;
use crate::process;

/// The limit of a program's time, in seconds.
const SECONDS: f64 = 3.0;

/// How much later than at its limit a program may end, in seconds.
const LATE: f64 = 0.5;

/// The page and its picture.
const PAGE: &str = "docs/survival.md";
const CHART: &str = "docs/survival.svg";

/// What a subject did with all programs, in their order.
struct Column {
    title: &'static str,
    /// What it says that it is.
    what: String,
    verdicts: Vec<Verdict>,
    /// Whether each program of the features came to its end.
    has: Vec<bool>,
}

/// The options of the command line.
#[derive(Debug, Default)]
struct Asked {
    /// The names of subjects; all if empty.
    subjects: Vec<String>,
    /// The names of kinds; all if empty.
    kinds: Vec<String>,
}

/// Runs all programs in all subjects, and writes the page. With options, prints a table.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let asked = Asked::parse(args)?;
    let wanted = |list: &[String], name: &str| list.is_empty() || list.iter().any(|it| it == name);
    let kinds = programs::all()?;
    let kinds: Vec<&Kind> = kinds.iter().filter(|kind| wanted(&asked.kinds, &kind.name)).collect();
    ensure!(!kinds.is_empty(), "there is no kind {}", asked.kinds.join(", "));
    let programs: Vec<&Program> = kinds.iter().flat_map(|kind| &kind.programs).collect();
    // Asked for some kinds, nobody waits for this one.
    let features = if asked.kinds.is_empty() { programs::features()? } else { Vec::new() };
    let (recipes, missing) = subjects::recipes(|name| wanted(&asked.subjects, name))?;
    for line in &missing {
        eprintln!("{line}");
    }
    ensure!(!recipes.is_empty(), "there is no subject {}", asked.subjects.join(", "));
    let mut columns = Vec::new();
    for recipe in recipes {
        let title = recipe.title;
        let mut host = Host::new(recipe);
        let mut verdicts = Vec::new();
        for program in &programs {
            let verdict = host.survive(program, SECONDS)?;
            eprintln!("{title}: {}: {verdict}", program.name);
            verdicts.push(verdict);
        }
        let mut has = Vec::new();
        for program in &features {
            let verdict = host.survive(program, SECONDS)?;
            eprintln!("{title}: {}: {verdict}", program.name);
            has.push(verdict.told().contains(AT_ITS_END));
        }
        columns.push(Column { title, what: host.end(), verdicts, has });
    }
    let text = page::page(&machine::here()?, &kinds, &features, &columns, &missing);
    if asked.subjects.is_empty() && asked.kinds.is_empty() {
        let root = process::root();
        fs::write(root.join(PAGE), text).with_context(|| format!("cannot write `{PAGE}`"))?;
        let chart = chart::chart(&columns);
        fs::write(root.join(CHART), chart).with_context(|| format!("cannot write `{CHART}`"))?;
        eprintln!("wrote `{PAGE}` and `{CHART}`");
    } else {
        eprintln!("{text}\nnot all subjects and kinds ran, so `{PAGE}` stays as it is");
    }
    Ok(ExitCode::SUCCESS)
}

impl Asked {
    fn parse(args: &[OsString]) -> Result<Self> {
        let mut asked = Self::default();
        let mut list = None;
        for arg in args {
            let arg = arg.to_str().context("an argument is not UTF-8")?;
            match (arg, list.as_mut()) {
                ("--only", _) => list = Some(&mut asked.subjects),
                ("--kind", _) => list = Some(&mut asked.kinds),
                (option, _) if option.starts_with('-') => {
                    bail!("`{option}` is not an option of `survival`; there are --only and --kind")
                }
                (name, Some(list)) => list.push(name.to_owned()),
                (name, None) => bail!("`{name}` comes after `--only` or `--kind`"),
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_belong_to_the_option_before_them() {
        let parse = |line: &str| {
            Asked::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        let asked = parse("--only process eryx --kind depth").unwrap();
        assert_eq!(asked.subjects, ["process", "eryx"]);
        assert_eq!(asked.kinds, ["depth"]);
        for wrong in ["process", "--fast", "--only --x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
