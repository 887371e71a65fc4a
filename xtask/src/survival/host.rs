//! A process that embeds a subject, and what a program did to it.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::LATE;
use super::programs::Program;
use super::subjects::Recipe;
use crate::bounded;

/// How long a subject may take to open a session. The first start of some compiles for minutes.
const OPENING: Duration = Duration::from_mins(10);

/// How long after its limit a program may go on, until its host counts as hung.
const PATIENCE: Duration = Duration::from_secs(12);

/// How long after the end of its output a host may take to end, until it is killed.
const TO_END: Duration = Duration::from_secs(10);

/// The memory that a host and all that it has started may take, in bytes. The machine has more.
const MEMORY: u64 = 8 << 30;

/// How often the memory is measured.
const MEASURED: Duration = Duration::from_millis(100);

/// What became of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The subject lacks what the program needs, or refuses it.
    Skipped(String),
    /// The host went on.
    Alive {
        /// Whether the session has its variable.
        kept: bool,
        /// How long the run took.
        seconds: f64,
        /// What the user is told.
        told: String,
        /// Whether the run ended in time.
        in_time: bool,
    },
    /// The host ended, or had to be ended.
    Ended(String),
}

impl Verdict {
    /// Returns what the user is told, or why there is nothing to tell.
    pub(super) fn told(&self) -> &str {
        match self {
            Self::Alive { told, .. } => told,
            Self::Skipped(why) | Self::Ended(why) => why,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::Alive { kept, seconds, told, .. } => {
                let kept = if *kept { "kept" } else { "gone" };
                write!(f, "{kept} after {seconds:.1} s: {}", shortened(told, 100))
            }
            Self::Ended(why) => write!(f, "the host {why}"),
        }
    }
}

/// What a subject says that has no such module, function or statement.
const REFUSALS: [&str; 4] = [
    "ModuleNotFoundError:",
    "NotImplementedError:",
    "AttributeError: module",
    "AttributeError: type object",
];

/// Returns the line with which a subject refuses a program, if it does. It survives what it does
/// not run, which says nothing.
fn refusal(told: &str) -> Option<&str> {
    let last = told.trim().lines().last()?;
    REFUSALS.iter().filter_map(|refusal| last.find(refusal)).min().map(|at| &last[at..])
}

/// Returns the first line of a text, and at most so many characters of it.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= most {
        return line.to_owned();
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

/// A subject, whose process is started again when a program has ended it.
pub(super) struct Host {
    recipe: Recipe,
    what: String,
    running: Option<Running>,
}

struct Running {
    child: Child,
    lines: ChildStdin,
    answers: Receiver<String>,
}

/// Why there is no answer.
enum Silence {
    Ended,
    Hung,
    TooLarge,
}

impl Host {
    pub(super) fn new(recipe: Recipe) -> Self {
        Self { recipe, what: String::new(), running: None }
    }

    /// Runs a program in a session of its own.
    pub(super) fn survive(&mut self, program: &Program, seconds: f64) -> Result<Verdict> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        let Program { code, packages, .. } = program;
        let line = json!({"code": code, "packages": packages, "seconds": seconds});
        writeln!(running.lines, "{line}").context("the host has ended before the program")?;
        let Ok(first) = running.answer(OPENING) else {
            let Recipe { title, log, .. } = &self.recipe;
            bail!("{title} cannot open a session: see {}", log.display());
        };
        if let Some(why) = first.get("skip").and_then(Value::as_str) {
            self.running = Some(running);
            return Ok(Verdict::Skipped(why.to_owned()));
        }
        let limit = Duration::from_secs_f64(seconds) + PATIENCE;
        let ran = running.answer(limit);
        let kept = ran.and_then(|ran| Ok((ran, running.answer(limit)?)));
        match kept {
            Ok((ran, kept)) => {
                let took = ran.get("seconds").and_then(Value::as_f64).context("no `seconds`")?;
                let told = ran.get("told").and_then(Value::as_str).context("no `told`")?;
                let kept = kept.get("kept").and_then(Value::as_bool).context("no `kept`")?;
                self.running = Some(running);
                if let Some(refusal) = refusal(told) {
                    return Ok(Verdict::Skipped(refusal.to_owned()));
                }
                let in_time = took <= seconds + LATE;
                Ok(Verdict::Alive { kept, seconds: took, told: told.to_owned(), in_time })
            }
            Err(silence) => Ok(Verdict::Ended(running.end(&silence))),
        }
    }

    /// Ends the process, and returns what it says that it is.
    pub(super) fn end(mut self) -> String {
        if let Some(running) = self.running.take() {
            running.end(&Silence::Hung);
        }
        self.what
    }

    /// Starts the process and waits for its description.
    fn start(&mut self) -> Result<Running> {
        let Recipe { title, log, serve, .. } = &self.recipe;
        let log = File::options().create(true).append(true).open(log);
        let mut command = serve.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(log.with_context(|| format!("cannot write the log of {title}"))?);
        let mut child = command.spawn().with_context(|| format!("cannot start {title}"))?;
        let lines = child.stdin.take().context("a child has no standard input")?;
        let output = child.stdout.take().context("a child has no standard output")?;
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // After the host is dropped, nobody receives lines.
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        let running = Running { child, lines, answers };
        match running.answer(OPENING) {
            Ok(Value::String(what)) => self.what = what,
            _ => bail!("{title} does not say what it is: see {}", self.recipe.log.display()),
        }
        Ok(running)
    }
}

