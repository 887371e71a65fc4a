//! The benchmark's table: a row for each scenario, a column for each subject.

use std::collections::HashMap;
use std::fmt::Write;

use super::peers;
use super::scenario::{Scenario, Unit};

/// The result of a scenario with a subject.
#[derive(Debug)]
pub(super) enum Cell {
    /// Nanoseconds or bytes.
    Times(Vec<u64>),
    /// The subject does not support the scenario.
    Skipped,
    Failed(String),
}

/// Renders all results as Markdown. A column is a name, a title and a description.
pub(super) fn render(
    columns: &[(&str, &str, &str)],
    scenarios: &[&Scenario],
    cells: &HashMap<(usize, usize), Cell>,
    missing: &[String],
) -> String {
    let mut text = String::from("| what | goal |");
    for (_, title, _) in columns {
        write_to(&mut text, format_args!(" {title} |"));
    }
    text.push_str("\n|-|-|");
    text.push_str(&"-|".repeat(columns.len()));
    text.push('\n');
    let base = columns.iter().position(|(name, ..)| *name == peers::BASE);
    let mut failures = String::new();
    for (row, scenario) in scenarios.iter().enumerate() {
        let (unit, _) = scale(scenario.unit);
        let goal = scenario.goal.map_or_else(String::new, |goal| format!("{goal} {unit}"));
        write_to(
            &mut text,
            format_args!("| `{}`: {}, {unit} | {goal} |", scenario.name, scenario.what),
        );
        let base = base.and_then(|base| median(cells.get(&(row, base))));
        for (column, (name, title, _)) in columns.iter().enumerate() {
            let cell = cells.get(&(row, column));
            let base = base.filter(|_| *name != peers::BASE);
            write_to(&mut text, format_args!(" {} |", shown(cell, scenario.unit, base)));
            if let Some(Cell::Failed(reason)) = cell {
                let name = scenario.name;
                write_to(&mut failures, format_args!("* {title}, `{name}`: {reason}\n"));
            }
        }
        text.push('\n');
    }
    text.push('\n');
    for (_, title, what) in columns {
        write_to(&mut text, format_args!("* {title}: {what}\n"));
    }
    text.push_str(&failures);
    for line in missing {
        write_to(&mut text, format_args!("* {line}\n"));
    }
    text
}

/// Returns `p50 / p95`, and the ratio of the median to that of the base.
fn shown(cell: Option<&Cell>, unit: Unit, base: Option<f64>) -> String {
    let Some(Cell::Times(times)) = cell else {
        return if matches!(cell, Some(Cell::Failed(_))) { "failed".into() } else { "-".into() };
    };
    let (Some(p50), Some(p95)) = (percentile(times, 50), percentile(times, 95)) else {
        return "-".into();
    };
    let (_, divisor) = scale(unit);
    let mut text = format!("{} / {}", digits(p50 / divisor), digits(p95 / divisor));
    if let Some(base) = base.filter(|base| *base > 0.0) {
        write_to(&mut text, format_args!(" (×{})", digits(p50 / base)));
    }
    text
}

fn median(cell: Option<&Cell>) -> Option<f64> {
    match cell {
        Some(Cell::Times(times)) => percentile(times, 50),
        _ => None,
    }
}

/// Returns the smallest value that at least this percentage of the values do not exceed.
#[expect(clippy::cast_precision_loss, reason = "a table shows three digits")]
pub(super) fn percentile(values: &[u64], percent: usize) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let index = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(index).map(|value| *value as f64)
}

/// Returns the unit's name and its size in nanoseconds or bytes.
fn scale(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Milliseconds => ("ms", 1e6),
        Unit::Mebibytes => ("MiB", 1024.0 * 1024.0),
    }
}

/// Formats a number with about three significant digits.
pub(super) fn digits(number: f64) -> String {
    let places = match number {
        number if number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        number if number >= 0.1 => 2,
        number if number >= 0.01 => 3,
        _ => 4,
    };
    format!("{number:.places$}")
}

pub(super) fn write_to(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::super::scenario::SCENARIOS;
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<u64> = (1..=15).rev().collect();
        assert_eq!(percentile(&values, 50), Some(8.0));
        assert_eq!(percentile(&values, 95), Some(15.0));
        assert_eq!(percentile(&[7], 95), Some(7.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [1234.5, 12.345, 1.2345, 0.123_45, 0.012_345, 0.008_51].map(digits);
        assert_eq!(shown, ["1234", "12.3", "1.23", "0.12", "0.012", "0.0085"]);
    }

    #[test]
    fn table_has_a_row_and_a_column_for_each() {
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == "run").unwrap();
        let columns =
            [(peers::BASE, "A", "a 1"), ("b", "B", "b 2"), ("c", "C", "c 3"), ("d", "D", "d 4")];
        let cells = HashMap::from([
            ((0, 0), Cell::Times(vec![1_000_000, 2_000_000])),
            ((0, 1), Cell::Times(vec![3_000_000])),
            ((0, 2), Cell::Skipped),
            ((0, 3), Cell::Failed("no".into())),
        ]);
        let text = render(&columns, &[scenario], &cells, &["E is left out".into()]);
        let expected = "\
| what | goal | A | B | C | D |
|-|-|-|-|-|-|
| `run`: `40+2` in a warm session, ms | 0.08 ms | 1.00 / 2.00 | 3.00 / 3.00 (×3.00) | - | failed |

* A: a 1
* B: b 2
* C: c 3
* D: d 4
* D, `run`: no
* E is left out
";
        assert_eq!(text, expected);
    }
}
