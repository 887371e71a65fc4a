//! Runs `cargo test` with a time limit for each test.
//!
//! libtest has no limit, but announces a test that takes long. So this reads what libtest prints,
//! passes it on unchanged, and kills cargo and what it has started if an announced test does not
//! end. With one thread (`--test-threads=1`, or one core) libtest announces nothing, and no test
//! has a limit.

use std::io::{self, IsTerminal, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;

/// How long a test may take. The slowest takes 76 seconds on two cores that other builds keep busy.
const LONGEST_TEST: Duration = Duration::from_mins(5);

/// How long a test has taken when libtest announces it, and what it prints then.
const ANNOUNCED_AFTER: Duration = Duration::from_mins(1);
const ANNOUNCEMENT: &str = " has been running for over 60 seconds";

/// Runs a command that prints as libtest does, and returns its exit status. The command does not
/// get the standard input.
///
/// # Errors
///
/// Names the test that did not end in time, after the command's process group was killed.
pub(super) fn status(command: &mut Command) -> Result<ExitStatus> {
    // Ctrl-C reaches only the group of the terminal.
    let group = if io::stdin().is_terminal() { Group::Same } else { Group::Own };
    status_with(command, group, LONGEST_TEST.saturating_sub(ANNOUNCED_AFTER), io::stdout())
}

fn status_with(
    command: &mut Command,
    group: Group,
    patience: Duration,
    output: impl Write + Send + 'static,
) -> Result<ExitStatus> {
    group.put(command);
    let mut child = process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let printed = child.stdout.take().context("the standard output is not piped")?;
    let (lines, received) = mpsc::channel();
    let reader = thread::spawn(move || {
        pass_on(printed, output, |line| {
            // Nobody receives after the limit.
            let _ = lines.send((line.to_owned(), Instant::now()));
        })
    });
    let mut announced = Announced::new(patience);
    loop {
        let event = match announced.deadline() {
            Some(deadline) => received.recv_timeout(deadline - Instant::now().min(deadline)),
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok((line, now)) => announced.read(&line, now),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let test = announced.first().to_owned();
                let seconds = (ANNOUNCED_AFTER + patience).as_secs();
                eprintln!("killing the tests, because `{test}` has run for over {seconds} s");
                group.kill(&mut child)?;
                bail!("the test `{test}` has not ended within {seconds} s");
            }
        }
    }
    if let Ok(passed_on) = reader.join() {
        passed_on.context("cannot pass on what the tests print")?;
    }
    child.wait().context("cannot wait for the tests")
}

/// Copies `input` to `output` as it comes, and calls `each` with every line.
fn pass_on(
    mut input: impl Read,
    mut output: impl Write,
    mut each: impl FnMut(&str),
) -> io::Result<()> {
    let (mut chunk, mut rest) = ([0; 8192], Vec::new());
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        output.write_all(read)?;
        output.flush()?;
        rest.extend_from_slice(read);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            each(String::from_utf8_lossy(&line).trim_end());
        }
    }
}

/// The tests that libtest has announced and that have not ended, earliest first.
struct Announced {
    patience: Duration,
    tests: Vec<(String, Instant)>,
}

impl Announced {
    fn new(patience: Duration) -> Self {
        Self { patience, tests: Vec::new() }
    }

    /// Takes a line that was printed at `now`. What a test prints itself may precede what libtest
    /// prints in the same line.
    fn read(&mut self, line: &str, now: Instant) {
        let of_libtest = line.strip_suffix(ANNOUNCEMENT).and_then(|line| line.rsplit_once("test "));
        if let Some((_, test)) = of_libtest {
            self.tests.push((test.to_owned(), now + self.patience));
        } else if line.starts_with("running ") || line.starts_with("test result: ") {
            // Of another program, after one that may have been killed.
            self.tests.clear();
        } else {
            self.tests.retain(|(test, _)| !line.contains(&format!("test {test} ... ")));
        }
    }

    /// Returns when the first of the tests must have ended.
    fn deadline(&self) -> Option<Instant> {
        self.tests.first().map(|(_, deadline)| *deadline)
    }

    fn first(&self) -> &str {
        self.tests.first().map(|(test, _)| test.as_str()).unwrap_or_default()
    }
}

