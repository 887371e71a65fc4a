//! The plan of a move: what it changes, what is done by this command, and what a person does.

use std::fmt::Write as _;

use super::chores::Chore;
use super::edits::Edit;

/// What a comparison of the pinned version and another one has found.
#[derive(Debug, PartialEq)]
pub(super) enum Finding {
    /// It was compared, and is the same.
    Kept(String),
    /// It is another one.
    Changed(String),
    /// does not fit isolet.
    Broken(String),
}

/// What a person does, and what there is to know about it in this move.
#[derive(Debug, PartialEq)]
pub(super) struct Task {
    pub(super) chore: Chore,
    pub(super) details: Vec<String>,
}

/// A move from the pinned version to another one.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) what: &'static str,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) findings: Vec<Finding>,
    pub(super) edits: Vec<Edit>,
    pub(super) tasks: Vec<Task>,
}

impl Plan {
    /// Whether all is as it is now.
    pub(super) fn is_empty(&self) -> bool {
        let is_kept = self.findings.iter().all(|finding| matches!(finding, Finding::Kept(_)));
        is_kept && self.edits.is_empty() && self.tasks.is_empty()
    }

    /// Adds a task, with what there is to know about it.
    pub(super) fn task(&mut self, chore: Chore, details: Vec<String>) {
        self.tasks.push(Task { chore, details });
    }

    /// Adds what has been found about a value before and after.
    pub(super) fn compared(&mut self, name: &str, before: &str, after: &str) {
        self.findings.push(if before == after {
            Finding::Kept(format!("{name}: {before}"))
        } else {
            Finding::Changed(format!("{name}: {before} becomes {after}"))
        });
    }

    /// Returns the plan for a person. `is_dry` says whether the edits are still to be made.
    pub(super) fn shown(&self, is_dry: bool) -> String {
        let Self { what, from, to, findings, edits, tasks } = self;
        let mut text = format!("{what} {from} -> {to}\n");
        let of = |choose: fn(&Finding) -> Option<&String>| findings.iter().filter_map(choose);
        let section = |text: &mut String, title: &str, lines: &mut dyn Iterator<Item = &String>| {
            let mut lines = lines.peekable();
            if lines.peek().is_some() {
                let _ = writeln!(text, "\n{title}:");
            }
            for line in lines {
                let _ = writeln!(text, "  {}", line.replace('\n', "\n    "));
            }
        };
        section(
            &mut text,
            "does not fit isolet",
            &mut of(|finding| match finding {
                Finding::Broken(line) => Some(line),
                _ => None,
            }),
        );
        section(
            &mut text,
            "changes",
            &mut of(|finding| match finding {
                Finding::Changed(line) => Some(line),
                _ => None,
            }),
        );
        section(
            &mut text,
            "is the same",
            &mut of(|finding| match finding {
                Finding::Kept(line) => Some(line),
                _ => None,
            }),
        );
        let edits: Vec<String> = edits.iter().map(ToString::to_string).collect();
        let title = if is_dry { "this command does without `--dry-run`" } else { "done" };
        section(&mut text, title, &mut edits.iter());
        if self.is_empty() {
            text.push_str("\nnothing is to be done\n");
        }
        if !tasks.is_empty() {
            text.push_str("\na person does then, as docs/contributing/bump.md says:\n");
        }
        for (Task { chore, details }, number) in tasks.iter().zip(1..) {
            let _ = writeln!(text, "  {number}. {} ({})", chore.title(), chore.takes());
            let _ = writeln!(text, "     $ {}", chore.command());
            for detail in details {
                let _ = writeln!(text, "     - {detail}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let (from, to) = ("1.0.0".to_owned(), "1.1.0".to_owned());
        let (findings, edits, tasks) = Default::default();
        Plan { what: "deno_core", from, to, findings, edits, tasks }
    }

    #[test]
    fn a_plan_has_a_section_for_each_kind_of_line() {
        let mut plan = plan();
        plan.compared("`v8`", "15", "16");
        plan.compared("`deno_error`", "0.7.1", "0.7.1");
        plan.findings.push(Finding::Broken("`op_a`: is gone".to_owned()));
        plan.edits.push(Edit::Lock);
        plan.task(Chore::Golden, vec!["new op `op_b`".to_owned()]);
        let chore = Chore::Golden;
        assert_eq!(
            plan.shown(true),
            format!(
                "deno_core 1.0.0 -> 1.1.0\n\n\
                 does not fit isolet:\n  `op_a`: is gone\n\n\
                 changes:\n  `v8`: 15 becomes 16\n\n\
                 is the same:\n  `deno_error`: 0.7.1\n\n\
                 this command does without `--dry-run`:\n  Cargo.lock: by cargo, from the pins\n\n\
                 a person does then, as docs/contributing/bump.md says:\n  \
                 1. {} ({})\n     $ {}\n     - new op `op_b`\n",
                chore.title(),
                chore.takes(),
                chore.command()
            )
        );
        assert!(plan.shown(false).contains("\ndone:\n"));
        assert!(!plan.is_empty());
    }

    #[test]
    fn only_a_plan_in_which_all_is_kept_is_empty() {
        let mut plan = plan();
        plan.compared("a", "1", "1");
        assert!(plan.is_empty());
        assert!(plan.shown(true).ends_with("\nnothing is to be done\n"));
        plan.compared("a", "1", "2");
        assert!(!plan.is_empty());
    }
}
