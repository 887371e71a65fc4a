//! Runs of a program: each with flags of its own, against a host in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolet::Isolation;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::flags::{Flags, Kind, Reached, VARIABLE};
use super::host::{Allowed, Request};
use super::programs::Program;

/// The limit of a program's time.
const TIME: Duration = Duration::from_secs(5);

/// How long a host may take for one program.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long the output of a host that was killed may take to come.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The test of the library that is a worker in which native code runs.
const NATIVE: &str = "worker::child::serve::taken_over::start";

/// The test that prints what native code attempts.
const LIST: &str = "worker::child::serve::taken_over::list";

/// How a program is run.
pub(crate) struct Run {
    isolation: Isolation,
    allowed: Allowed,
    /// A script that starts the worker, if native code takes its place.
    worker: Option<TempDir>,
}

/// What became of a run.
pub(crate) struct Outcome {
    pub(crate) reached: Vec<Reached>,
    /// How the program, or the host, ended.
    pub(crate) ended: String,
    seconds: f64,
}

/// An attempt of native code.
pub(crate) struct Attempt {
    pub(crate) kind: String,
    pub(crate) program: Program,
    /// Set if it may be run without the lockdown, too.
    pub(crate) is_harmless: bool,
}

/// Returns the name of a column.
pub(crate) fn column(isolation: Isolation) -> &'static str {
    if isolation == Isolation::Thread { "thread" } else { "process" }
}

impl Run {
    pub(crate) fn new(isolation: Isolation) -> Self {
        Self { isolation, allowed: Allowed::Nothing, worker: None }
    }

    pub(crate) fn allowed(self, allowed: Allowed) -> Self {
        Self { allowed, ..self }
    }

    /// Has native code of this test program take the place of the worker, with the lockdown or
    /// without.
    pub(crate) fn native(self, program: &Path, is_confined: bool) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("isolet-native-").tempdir()?;
        let script = directory.path().join("worker");
        let lockdown = if is_confined { "" } else { "unconfined" };
        let program = program.display();
        // Workers have no environment, and a shell would set some.
        let text = format!(
            "#!/bin/sh\nexec env -i '{program}' --exact {NATIVE} --nocapture as-a-worker {lockdown}\n"
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(Self { worker: Some(directory), ..self })
    }

    /// Runs a program.
    pub(crate) fn of(&self, program: &Program) -> Result<Outcome> {
        let flags = Flags::plant()?;
        let request = Request {
            isolation: self.isolation,
            allowed: self.allowed,
            programs: vec![(program.name.clone(), program.code.clone())],
            worker: self.worker.as_ref().map(|directory| directory.path().join("worker")),
            time: TIME,
        };
        let start = Instant::now();
        let mut host = Command::new(std::env::current_exe()?)
            .arg("host")
            .env(VARIABLE, flags.flag(Kind::Environment))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let request = request.to_json(&flags).to_string();
        let mut input = host.stdin.take().context("the host has no standard input")?;
        // A host that has ended says so below.
        let _ = input.write_all(request.as_bytes());
        drop(input);
        let (printed, ended) = end(host)?;
        let printed = String::from_utf8_lossy(&printed);
        let (mut ended, mut text) = (ended, Vec::new());
        for line in printed.lines() {
            let answer = serde_json::from_str::<Value>(line).unwrap_or_default();
            match (answer["ended"].as_str(), answer["returned"].as_str()) {
                (Some(how), Some(returned)) => {
                    how.clone_into(&mut ended);
                    text.push(returned.to_owned());
                }
                // What the host has printed besides: the program may have made it do so.
                _ => text.push(line.to_owned()),
            }
        }
        let text = text.join("\n").into_bytes();
        Ok(Outcome { reached: flags.reached(&text), ended, seconds: start.elapsed().as_secs_f64() })
    }
}

/// Waits for a host. Returns all that it printed, and how it ended.
fn end(mut host: Child) -> Result<(Vec<u8>, String)> {
    let mut output = host.stdout.take().context("the host has no standard output")?;
    let mut errors = host.stderr.take().context("the host has no standard error")?;
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    thread::spawn(move || sender.send(read_all(&mut output)));
    thread::spawn(move || other.send(read_all(&mut errors)));
    let until = Instant::now() + PATIENCE;
    let mut printed = Vec::new();
    let mut is_late = false;
    for _ in 0..2 {
        let left = until.saturating_duration_since(Instant::now());
        let bytes = receiver.recv_timeout(left).or_else(|_| {
            is_late = true;
            // Its output ends with it, and counts.
            let _ = host.kill();
            receiver.recv_timeout(LAST_WORDS)
        });
        printed.extend(bytes.unwrap_or_default());
    }
    let status = host.wait()?;
    if is_late {
        return Ok((printed, "the host answered no longer".to_owned()));
    }
    let ended = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("the host ended by signal {signal}"),
        (None, code) => format!("the host ended with status {}", code.unwrap_or(-1)),
    };
    Ok((printed, ended))
}

fn read_all(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before an error counts.
    let _ = from.read_to_end(&mut bytes);
    bytes
}

impl Outcome {
    /// Returns the line about a run.
    pub(crate) fn json(&self, kind: &str, program: &Program, column: &str) -> Value {
        let Program { name, what, source, .. } = program;
        let reached: Vec<String> = self.reached.iter().map(ToString::to_string).collect();
        json!({
            "kind": kind,
            "name": name,
            "what": what,
            "source": source,
            "column": column,
            "reached": reached,
            "ended": self.ended,
            "seconds": self.seconds,
        })
    }
}

/// Asks a test program of the library for what native code attempts.
pub(crate) fn native_attempts(program: &Path) -> Result<Vec<Attempt>> {
    let mut listing = Command::new(program)
        .args(["--exact", LIST, "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", program.display()))?;
    let output = listing.stdout.take().context("a child has no standard output")?;
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let attempts: Vec<Attempt> = lines.filter_map(|line| attempt(&line)).collect();
    ensure!(listing.wait()?.success() && !attempts.is_empty(), "there are no native attempts");
    Ok(attempts)
}

/// Reads a line about an attempt, which libtest may have begun.
fn attempt(line: &str) -> Option<Attempt> {
    let line: Value = serde_json::from_str(&line[line.find('{')?..]).ok()?;
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let name = text("name")?;
    let program = Program {
        code: format!("'attempt:{name};'\n"),
        name,
        what: text("what")?,
        source: text("source")?,
    };
    Some(Attempt { kind: text("kind")?, program, is_harmless: line["is_harmless"] == true })
}