/// The process group of a command, which is killed as a whole.
#[derive(Clone, Copy)]
enum Group {
    Own,
    /// That of this program, which ends with it.
    Same,
}

impl Group {
    #[cfg(unix)]
    fn put(self, command: &mut Command) {
        if matches!(self, Self::Own) {
            std::os::unix::process::CommandExt::process_group(command, 0);
        }
    }

    #[cfg(unix)]
    fn kill(self, child: &mut Child) -> Result<()> {
        let group = match self {
            Self::Own => format!("-{}", child.id()),
            Self::Same => "0".to_owned(),
        };
        // Not every system has `kill` as a program.
        process::check(Command::new("sh").args(["-c", "kill -s KILL -- \"$0\"", &group]))?;
        child.wait().context("cannot wait for the tests")?;
        Ok(())
    }

    #[cfg(not(unix))]
    fn put(self, _: &mut Command) {}

    #[cfg(not(unix))]
    fn kill(self, child: &mut Child) -> Result<()> {
        child.kill().context("cannot kill the tests")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(100);

    /// Returns the tests that have not ended after these lines, each with the seconds since its
    /// announcement. A second passes before each line.
    fn after(lines: &str) -> Vec<(String, u64)> {
        let mut announced = Announced::new(PATIENCE);
        let mut now = Instant::now();
        for line in lines.lines() {
            now += Duration::from_secs(1);
            announced.read(line, now);
        }
        let since = |deadline: Instant| (now + PATIENCE - deadline).as_secs();
        announced.tests.into_iter().map(|(test, deadline)| (test, since(deadline))).collect()
    }

    #[test]
    fn announced_test_has_a_deadline_until_it_ends() {
        assert_eq!(after("running 2 tests\ntest a::b ... ok\n"), []);
        let announced = "running 2 tests\ntest a::b has been running for over 60 seconds\n";
        assert_eq!(after(announced), [("a::b".to_owned(), 0)]);
        assert_eq!(after(&format!("{announced}test b ... ok\n")), [("a::b".to_owned(), 1)]);
        for end in ["test a::b ... ok", "test a::b ... FAILED", "x: test a::b ... \u{1b}[32mok"] {
            assert_eq!(after(&format!("{announced}{end}\n")), [], "{end}");
        }
    }

    #[test]
    fn first_deadline_is_that_of_the_first_announced() {
        let lines = "test a has been running for over 60 seconds\n\
            xtest b has been running for over 60 seconds\n\
            test c has been running for over 60 seconds\n\
            test a ... ok\n";
        assert_eq!(after(lines), [("b".to_owned(), 2), ("c".to_owned(), 1)]);
    }

    #[test]
    fn tests_of_a_program_that_ended_have_no_deadline() {
        let lines = "test a has been running for over 60 seconds\n";
        assert_eq!(after(&format!("{lines}test result: FAILED. 1 passed\n")), []);
        assert_eq!(after(&format!("{lines}running 1 test\n")), []);
    }

    #[test]
    fn everything_is_passed_on_and_read_by_lines() {
        /// Reads one byte at a time.
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(&mut buffer[..1])
            }
        }
        let printed = b"running 1 test\r\n\xff\n\ntest a ... ok\nno end";
        let (mut output, mut lines) = (Vec::new(), Vec::new());
        pass_on(Slow(printed), &mut output, |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(output, printed);
        assert_eq!(lines, ["running 1 test", "\u{fffd}", "", "test a ... ok"]);
    }

    #[test]
    #[cfg(unix)]
    fn exit_status_is_passed_on() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo 'test a has been running for over 60 seconds'; exit 7"]);
        let status = status_with(&mut command, Group::Own, PATIENCE, io::sink()).unwrap();
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    #[cfg(unix)]
    fn test_that_does_not_end_is_killed_with_everything_that_was_started() {
        let (mut held, holder) = io::pipe().unwrap();
        let mut command = Command::new("/bin/sh");
        let script = "sleep 1000 & echo 'test a has been running for over 60 seconds'; wait";
        command.args(["-c", script]).stderr(holder);
        let error = status_with(&mut command, Group::Own, Duration::ZERO, io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "the test `a` has not ended within 60 s");
        // Ends when the last process that has the other end does.
        drop(command);
        held.read_to_end(&mut Vec::new()).unwrap();
    }
}
