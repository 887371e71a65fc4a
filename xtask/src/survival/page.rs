//! The page of the results: a table of the kinds, and one of the programs.

use std::fmt::Write as _;

use super::host::{Verdict, shortened};
use super::programs::{Kind, Program};
use super::{CHART, Column, LATE, SECONDS};

/// How many programs of a column came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The programs that were run.
    pub(super) ran: usize,
    pub(super) alive: usize,
    pub(super) kept: usize,
    pub(super) in_time: usize,
}

impl Counts {
    pub(super) fn of(verdicts: &[Verdict]) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Skipped(_) => continue,
                Verdict::Alive { kept, in_time, .. } => {
                    counts.alive += 1;
                    counts.kept += usize::from(*kept);
                    counts.in_time += usize::from(*in_time);
                }
                Verdict::Ended(_) => {}
            }
            counts.ran += 1;
        }
        counts
    }
}

/// Returns the page.
pub(super) fn page(
    here: &str,
    kinds: &[&Kind],
    features: &[Program],
    columns: &[Column],
    missing: &[String],
) -> String {
    let programs: usize = kinds.iter().map(|kind| kind.programs.len()).sum();
    let chart = CHART.trim_start_matches("docs/");
    let mut text = format!(
        "# Survival\n\n\
         What {programs} short programs do to the process that embeds an interpreter, and to its\n\
         session. `cargo xtask survival` writes this page from one run; the programs are in\n\
         [`benches/survival`](../benches/survival).\n\n\
         ![How many programs the host and the session survive]({chart})\n\n\
         Each program runs in a session of its own, in which `kept = 41` ran 0.3 s before, with a\n\
         limit of {SECONDS} s and, where a subject has one, 512 MiB. isolet has\n\
         [checkpoints](concepts/checkpoints.md) and a grace of 0.3 s.\n\n\
         * **alive**: the embedding process goes on, and answers.\n\
         * **kept**: afterwards `kept + 1` is 42.\n\
         * **in time**: the run ended at most {LATE} s after its limit.\n\n\
         A program that a subject does not run is left out of its counts: it lacks the package or\n\
         the module, or refuses the program with `NotImplementedError` or an `AttributeError` of a\n\
         module.\n\n"
    );
    table(&mut text, kinds, columns);
    features_of(&mut text, features, columns);
    let _ = writeln!(text, "\n## What was measured\n\n{here}:\n");
    for Column { title, what, .. } in columns {
        let _ = writeln!(text, "* {title}: {what}");
    }
    for line in missing {
        let _ = writeln!(text, "* {line}");
    }
    text.push_str(
        "\n## Each program\n\n\
         `kept`, `gone` (the session), `ended` (the host), `late` (after the limit), `–` (not run);\n\
         and what a user of isolet is told in a worker.\n",
    );
    let mut start = 0;
    for kind in kinds {
        programs_of(&mut text, kind, columns, start);
        start += kind.programs.len();
    }
    text
}

/// Writes a row for each kind, and one for all.
fn table(text: &mut String, kinds: &[&Kind], columns: &[Column]) {
    let titles = titles(columns);
    let _ = writeln!(text, "| alive / kept / in time, of |{titles}");
    let _ = writeln!(text, "|-|{}", "-|".repeat(columns.len()));
    let mut start = 0;
    let mut row = |title: &str, range: std::ops::Range<usize>| {
        let _ = write!(text, "| {title} |");
        for column in columns {
            let Counts { ran, alive, kept, in_time } = Counts::of(&column.verdicts[range.clone()]);
            let _ = match ran {
                0 => write!(text, " – |"),
                _ => write!(text, " {alive} / {kept} / {in_time}, {ran} |"),
            };
        }
        text.push('\n');
    };
    for kind in kinds {
        row(kind.title, start..start + kind.programs.len());
        start += kind.programs.len();
    }
    row("**all**", 0..start);
}

/// Writes a row for each program that shows what of Python there is.
fn features_of(text: &mut String, features: &[Program], columns: &[Column]) {
    if features.is_empty() {
        return;
    }
    let titles = titles(columns);
    let _ = writeln!(
        text,
        "\n## What of Python there is\n\n\
         Programs that hurt nobody, and whether they come to their end in {SECONDS} s:\n\
         `benches/survival/features.py`.\n\n\
         | program |{titles}\n|-|{}",
        "-|".repeat(columns.len())
    );
    for (at, program) in features.iter().enumerate() {
        let _ = write!(text, "| {} |", program.name);
        for column in columns {
            text.push_str(if column.has[at] { " yes |" } else { " – |" });
        }
        text.push('\n');
    }
}

/// Writes a row for each program of a kind.
fn programs_of(text: &mut String, kind: &Kind, columns: &[Column], start: usize) {
    let titles = titles(columns);
    let _ = writeln!(text, "\n### {}\n", capitalized(kind.title));
    let _ = writeln!(text, "| program |{titles} told |");
    let _ = writeln!(text, "|-|{}-|", "-|".repeat(columns.len()));
    for (at, program) in kind.programs.iter().enumerate() {
        let _ = write!(text, "| {} |", program.name);
        for column in columns {
            let _ = write!(text, " {} |", short(&column.verdicts[start + at]));
        }
        let told = columns.first().map_or("", |column| column.verdicts[start + at].told());
        let told = shortened(told, 120).replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(text, " {told} |");
    }
}

/// Returns the heads of the columns.
fn titles(columns: &[Column]) -> String {
    columns.iter().flat_map(|column| [" ", column.title, " |"]).collect()
}

fn short(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Skipped(_) => "–".to_owned(),
        Verdict::Ended(_) => "**ended**".to_owned(),
        Verdict::Alive { kept, in_time, seconds, .. } => {
            let kept = if *kept { "kept" } else { "gone" };
            if *in_time { kept.to_owned() } else { format!("{kept}, late: {seconds:.1} s") }
        }
    }
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survival::programs::Program;

    fn alive(kept: bool, in_time: bool) -> Verdict {
        let seconds = if in_time { 1.0 } else { 9.0 };
        Verdict::Alive { kept, seconds, told: "MemoryError: a | b".to_owned(), in_time }
    }

    #[test]
    fn a_page_counts_what_was_run() {
        let program = |name: &str| Program {
            name: name.to_owned(),
            code: String::new(),
            packages: Vec::new(),
        };
        let programs = ["one", "two", "three", "four"].map(program).into();
        let kind = Kind { name: "depth".to_owned(), title: "depth", programs };
        let verdicts = vec![
            alive(true, true),
            alive(false, false),
            Verdict::Ended("was aborted".to_owned()),
            Verdict::Skipped("has no numpy".to_owned()),
        ];
        assert_eq!(Counts::of(&verdicts), Counts { ran: 3, alive: 2, kept: 1, in_time: 1 });
        let column = Column { title: "it", what: "it 1".to_owned(), verdicts, has: vec![true] };
        let feature = kind.programs[0].clone();
        let page = page("2026-11-28, here", &[&kind], &[feature], &[column], &[]);
        for expected in [
            "| depth | 2 / 1 / 1, 3 |\n",
            "| **all** | 2 / 1 / 1, 3 |\n",
            "| one | kept | MemoryError: a \\| b |\n",
            "| two | gone, late: 9.0 s | MemoryError: a \\| b |\n",
            "| three | **ended** | was aborted |\n",
            "| four | – | has no numpy |\n",
            "| one | yes |\n",
            "* it: it 1\n",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
