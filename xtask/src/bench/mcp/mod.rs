//! `cargo xtask bench mcp`: the same tasks by direct calls of MCP servers and in code mode, without
//! a model.
//!
//! The scripts in `benches/mcp` replay the tasks and write down texts and times; this counts the
//! tokens of the texts, and prints tables.

mod seen;
mod table;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::seen::{Seen, texts};
use super::{machine, peers};
use crate::process::{self, Profile};
use crate::setup;

const ROUNDS: usize = 5;

/// The latencies of a call in milliseconds.
const LATENCIES: [u64; 3] = [0, 50, 200];

const TOKENIZER: (&str, &str) = ("gpt-tokenizer", "4.0.0");

/// The time for all rounds together. The scripts bound each wait by themselves.
const PATIENCE: Duration = Duration::from_hours(1);

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    rounds: usize,
    latencies: Vec<u64>,
    /// What is measured instead of the command that is built for it.
    isolet: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

/// Measures, and prints the tables.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let asked = Asked::parse(args)?;
    let (python, node, dir) = (peers::find_python()?, peers::find_node()?, peers::directory()?);
    peers::from_npm(&dir, TOKENIZER.0, TOKENIZER.1)?;
    let isolet = if let Some(isolet) = &asked.isolet {
        isolet.clone()
    } else {
        setup::release()?;
        Profile::Release.built("isolet")?
    };
    let load = machine::load();
    let file = dir.join("mcp.json");
    measure(&python, &isolet, &asked, &dir.join("mcp"), &file)?;
    let text = fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let seen = serde_json::from_slice(&text).context("what was seen is no JSON")?;
    let texts = texts(&seen);
    let counts = count(&node, &dir, &texts)?;
    let seen = Seen::read(&seen, &texts.into_iter().zip(counts).collect())
        .context("the scripts have written something else than tasks")?;
    let text = format!("{}\n{}", machine::description(asked.rounds, &load)?, table::render(&seen));
    println!("{text}");
    if let Some(path) = &asked.markdown {
        fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Replays the tasks. What is seen goes to `file`.
fn measure(python: &Path, isolet: &Path, asked: &Asked, dir: &Path, file: &Path) -> Result<()> {
    let mut command = Command::new(python);
    command.arg(scripts().join("measure.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg("--isolet").arg(isolet).arg("--dir").arg(dir).arg("--out").arg(file);
    command.args(["--rounds", &asked.rounds.to_string(), "--latency"]);
    command.args(asked.latencies.iter().map(u64::to_string));
    within(PATIENCE, process::with_assets(&mut command).stdin(Stdio::null()))
}

/// Returns how many tokens each text has.
fn count(node: &Path, dir: &Path, texts: &[String]) -> Result<Vec<u64>> {
    let (given, counted) = (dir.join("texts.json"), dir.join("tokens.json"));
    let json = serde_json::to_vec(texts).context("the texts are not written as JSON")?;
    fs::write(&given, json).with_context(|| format!("cannot write `{}`", given.display()))?;
    let open = |file: std::io::Result<File>| file.context("cannot open the texts to count");
    let mut command = Command::new(node);
    command.arg(scripts().join("tokens.mjs")).env("ISOLET_BENCH_NODE", dir);
    command.stdin(open(File::open(&given))?).stdout(open(File::create(&counted))?);
    within(PATIENCE, &mut command)?;
    let counts = fs::read(&counted).context("cannot read the numbers of tokens")?;
    let counts: Vec<u64> =
        serde_json::from_slice(&counts).context("the tokenizer prints no numbers")?;
    ensure!(counts.len() == texts.len(), "the tokenizer has counted other texts");
    Ok(counts)
}

/// Runs a command that has to succeed in this time.
fn within(time: Duration, command: &mut Command) -> Result<()> {
    let mut child = process::spawn(command)?;
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a script")? {
            ensure!(status.success(), "a script of `benches/mcp` ended with {status}");
            return Ok(());
        }
        if Instant::now() >= end {
            child.kill().context("cannot end what hangs")?;
            child.wait().context("cannot wait for a script")?;
            bail!("a script of `benches/mcp` has not ended within {} s", time.as_secs());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn scripts() -> PathBuf {
    process::root().join("benches/mcp")
}

impl Asked {
    fn parse(args: &[OsString]) -> Result<Self> {
        let latencies = LATENCIES.to_vec();
        let mut asked = Self { rounds: ROUNDS, latencies, isolet: None, markdown: None };
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--rounds") => {
                    let rounds = args.next().and_then(|rounds| rounds.to_str()?.parse().ok());
                    asked.rounds = rounds
                        .filter(|rounds| *rounds > 0)
                        .context("`--rounds` needs a number of rounds, such as `--rounds 5`")?;
                }
                Some("--latency") => {
                    let number = |arg: &&OsString| arg.to_str()?.parse().ok();
                    asked.latencies.clear();
                    while let Some(latency) = args.peek().and_then(number) {
                        asked.latencies.push(latency);
                        args.next();
                    }
                    ensure!(!asked.latencies.is_empty(), "`--latency` needs milliseconds");
                }
                Some("--isolet") => {
                    asked.isolet = Some(args.next().context("`--isolet` needs a program")?.into());
                }
                Some("--markdown") => {
                    asked.markdown = Some(args.next().context("`--markdown` needs a file")?.into());
                }
                _ => bail!("`{}` is no option of `bench mcp`", arg.to_string_lossy()),
            }
        }
        Ok(asked)
    }
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
        let asked = parse("--rounds 3 --latency 0 50 --isolet a/b --markdown out.md").unwrap();
        let expected = Asked {
            rounds: 3,
            latencies: vec![0, 50],
            isolet: Some("a/b".into()),
            markdown: Some("out.md".into()),
        };
        assert_eq!(asked, expected);
        assert_eq!(parse("").unwrap().latencies, LATENCIES);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (words, reason) in [
            ("--rounds 0", "needs a number"),
            ("--latency", "needs milliseconds"),
            ("--latency --rounds 1", "needs milliseconds"),
            ("--isolet", "needs a program"),
            ("--markdown", "needs a file"),
            ("tool", "`tool` is no option"),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn script_that_hangs_is_ended() {
        let error = within(Duration::from_millis(1), Command::new("sleep").arg("60")).unwrap_err();
        assert!(error.to_string().contains("has not ended"), "{error}");
        let error = within(PATIENCE, &mut Command::new("false")).unwrap_err();
        assert!(error.to_string().contains("ended with"), "{error}");
    }
}
