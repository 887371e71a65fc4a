//! A subject of the benchmark: a child process that reads commands as lines and answers with lines.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{bounded, process};

/// Longer than any answer takes. A subject that is silent for this long hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long a subject takes to end after the end of its input, until it is killed.
const TO_END: Duration = Duration::from_secs(10);

/// The program of the `command` scenario, in each peer's language.
pub(super) const COMMAND: &str = "print(40+2)";

/// A program that can be started repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
}

impl Program {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new(), variables: Vec::new() }
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.args).current_dir(process::root());
        // The Python peers must not write bytecode next to their sources.
        command.env("PYTHONDONTWRITEBYTECODE", "1").envs(self.variables.clone());
        process::with_assets(&mut command);
        command
    }
}

/// How to start a subject.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// The title of the column.
    pub(super) title: &'static str,
    pub(super) serve: Program,
    /// The program that runs `COMMAND` and exits.
    pub(super) command: Option<Program>,
    /// The file for its standard error.
    pub(super) log: PathBuf,
}

/// The result of a scenario.
#[derive(Debug)]
pub(super) enum Answer {
    /// Nanoseconds or bytes.
    Times(Vec<u64>),
    /// The subject does not support the scenario.
    Skip,
    Error(String),
}

/// A running subject.
#[derive(Debug)]
pub(super) struct Subject {
    recipe: Recipe,
    /// Its description of itself, with versions.
    what: String,
    child: Child,
    /// `None` after it was told to end.
    lines: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Subject {
    /// Starts the subject and waits for its description.
    pub(super) fn start(recipe: Recipe) -> Result<Self> {
        let log = File::create(&recipe.log)
            .with_context(|| format!("cannot write `{}`", recipe.log.display()))?;
        let mut command = recipe.serve.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", recipe.title))?;
        let lines = child.stdin.take();
        let output = child.stdout.take().context("a child has no standard output")?;
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // After the subject is dropped, nobody receives lines.
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        let mut subject = Self { recipe, what: String::new(), child, lines, answers };
        match subject.answer()? {
            Value::String(what) => subject.what = what,
            other => bail!("{} does not say what it is: {other}", subject.title()),
        }
        Ok(subject)
    }

    /// Starts a second process of the same subject.
    pub(super) fn another(&self) -> Result<Self> {
        Self::start(self.recipe.clone())
    }

    /// Ends the process, if it still runs.
    pub(super) fn end(&mut self) {
        // It ends by itself at the end of its input, together with all processes that it has
        // started, unless threads of a peer keep it.
        self.lines = None;
        let _ = bounded::wait(&mut self.child, TO_END);
    }

    pub(super) fn title(&self) -> &'static str {
        self.recipe.title
    }

    /// Returns its name on the command line, the title of its column, and its description.
    pub(super) fn column(&self) -> (&'static str, &'static str, &str) {
        (self.recipe.name, self.recipe.title, &self.what)
    }

    /// Runs a scenario `times` times.
    pub(super) fn ask(&mut self, scenario: &str, times: usize) -> Result<Answer> {
        let lines = self.lines.as_mut().context("it has ended")?;
        writeln!(lines, "{scenario} {times}").context("it has ended")?;
        let answer = self.answer()?;
        if let Some(reason) = answer.get("error").and_then(Value::as_str) {
            return Ok(Answer::Error(plain(reason)));
        }
        if answer.get("skip").is_some() {
            return Ok(Answer::Skip);
        }
        let list = answer.as_array().map(|list| list.iter().map(Value::as_u64).collect());
        let list: Option<Vec<u64>> = list.unwrap_or_default();
        let list = list.filter(|list| list.len() == times);
        list.map(Answer::Times).with_context(|| format!("unexpected answer: {answer}"))
    }

    /// Starts its command `times` times, each to its end.
    pub(super) fn command(&self, times: usize) -> Result<Answer> {
        let Some(program) = &self.recipe.command else {
            return Ok(Answer::Skip);
        };
        let mut took = Vec::new();
        for _ in 0..times {
            let mut command = program.command();
            command.stdin(Stdio::null());
            let start = Instant::now();
            let output = command.output().context("cannot start it")?;
            took.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
            let said = String::from_utf8_lossy(&output.stdout);
            let error = String::from_utf8_lossy(&output.stderr);
            ensure!(said.trim() == "42", "unexpected output: {said}{error}");
        }
        Ok(Answer::Times(took))
    }

    fn answer(&mut self) -> Result<Value> {
        let line = match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.lines = None;
                // A hanging subject would take the processor from the others.
                self.child.kill().context("cannot end what hangs")?;
                bail!("no answer within {} s", PATIENCE.as_secs())
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                self.lines = None;
                bail!(
                    "it has ended, see `{}.log` in the target directory's `bench`",
                    self.recipe.name
                )
            }
        };
        serde_json::from_str(&line).with_context(|| format!("unexpected answer: {line}"))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns a reason without terminal colours, on one line and shortened.
fn plain(reason: &str) -> String {
    let mut text = String::new();
    let mut rest = reason.chars();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => drop(rest.find(char::is_ascii_alphabetic)),
            '\n' => text.push(' '),
            other => text.push(other),
        }
    }
    text.chars().take(400).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn subject(script: &str) -> Result<Subject> {
        let serve = Program::new("/bin/sh").arg("-c").arg(script);
        let command = Some(Program::new("echo").arg("42"));
        let log = PathBuf::from("/dev/null");
        Subject::start(Recipe { name: "test", title: "Test", serve, command, log })
    }

    #[test]
    fn answers_of_a_subject_are_understood() {
        let script = "echo '\"test 1\"'; read a b; echo '[1, 2]'; read a b; echo \"{\\\"skip\\\": \\\"$a\\\"}\"
            read a b; echo '{\"error\": \"no\"}'; read a b; echo '[1]'";
        let mut subject = subject(script).unwrap();
        assert_eq!(subject.column(), ("test", "Test", "test 1"));
        assert!(matches!(subject.ask("run", 2), Ok(Answer::Times(times)) if times == [1, 2]));
        assert!(matches!(subject.ask("pool", 1), Ok(Answer::Skip)));
        assert!(matches!(subject.ask("run", 1), Ok(Answer::Error(reason)) if reason == "no"));
        assert!(subject.ask("run", 2).unwrap_err().to_string().contains("unexpected answer"));
        assert!(subject.ask("run", 1).unwrap_err().to_string().contains("it has ended"));
        assert!(matches!(subject.command(2), Ok(Answer::Times(times)) if times.len() == 2));
    }

    #[test]
    fn subject_that_does_not_start_is_told_of() {
        let error = subject("exit 3").unwrap_err().to_string();
        assert!(error.contains("it has ended"), "{error}");
        let error = subject("echo '{\"error\": \"no such module\"}'").unwrap_err().to_string();
        assert!(error.contains("no such module"), "{error}");
    }

    #[test]
    fn reasons_are_shown_without_colours() {
        assert_eq!(plain("\u{1b}[0m\u{1b}[32mgreen\u{1b}[0m\nline"), "green line");
    }
}
