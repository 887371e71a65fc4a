//! `cargo xtask escape`: programs that try to read flags of the host, in both isolations, and
//! native code that tries it in a worker without V8 before it. Fails if a flag was read.

mod page;
mod row;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use self::row::{Column, Row};
use crate::bench::peers::executable;
use crate::process::{self, Profile};
use crate::{assets, vendored_v8};

/// The page.
const PAGE: &str = "docs/escape.md";

/// Where the control has to find flags, in the words of the verdicts.
const FLAGS: [&str; 6] = ["file", "environment", "session", "server", "memory", "processes"];

/// Runs all programs, and writes the page. With `--only`, prints what became of some.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let only = parse(args)?;
    vendored_v8::ensure()?;
    let program =
        build(&["bench", "--no-run", "--package", process::COMMAND], "--bench", "escape")?;
    assets::prepare(&Profile::FastBuild.built("isolet")?)?;
    // The tests of the library, of which one is a worker in which native code runs.
    let native = build(&["test", "--no-run", "--package", "isolet"], "--lib", "isolet")?;
    let mut command = Command::new(program);
    command.arg("run").arg("--native").arg(native).current_dir(process::root());
    for name in &only {
        command.arg("--only").arg(name);
    }
    process::with_assets(&mut command).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = process::spawn(&mut command)?;
    let output = child.stdout.take().context("a child has no standard output")?;
    let mut rows = Vec::new();
    for line in BufReader::new(output).lines() {
        if let Some(row) = Row::read(&line?) {
            eprintln!("{row}");
            rows.push(row);
        }
    }
    ensure!(child.wait()?.success(), "the programs did not all run");
    check_controls(&rows)?;
    if only.is_empty() {
        let text = page::page(&rows);
        fs::write(process::root().join(PAGE), text)
            .with_context(|| format!("cannot write `{PAGE}`"))?;
        eprintln!("wrote `{PAGE}`");
    }
    let escaped: Vec<_> = rows.iter().filter(|row| row.is_escape()).collect();
    for row in &escaped {
        eprintln!("ESCAPED: {row}");
    }
    Ok(if escaped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Requires that what may read the flags was found to have read them.
fn check_controls(rows: &[Row]) -> Result<()> {
    for column in [Column::Thread, Column::Process] {
        let of_column = |row: &&Row| row.is_control() && row.column == column;
        for flag in FLAGS {
            let is_found = rows.iter().filter(of_column).any(|row| row.has_read(flag));
            ensure!(is_found, "the control ({}) did not find the {flag}'s flag", column.title());
        }
    }
    let has_native = rows.iter().any(|row| row.column == Column::Unconfined);
    let reads = |row: &Row| row.column == Column::Unconfined && row.has_read("file");
    ensure!(!has_native || rows.iter().any(reads), "native code reads nothing without a lockdown");
    Ok(())
}

fn parse(args: &[OsString]) -> Result<Vec<String>> {
    let mut words = args.iter().map(|arg| arg.to_str().context("an argument is not UTF-8"));
    match words.next().transpose()? {
        None => Ok(Vec::new()),
        Some("--only") => words.map(|word| Ok(word?.to_owned())).collect(),
        Some(other) => bail!("`{other}` is not an option of `escape`; there is --only"),
    }
}

/// Has cargo build a program of the tests, as tests are built. Returns its path.
fn build(command: &[&str], kind: &str, name: &str) -> Result<PathBuf> {
    let mut cargo = process::cargo();
    cargo.args(command).args(["--profile", Profile::FastBuild.name(), "--message-format=json"]);
    cargo.arg(kind).args((kind == "--bench").then_some(name));
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo cannot build `{name}`");
    let text = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let built = text.lines().find_map(|line| executable(line, name));
    built.context("cargo does not say what it built")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, column: &str, reached: &str) -> Row {
        let kind = if name.starts_with("control") { "Control" } else { "Files of the host" };
        let line = format!(
            "{{\"kind\": \"{kind}\", \"name\": \"{name}\", \"what\": \"\", \"source\": \"\", \
             \"column\": \"{column}\", \"reached\": [{reached}], \"ended\": \"completed\"}}"
        );
        Row::read(&line).unwrap()
    }

    #[test]
    fn a_control_that_finds_nothing_is_an_error_and_what_it_reads_is_no_escape() {
        let all = |column: &str| {
            FLAGS.map(|flag| row("control: x", column, &format!("\"the flag in the {flag}\"")))
        };
        let mut rows: Vec<Row> = all("thread").into_iter().chain(all("process")).collect();
        assert!(check_controls(&rows).is_ok());
        assert!(!rows.iter().any(Row::is_escape));
        rows.pop();
        let error = check_controls(&rows).unwrap_err().to_string();
        assert_eq!(error, "the control (process) did not find the processes's flag");
    }

    #[test]
    fn anything_that_is_reached_is_an_escape_unless_nothing_confines_it() {
        let flag = "\"the flag in the file\"";
        assert!(row("x", "thread", flag).is_escape());
        assert!(row("x", "native", "\"files of the host\"").is_escape());
        assert!(!row("x", "process", "").is_escape());
        assert!(!row("x", "unconfined", flag).is_escape());
    }

    #[test]
    fn only_names_follow_the_option() {
        let parse = |words: &[&str]| parse(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(parse(&["--only", "a shell"]).unwrap(), ["a shell"]);
        assert!(parse(&["a shell"]).is_err());
    }
}
