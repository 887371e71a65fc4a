//! Runs the built command.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;

use crate::{ASSETS_VARIABLE, LONGEST, assets_dir};

/// The result of the command.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, unless a signal ended the command.
    pub code: Option<i32>,
    /// What it has written to standard output.
    pub stdout: String,
    /// What it has written to standard error, without the lines about work that takes longer than
    /// a second: whether there are any depends on the machine.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: without_progress(&String::from_utf8(output.stderr).unwrap()),
        }
    }
}

/// What the command says about its work once that takes longer than a second.
const PROGRESS: [&str; 4] = [
    "isolet: making the memory image",
    "isolet: fetching and importing ",
    "isolet: preparing the session",
    "isolet: resolving and fetching ",
];

fn without_progress(stderr: &str) -> String {
    let is_progress = |line: &str| PROGRESS.iter().any(|begin| line.starts_with(begin));
    stderr.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
}

/// Returns the path of the built command: beside the directory of this test program, or what
/// `ISOLET_TEST_WORKER` names.
#[must_use]
pub fn program() -> String {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    if let Some(named) = std::env::var_os("ISOLET_TEST_WORKER") {
        return named.into_string().unwrap();
    }
    let deps = std::env::current_exe().unwrap();
    let profile = deps.ancestors().nth(2).unwrap();
    let program = profile.join("isolet").with_extension(std::env::consts::EXE_EXTENSION);
    program.into_os_string().into_string().unwrap()
}

/// Returns the built command, with an empty standard input.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program());
    command.args(args).env(ASSETS_VARIABLE, assets_dir()).stdin(Stdio::null());
    command
}

/// Runs the command.
pub fn isolet<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    command(args).output().unwrap().into()
}

/// Runs the command with `input` as its standard input.
pub fn isolet_fed<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: impl AsRef<[u8]>,
) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Small enough for the pipe. A command may end before it has read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    child.wait_with_output().unwrap().into()
}

/// Waits for a command that must end, and kills it if it does not.
#[expect(clippy::must_use_candidate, reason = "that it has ended is enough for some tests")]
pub fn ended(mut child: Child) -> ExitStatus {
    let id = child.id().to_string();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait()));
    if let Ok(status) = ended.recv_timeout(LONGEST) {
        return status.unwrap();
    }
    let _ = Command::new("kill").args(["-KILL", &id]).status();
    panic!("the command has not ended within {LONGEST:?}");
}
