//! Tests of the lockdown with real processes: each worker attempts one operation, and the test
//! checks how it ended.
//!
//! The test starts this binary again with the name of a probe as its `argv[0]`, because there is no
//! environment. In that process the hidden test [`start`] forks the worker, which then has one
//! thread, like a worker's `main`. It reports on standard output how the worker ended.

mod denied;
mod early;
pub(crate) mod forkable;
mod landlocked;
mod late;
mod probes;
mod table;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use super::{Early, Settings, after_load, before_threads};
use crate::data::isolation::IsolationReport;

/// The prefix of a probe's name in `argv[0]`.
const PROBE: &str = "isolet-probe:";

/// The prefix of a line that reports how a worker ended.
const ENDED: &str = "ended: ";

/// The prefix of a line that a worker prints.
const SAID: &str = "said: ";

/// How a worker ended: `signal 31`, `code 0`.
type Ending = String;

/// A running probe: the process that started the worker.
struct Running {
    starter: Child,
    stdin: Option<ChildStdin>,
    lines: Box<dyn Iterator<Item = String>>,
}

/// Starts this binary for a probe.
fn spawn(probe: &str, stdin: Stdio) -> Child {
    let test = format!("{}::start", module_path!().split_once("::").unwrap().1);
    Command::new(std::env::current_exe().unwrap())
        .arg0(format!("{PROBE}{probe}"))
        .args(["--exact", &test, "--nocapture"])
        .env_clear()
        .stdin(stdin)
        .stdout(Stdio::piped())
        // A file would end a probe that writes to it, because a worker may not write to files.
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Running {
    /// Starts a probe.
    fn start(probe: &str) -> Self {
        let mut starter = spawn(probe, Stdio::piped());
        let stdin = starter.stdin.take();
        let lines = BufReader::new(starter.stdout.take().unwrap()).lines().map_while(Result::ok);
        // libtest prints the beginnings of lines, and ours continue them.
        let ours = lines.filter_map(|line| {
            let at = line.find(SAID).or_else(|| line.find(ENDED))?;
            Some(line[at..].to_owned())
        });
        Self { starter, stdin, lines: Box::new(ours) }
    }

    /// Sends input to the worker, followed by its end.
    fn write(&mut self, input: &str) {
        self.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    }

    /// Waits for the next line that the worker prints.
    fn next(&mut self) -> String {
        let line = self.lines.next().expect("the worker says something");
        line.strip_prefix(SAID).unwrap_or_else(|| panic!("a worker {line}")).to_owned()
    }

    /// Waits for the report that the worker prints after its lockdown.
    fn report(&mut self) -> IsolationReport {
        serde_json::from_str(&self.next()).unwrap()
    }

    /// Ends the input that the worker waits for. Returns how the worker ends.
    fn ending(mut self) -> Ending {
        self.stdin = None;
        let line = self.lines.next().expect("it is told how the worker ended");
        let ending = line.strip_prefix(ENDED).unwrap_or_else(|| panic!("a worker {line}"));
        let ending = ending.to_owned();
        assert!(self.starter.wait().unwrap().success());
        ending
    }
}

/// Runs a probe to its end. Returns the last line that it printed, if any, and how it ended.
fn attempt(probe: &str) -> (Option<String>, Ending) {
    let mut running = Running::start(probe);
    let (mut said, mut ended) = (None, None);
    for line in running.lines.by_ref() {
        match line.strip_prefix(SAID) {
            Some(text) => said = Some(text.to_owned()),
            None => ended = line.strip_prefix(ENDED).map(str::to_owned),
        }
    }
    assert!(running.starter.wait().unwrap().success(), "{probe}");
    (said, ended.expect("it is told how the worker ended"))
}

/// Not a test: the process that [`Running::start`] starts.
#[test]
fn start() {
    let name = std::env::args().next().unwrap();
    if let Some(probe) = name.strip_prefix(PROBE) {
        probes::run(probe);
    }
}

/// Forks a worker and waits for its end. A panic in it aborts it.
pub(in crate::worker::child) fn worker(job: impl Fn() + Send + Sync + 'static) -> ExitStatus {
    let work = move || -> std::io::Result<()> {
        probes::end_some_day();
        job();
        #[expect(clippy::exit, reason = "nothing of the process that was forked should go on")]
        std::process::exit(0);
    };
    let mut command = Command::new("nothing is executed");
    #[expect(unsafe_code, reason = "a process with one thread is made by forking")]
    // SAFETY: the forked child has only the forking thread, so it must not need a lock that another
    // thread holds. The only other thread of this process is libtest's, which waits for this one.
    unsafe {
        command.pre_exec(work);
    }
    command.status().unwrap()
}

/// Reports how a worker ended.
fn tell(status: ExitStatus) {
    let ending = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (_, code) => format!("code {}", code.unwrap_or_default()),
    };
    writeln!(std::io::stdout(), "\n{ENDED}{ending}").unwrap();
}

/// Prints a line from a worker.
fn say(text: impl std::fmt::Display) {
    writeln!(std::io::stdout(), "\n{SAID}{text}").unwrap();
}

fn settings() -> Settings {
    Settings { parent: std::os::unix::process::parent_id(), data_bytes: 1 << 30, forkable: false }
}

/// Runs the first part of the lockdown, in a worker.
fn first_part() -> Early {
    before_threads(&settings()).unwrap()
}

/// Runs the whole lockdown, in a worker.
fn lock() -> IsolationReport {
    after_load(first_part(), &settings(), |_| Ok(())).unwrap()
}
