//! `cargo xtask bench`: runs the same work on isolet and its peers, and prints a table.
//!
//! Each subject is a process that reads commands as lines and answers with the times. In each round
//! every subject runs every scenario. The order changes between rounds, so that other activity of
//! the machine affects all subjects alike.

#![expect(clippy::print_stdout, reason = "the table is this command's result")]

pub(crate) mod machine;
pub(crate) mod mcp;
pub(crate) mod peers;
mod scenario;
pub(crate) mod subject;
mod table;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::scenario::{Kind, SCENARIOS, Scenario};
use self::subject::{Answer, Subject};
use self::table::Cell;

const ROUNDS: usize = 15;

/// The pause between two measurements, so that the clean-up of one does not overlap with the next.
const PAUSE: Duration = Duration::from_millis(50);

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    rounds: usize,
    /// Subjects and scenarios. If none of a kind is named, all of that kind are used.
    only: Vec<String>,
    markdown: Option<PathBuf>,
}

/// Measures, and prints the table.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let asked = Asked::parse(args)?;
    let scenarios = asked.scenarios();
    let (recipes, mut missing) = peers::recipes(|name| asked.wants_subject(name))?;
    let mut subjects = Vec::new();
    for recipe in recipes {
        let name = recipe.name;
        match Subject::start(recipe) {
            Ok(subject) => subjects.push(subject),
            Err(error) => missing.push(format!("`{name}` is left out: {error:#}")),
        }
    }
    for line in &missing {
        eprintln!("{line}");
    }
    ensure!(!subjects.is_empty(), "there is nothing to measure");
    let load = machine::load();
    let cells = measure(&mut subjects, &scenarios, asked.rounds);
    let columns: Vec<_> = subjects.iter().map(Subject::column).collect();
    let text = format!(
        "{}\n{}",
        machine::description(asked.rounds, &load)?,
        table::render(&columns, &scenarios, &cells, &missing)
    );
    println!("{text}");
    if let Some(path) = &asked.markdown {
        fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The cells of the table, by the indices of the scenario and of the subject.
type Cells = HashMap<(usize, usize), Cell>;

/// Measures each scenario of each subject.
fn measure(subjects: &mut [Subject], scenarios: &[&'static Scenario], rounds: usize) -> Cells {
    let mut cells = Cells::new();
    let is_afresh = |scenario: &Scenario| scenario.kind == Kind::ServedAfresh;
    go_through(subjects, scenarios, rounds, &mut cells, |scenario| !is_afresh(scenario));
    // Of memory that is shared with another process, only a part counts as the measured one's, and
    // the part grows with each session that is added.
    subjects.iter_mut().for_each(Subject::end);
    go_through(subjects, scenarios, rounds, &mut cells, is_afresh);
    cells
}

/// Measures the scenarios that are `wanted`.
fn go_through(
    subjects: &mut [Subject],
    scenarios: &[&'static Scenario],
    rounds: usize,
    cells: &mut Cells,
    wanted: impl Fn(&Scenario) -> bool,
) {
    let count = subjects.len();
    // Round 0 warms up. Of its results only skipped scenarios are kept.
    for round in 0..=rounds {
        let due = scenarios.iter().enumerate();
        let due = due.filter(|(_, scenario)| wanted(scenario) && scenario.is_due(round));
        let due: Vec<_> = due.collect();
        if !due.is_empty() {
            eprintln!("round {round} of {rounds}");
        }
        for (row, scenario) in due {
            // No subject is always first, or always after the same one.
            let order = (0..count).map(|place| (place + round) % count);
            for column in order {
                let Some(subject) = subjects.get_mut(column) else {
                    continue;
                };
                let cell = cells.entry((row, column)).or_insert_with(|| Cell::Times(Vec::new()));
                let Cell::Times(times) = cell else {
                    // A scenario that a subject cannot run is not tried again.
                    continue;
                };
                std::thread::sleep(PAUSE);
                match ask(subject, scenario) {
                    Ok(Answer::Times(more)) if round > 0 => times.extend(more),
                    Ok(Answer::Times(_)) => {}
                    Ok(Answer::Skip) => *cell = Cell::Skipped,
                    Ok(Answer::Error(reason)) => *cell = Cell::Failed(reason),
                    Err(error) => *cell = Cell::Failed(format!("{error:#}")),
                }
                if let Cell::Failed(reason) = cell {
                    eprintln!("{}, {}: {reason}", subject.title(), scenario.name);
                }
            }
        }
    }
}

fn ask(subject: &mut Subject, scenario: &Scenario) -> Result<Answer> {
    match scenario.kind {
        Kind::Command => subject.command(scenario.times),
        Kind::Served => subject.ask(scenario.name, scenario.times),
        // A process that is reused would recycle the memory of earlier sessions, which then would
        // not count.
        Kind::ServedAfresh => subject.another()?.ask(scenario.name, scenario.times),
    }
}

impl Asked {
    fn parse(args: &[OsString]) -> Result<Self> {
        let mut asked = Self { rounds: ROUNDS, only: Vec::new(), markdown: None };
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--rounds") => {
                    let rounds = args.next().and_then(|rounds| rounds.to_str()?.parse().ok());
                    asked.rounds = rounds
                        .filter(|rounds| *rounds > 0)
                        .context("`--rounds` needs a number of rounds, such as `--rounds 5`")?;
                }
                Some("--only") => {
                    while let Some(name) =
                        args.next_if(|arg| !arg.to_string_lossy().starts_with('-'))
                    {
                        asked.only.push(name.to_string_lossy().into_owned());
                    }
                    ensure!(!asked.only.is_empty(), "`--only` needs names; {}", names());
                }
                Some("--markdown") => {
                    asked.markdown = Some(args.next().context("`--markdown` needs a file")?.into());
                }
                _ => bail!("`{}` is no option of `bench`", arg.to_string_lossy()),
            }
        }
        let unknown = asked.only.iter().find(|name| !is_subject(name) && !is_scenario(name));
        match unknown {
            Some(unknown) => bail!("there is no `{unknown}` to measure; {}", names()),
            None => Ok(asked),
        }
    }

    fn wants_subject(&self, name: &str) -> bool {
        !self.only.iter().any(|name| is_subject(name)) || self.only.iter().any(|only| only == name)
    }

    fn scenarios(&self) -> Vec<&'static Scenario> {
        let all = !self.only.iter().any(|name| is_scenario(name));
        let wanted =
            |scenario: &&Scenario| all || self.only.iter().any(|only| only == scenario.name);
        SCENARIOS.iter().filter(wanted).collect()
    }
}

