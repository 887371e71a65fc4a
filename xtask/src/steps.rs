//! Runs the steps of a command in order, and tells how long each took.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

/// A name, and what is done under it.
pub(crate) type Step = (&'static str, fn() -> Result<ExitCode>);

/// How long steps took.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<(&'static str, Duration)>);

impl Times {
    /// Runs the steps until one fails, whose exit code it returns.
    pub(crate) fn run(&mut self, steps: &[Step]) -> Result<ExitCode> {
        for (name, step) in steps {
            eprintln!("== {name}");
            let start = Instant::now();
            let code = step()?;
            let took = start.elapsed();
            self.0.push((name, took));
            let passed = code == ExitCode::SUCCESS;
            let end = if passed { "passed in" } else { "failed after" };
            eprintln!("== {name} {end} {:.1} s", took.as_secs_f64());
            if !passed {
                return Ok(code);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns a table for a page of documentation.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| step | seconds |\n|-|-|\n");
        let total: Duration = self.0.iter().map(|(_, took)| *took).sum();
        for (name, took) in self.0.iter().copied().chain([("all", total)]) {
            // Writing to a text cannot fail.
            let _ = writeln!(table, "| {name} | {:.0} |", took.as_secs_f64());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_the_first_that_fails_and_all_that_ran_are_in_the_table() {
        let mut times = Times::default();
        let steps: [Step; 3] = [
            ("one", || Ok(ExitCode::SUCCESS)),
            ("two", || Ok(ExitCode::from(3))),
            ("three", || panic!("this was run after a failure")),
        ];
        assert_eq!(times.run(&steps).unwrap(), ExitCode::from(3));
        assert_eq!(
            times.table(),
            "| step | seconds |\n|-|-|\n| one | 0 |\n| two | 0 |\n| all | 0 |\n"
        );
    }
}