impl Running {
    /// Waits for a line of JSON.
    fn answer(&self, most: Duration) -> Result<Value, Silence> {
        let start = Instant::now();
        loop {
            match self.answers.recv_timeout(MEASURED) {
                // What is no JSON is a mistake of the subject's script, and none of a program.
                Ok(line) => return serde_json::from_str(&line).map_err(|_| Silence::Hung),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
                Err(RecvTimeoutError::Timeout) if start.elapsed() > most => {
                    return Err(Silence::Hung);
                }
                Err(RecvTimeoutError::Timeout) if resident(self.child.id()) > MEMORY => {
                    return Err(Silence::TooLarge);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Ends the process and what it has started, and says how it ended.
    fn end(mut self, silence: &Silence) -> String {
        let mut family = descendants(self.child.id());
        let limit = match silence {
            // Its output has ended, so it is ending.
            Silence::Ended => TO_END,
            Silence::Hung | Silence::TooLarge => Duration::ZERO,
        };
        let status = bounded::wait(&mut self.child, limit);
        family.retain(|process| fs::exists(format!("/proc/{process}")).unwrap_or(false));
        for process in family {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
        match (silence, status) {
            (Silence::Hung, _) => "answered no longer".to_owned(),
            (Silence::TooLarge, _) => format!("took more than {} GiB of memory", MEMORY >> 30),
            (Silence::Ended, Ok(status)) => match (status.signal(), status.code()) {
                (Some(6), _) => "was aborted (SIGABRT)".to_owned(),
                (Some(11), _) => "crashed (SIGSEGV)".to_owned(),
                (Some(signal), _) => format!("was ended by signal {signal}"),
                (None, code) => format!("ended with status {}", code.unwrap_or(-1)),
            },
            (Silence::Ended, Err(error)) => format!("ended: {error}"),
        }
    }
}

/// Returns the processes that a process has started, and theirs.
fn descendants(process: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            all.push(child);
            all.extend(descendants(child));
        }
    }
    all
}

/// Returns the memory of a process and of all that it has started, in bytes. What they share counts
/// for each.
fn resident(process: u32) -> u64 {
    let of = |process: u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or_default() << 10
    };
    of(process) + descendants(process).into_iter().map(of).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shortened_to_its_first_line() {
        assert_eq!(shortened("\n one\ntwo", 10), "one");
        assert_eq!(shortened("0123456789x", 10), "012345678…");
    }

    #[test]
    fn a_program_is_refused_by_its_last_line() {
        let missing = "ExecutionError: Traceback:\n  x\nModuleNotFoundError: No module named 'os'";
        assert_eq!(refusal(missing), Some("ModuleNotFoundError: No module named 'os'"));
        let monty = "MontyRuntimeError: NotImplementedError: no 'del'";
        assert_eq!(refusal(monty), Some("NotImplementedError: no 'del'"));
        for ran in ["MemoryError", "AttributeError: 'A' object has no attribute 'x'", ""] {
            assert_eq!(refusal(ran), None);
        }
    }
}
