//! The reports of test runners, in the format of `JUnit`: which tests took longest.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process;

/// How many tests are listed.
const SLOWEST: usize = 20;

#[derive(Debug, PartialEq)]
struct Case {
    seconds: f64,
    name: String,
}

/// Returns where cargo-nextest puts the report of each profile of `.config/nextest.toml`.
fn nextest_dir() -> PathBuf {
    process::root().join("target/nextest")
}

/// Returns where pytest's report of this name goes.
pub(crate) fn pytest_report(name: &str) -> Result<PathBuf> {
    Ok(process::target_dir()?.join("pytest").join(name).with_extension("xml"))
}

/// Removes what earlier runs reported.
pub(crate) fn clear() -> Result<()> {
    for dir in [nextest_dir(), process::target_dir()?.join("pytest")] {
        if dir.exists() {
            fs::remove_dir_all(&dir)
                .with_context(|| format!("cannot remove `{}`", dir.display()))?;
        }
    }
    Ok(())
}

/// Returns a table of the slowest tests of all reports.
pub(crate) fn slowest() -> Result<String> {
    let mut cases = Vec::new();
    for report in reports(&nextest_dir()).chain(reports(&process::target_dir()?.join("pytest"))) {
        let text = fs::read_to_string(&report)
            .with_context(|| format!("cannot read `{}`", report.display()))?;
        let run = report.with_extension("");
        let run = if run.ends_with("junit") { run.parent().unwrap_or(&run) } else { &run };
        let run = run.file_name().unwrap_or_default().to_string_lossy();
        cases.extend(
            read(&text, &run).with_context(|| format!("`{}` is no report", report.display()))?,
        );
    }
    Ok(table(cases))
}

fn table(mut cases: Vec<Case>) -> String {
    cases.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let mut table = String::from("| test | seconds |\n|-|-|\n");
    for Case { seconds, name } in cases.iter().take(SLOWEST) {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "| `{name}` | {seconds:.0} |");
    }
    table
}

/// Returns the reports in a directory and in its directories.
fn reports(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "xml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.into_iter()
}

/// Returns the tests of the report of a run.
fn read(report: &str, run: &str) -> Result<Vec<Case>> {
    let document = roxmltree::Document::parse(report)?;
    let tests = document.descendants().filter(|node| node.has_tag_name("testcase"));
    tests
        .map(|test| {
            let text = |name: &str| test.attribute(name).unwrap_or_default();
            let seconds = text("time").parse().context("a test has no time")?;
            let class = text("classname");
            // nextest has the program here, pytest the module.
            let name = format!("{run}: {class} {}", text("name"));
            Ok(Case { seconds, name })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" failures="0">
    <testsuite name="isolet::it" tests="2">
        <testcase name="deadline::a" classname="isolet::it" time="0.250"><system-out>&lt;x</system-out></testcase>
        <testcase name="deadline::b" classname="isolet::it" time="61.0"/>
    </testsuite>
</testsuites>"#;

    #[test]
    fn tests_are_listed_slowest_first_with_their_run() {
        let cases = read(REPORT, "thread").unwrap();
        assert_eq!(cases.len(), 2);
        let expected = "| test | seconds |\n|-|-|\n\
            | `thread: isolet::it deadline::b` | 61 |\n\
            | `thread: isolet::it deadline::a` | 0 |\n";
        assert_eq!(table(cases), expected);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        read("tests: 2", "thread").unwrap_err();
        read(r#"<testcase name="a"/>"#, "thread").unwrap_err();
    }
}