fn is_subject(name: &str) -> bool {
    peers::NAMES.contains(&name)
}

fn is_scenario(name: &str) -> bool {
    SCENARIOS.iter().any(|scenario| scenario.name == name)
}

fn names() -> String {
    let scenarios: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    format!("subjects are {}, scenarios {}", peers::NAMES.join(", "), scenarios.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Asked> {
        let words: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
        Asked::parse(&words)
    }

    #[test]
    fn command_line_is_understood() {
        let asked = parse("--rounds 3 --only monty run tool --markdown out.md").unwrap();
        assert_eq!((asked.rounds, asked.markdown), (3, Some(PathBuf::from("out.md"))));
        assert_eq!(asked.only, ["monty", "run", "tool"]);
        assert_eq!(parse("").unwrap(), Asked { rounds: ROUNDS, only: Vec::new(), markdown: None });
    }

    #[test]
    fn names_choose_subjects_and_scenarios() {
        let asked = parse("--only monty run").unwrap();
        assert!(asked.wants_subject("monty") && !asked.wants_subject("cpython"));
        assert_eq!(asked.scenarios().len(), 1);
        let asked = parse("--only run").unwrap();
        assert!(asked.wants_subject("monty") && asked.wants_subject("cpython"));
        assert_eq!(parse("--only cpython").unwrap().scenarios().len(), SCENARIOS.len());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (words, reason) in [
            ("--rounds 0", "needs a number"),
            ("--rounds", "needs a number"),
            ("--only", "needs names"),
            ("--only deno", "there is no `deno`"),
            ("--markdown", "needs a file"),
            ("--fast", "`--fast` is no option"),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
