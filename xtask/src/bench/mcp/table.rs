//! The tables of the benchmark, in Markdown.

use std::fmt::{Arguments, Write};

use super::super::table::{digits, percentile, write_to};
use super::TOKENIZER;
use super::seen::{Definitions, Part, Seen, Task};

/// Renders everything that was measured.
pub(super) fn render(seen: &Seen) -> String {
    let parts = [definitions(seen), turns(seen), totals(seen), times(seen), remarks(seen)];
    parts.join("\n")
}

fn definitions(seen: &Seen) -> String {
    let mut text = String::from(
        "| servers | tools | direct, tokens | code mode, tokens | it describes tools by |\n\
         |-|-|-|-|-|\n",
    );
    for set in &seen.definitions {
        let servers = match &set.servers[..] {
            servers @ ([_] | [_, _]) => servers.join(", "),
            servers => format!("all {}", servers.len()),
        };
        let cells = format_args!(
            "| {servers} | {} | {} | {} | {} |\n",
            set.tools,
            thousands(set.direct),
            compared(set.code, set.direct),
            set.form
        );
        write_to(&mut text, cells);
    }
    text
}

fn turns(seen: &Seen) -> String {
    rows(
        seen,
        "| task | turns: direct | one by one | code | careful | tokens: direct | code | careful | \
         code, structured |\n|-|-|-|-|-|-|-|-|-|\n",
        |text, task| {
            let careful = task.careful(false);
            let direct = task.direct.tokens();
            let cells = format_args!(
                "{} | {} | {} | {} | {} | {} | {} | {} |",
                task.direct.turns,
                task.turns_one_by_one,
                task.code.turns,
                careful.turns,
                thousands(direct),
                compared(task.code.tokens(), direct),
                compared(careful.tokens(), direct),
                compared(task.code.tokens_structured(), direct),
            );
            write_to(text, cells);
        },
    )
}

fn totals(seen: &Seen) -> String {
    rows(
        seen,
        "| task | its servers: direct | code | careful | all servers: direct | code | careful |\n\
         |-|-|-|-|-|-|-|\n",
        |text, task| {
            for set in [seen.definitions_of(&task.servers), seen.definitions.last()] {
                let Some(set) = set else { continue };
                let direct = set.direct + task.direct.tokens();
                let cells = format_args!(
                    "{} | {} | {} |",
                    thousands(direct),
                    compared(set.code + task.code.tokens(), direct),
                    compared(set.code + careful(task, set).tokens(), direct),
                );
                write_to(text, cells);
                text.push(' ');
            }
            text.truncate(text.trim_end().len());
        },
    )
}

fn careful(task: &Task, set: &Definitions) -> Part {
    task.careful(set.form == "signatures")
}

fn times(seen: &Seen) -> String {
    let latencies = seen.tasks.first().map(|task| &task.times[..]).unwrap_or_default();
    let mut head = String::from("| task |");
    for times in latencies {
        let latency = times.latency;
        write_to(&mut head, format_args!(" {latency} ms: one by one | side by side | code |"));
    }
    head.push_str("\n|-|");
    head.push_str(&"-|-|-|".repeat(latencies.len()));
    head.push('\n');
    rows(seen, &head, |text, task| {
        for (index, times) in task.times.iter().enumerate() {
            let shown = |times: &[u64]| median(times, 1e6).map_or_else(|| "-".into(), digits);
            let cells = format_args!(
                "{}{} | {} | {} |",
                if index > 0 { " " } else { "" },
                shown(&times.one_by_one),
                shown(&times.side_by_side),
                shown(&times.code)
            );
            write_to(text, cells);
        }
    })
}

/// Returns a table with a row for each task: its name, and what `cells` adds.
fn rows(seen: &Seen, head: &str, cells: impl Fn(&mut String, &Task)) -> String {
    let mut text = head.to_owned();
    for task in &seen.tasks {
        write_to(&mut text, format_args!("| `{}` | ", task.name));
        cells(&mut text, task);
        text.push('\n');
    }
    text
}

fn remarks(seen: &Seen) -> String {
    let mut text = String::new();
    let mut line = |arguments: Arguments<'_>| {
        let _ = writeln!(text, "* {arguments}");
    };
    for task in &seen.tasks {
        let small = if task.is_small { " (a case for direct calls)" } else { "" };
        line(format_args!("`{}`: {}{small}", task.name, task.what));
    }
    let (direct, code) = &seen.nested;
    if let (Some(direct), Some(code)) = (median(direct, 1e3), median(code, 1e3)) {
        line(format_args!(
            "One call at a latency of 0: {} µs from the client, {} µs from a program (×{})",
            digits(direct),
            digits(code),
            digits(code / direct)
        ));
    }
    for times in seen.tasks.iter().filter(|task| task.name == "write").flat_map(|task| &task.times)
    {
        if let (Some(old), Some(new)) = (median(&times.code, 1e6), median(&times.code_modern, 1e6))
        {
            line(format_args!(
                "`write` at {} ms: {} ms if the user is asked by a request, {} ms by a result",
                times.latency,
                digits(old),
                digits(new)
            ));
        }
    }
    line(format_args!("Tokens: {} {}, o200k_base", TOKENIZER.0, TOKENIZER.1));
    text
}

fn median(times: &[u64], unit: f64) -> Option<f64> {
    percentile(times, 50).map(|median| median / unit)
}

/// Returns a number of tokens, and its ratio to that of direct calls.
#[expect(clippy::cast_precision_loss, reason = "a table shows three digits")]
fn compared(tokens: u64, direct: u64) -> String {
    let ratio = digits(tokens as f64 / direct.max(1) as f64);
    format!("{} (×{ratio})", thousands(tokens))
}

/// Returns a number with a comma after each three digits.
fn thousands(number: u64) -> String {
    let plain = number.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::seen::tests::example;
    use super::*;

    #[test]
    fn numbers_have_commas() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn tables_have_a_row_for_each_task() {
        let expected = "\
| servers | tools | direct, tokens | code mode, tokens | it describes tools by |
|-|-|-|-|-|
| a | 3 | 100 | 50 (×0.50) | signatures |
| a, b | 3 | 900 | 50 (×0.056) | names |

| task | turns: direct | one by one | code | careful | tokens: direct | code | careful | code, structured |
|-|-|-|-|-|-|-|-|-|
| `t` | 1 | 4 | 1 | 3 | 210 | 25 (×0.12) | 76 (×0.36) | 50 (×0.24) |

| task | its servers: direct | code | careful | all servers: direct | code | careful |
|-|-|-|-|-|-|-|
| `t` | 310 | 75 (×0.24) | 84 (×0.27) | 1,110 | 75 (×0.068) | 126 (×0.11) |

| task | 50 ms: one by one | side by side | code |
|-|-|-|-|
| `t` | 2.00 | 1.00 | 0.50 |

* `t`: a task
* One call at a latency of 0: 10.0 µs from the client, 20.0 µs from a program (×2.00)
* Tokens: gpt-tokenizer 4.0.0, o200k_base
";
        assert_eq!(render(&example()), expected);
    }
}
